//! The instructions of a fused program, with registers assigned.
//!
//! Every value has a slot, which says where it is while a tile is worked on: in a register, in an input, or in an output. Registers
//! are used again when their value is not needed any more, and the result of an instruction never lies where an operand does.

use super::Real;
use super::function::{Function, Loops};
use super::layout::{Fold, Level};
use super::lower::{Id, Load, Node, Reach, Sink, Values};

/// One instruction.
pub(super) struct Instruction<F: 'static> {
    pub action: Action<F>,
    pub level: Level,
    /// The slot of the result.
    pub to: Id,
    pub x: [Operand; 3],
}

#[derive(Clone, Copy)]
pub(super) enum Action<F: 'static> {
    Load(usize),
    Map(Loops<F>),
    /// Sine to `to` and cosine to this slot.
    SinCos(Id),
    Fold(Fold),
    Spread,
    /// Into an output.
    Store {
        output: usize,
        truth: bool,
    },
    /// Into an accumulator.
    Accumulate(usize),
}

/// A value, and how it is read by an instruction of a higher or equal level.
#[derive(Clone, Copy)]
pub(super) struct Operand {
    pub slot: Id,
    pub level: Level,
}

/// Where a slot is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// A register for a tile, by number.
    Full(usize),
    /// A register for the rows of a tile.
    Row(usize),
    /// One of the numbers of the program.
    Number(usize),
    /// The part of an output that belongs to the tile.
    Output(usize),
}

/// A reduction that goes on from tile to tile.
pub(super) struct Accumulator {
    pub fold: Fold,
    pub to: Level,
    pub output: usize,
    /// The level of what is reduced.
    pub of: Level,
}

/// A compiled group.
pub(super) struct Code<F: 'static> {
    /// What is done once for all tiles of a block.
    pub first: Vec<Instruction<F>>,
    pub tile: Vec<Instruction<F>>,
    pub places: Vec<Place>,
    pub numbers: Vec<F>,
    pub loads: Vec<Load>,
    pub accumulators: Vec<Accumulator>,
    pub full_registers: usize,
    pub row_registers: usize,
    /// Tenths of a nanosecond for an element, roughly.
    pub work: usize,
}

struct Registers {
    free: [Vec<usize>; 2],
    count: [usize; 2],
}

impl Registers {
    fn take(&mut self, level: Level) -> Place {
        let kind = (level == Level::Full) as usize;
        let register = self.free[kind].pop().unwrap_or_else(|| {
            self.count[kind] += 1;
            self.count[kind] - 1
        });
        if level == Level::Full { Place::Full(register) } else { Place::Row(register) }
    }

    fn give(&mut self, place: Place) {
        match place {
            Place::Full(r) => self.free[1].push(r),
            Place::Row(r) => self.free[0].push(r),
            Place::Number(_) | Place::Output(_) => {}
        }
    }
}

/// Assigns registers and picks loops. `spans` says that a tile holds whole rows.
pub(super) fn assemble<F: Real>(values: Values<F>, spans: bool) -> Code<F> {
    let Values { nodes, loads, sinks, .. } = values;
    let constant = |k: Id| match nodes[k].0 {
        Node::Load(l) => loads[l].reach == Reach::One || (loads[l].reach == Reach::Column && spans),
        Node::Spread(x) => matches!(nodes[x].0, Node::Number(_)),
        _ => false,
    };
    // Sinks come right after their value.
    let mut last: Vec<usize> = (0..nodes.len()).collect();
    for (k, (node, _)) in nodes.iter().enumerate() {
        node.operands().for_each(|x| last[x] = last[x].max(k));
    }
    let mut code = Code {
        first: Vec::new(),
        tile: Vec::new(),
        places: vec![Place::Number(0); nodes.len()],
        numbers: Vec::new(),
        loads: Vec::new(),
        accumulators: Vec::new(),
        full_registers: 0,
        row_registers: 0,
        work: 0,
    };
    let mut registers = Registers { free: [Vec::new(), Vec::new()], count: [0, 0] };
    // What is constant is in registers before the first tile, and stays there.
    for (k, (_, level)) in nodes.iter().enumerate().filter(|(k, _)| constant(*k)) {
        code.places[k] = registers.take(*level);
    }
    // A float for each element that is an output is computed in its place.
    let direct = |k: Id| {
        let stored = |s: &(Id, Sink, Level)| s.0 == k && s.1 == Sink::Store { truth: false };
        let computed = matches!(nodes[k].0, Node::Map(..) | Node::Spread(_)) && nodes[k].1 == Level::Full;
        sinks.iter().position(stored).filter(|_| computed && !constant(k))
    };
    let operand = |x: Id| Operand { slot: x, level: nodes.get(x).map_or(Level::One, |n| n.1) };
    let mut done = vec![false; nodes.len()];
    for (k, &(node, level)) in nodes.iter().enumerate() {
        if done[k] {
            finish(&mut code, &nodes, &sinks, direct(k), k);
            release(&mut registers, &code.places, node, &last, k, &constant);
            continue;
        }
        let mut place = |code: &mut Code<F>, k: Id| {
            code.places[k] = match direct(k) {
                Some(output) => Place::Output(output),
                None => registers.take(level),
            }
        };
        let none = [operand(usize::MAX); 3];
        match node {
            Node::Number(v) => {
                code.places[k] = Place::Number(code.numbers.len());
                code.numbers.push(F::from_f64(v));
            }
            Node::Load(l) => {
                let instruction = Instruction { action: Action::Load(l), level, to: k, x: none };
                if constant(k) {
                    code.first.push(instruction);
                } else {
                    place(&mut code, k);
                    code.tile.push(instruction);
                }
                code.work += 1;
            }
            Node::Map(f, x) => {
                let partner = |k: &Id| nodes[*k] == (Node::Map(other_of(f), x), level);
                place(&mut code, k);
                let together = (k + 1..nodes.len()).find(partner).filter(|_| other_of(f) != f);
                let (action, to) = match together {
                    Some(other) => {
                        place(&mut code, other);
                        done[other] = true;
                        let (sin, cos) = if f == Function::Sin { (k, other) } else { (other, k) };
                        (Action::SinCos(cos), sin)
                    }
                    None => (Action::Map(f.loops()), k),
                };
                code.work += if level == Level::Full { f.work() } else { 0 };
                code.tile.push(Instruction { action, level, to, x: x.map(operand) });
            }
            Node::Fold(fold, x) => {
                place(&mut code, k);
                let x = [operand(x), none[1], none[2]];
                code.work += 1;
                code.tile.push(Instruction { action: Action::Fold(fold), level, to: k, x });
            }
            Node::Spread(x) => {
                let x = [operand(x), none[1], none[2]];
                if constant(k) {
                    code.first.push(Instruction { action: Action::Spread, level, to: k, x });
                } else {
                    place(&mut code, k);
                    code.tile.push(Instruction { action: Action::Spread, level, to: k, x });
                }
            }
        }
        finish(&mut code, &nodes, &sinks, direct(k), k);
        release(&mut registers, &code.places, node, &last, k, &constant);
    }
    code.loads = loads;
    [code.row_registers, code.full_registers] = registers.count;
    code
}

/// What becomes of a value that has just been computed.
fn finish<F: Real>(
    code: &mut Code<F>,
    nodes: &[(Node, Level)],
    sinks: &[(Id, Sink, Level)],
    direct: Option<usize>,
    k: Id,
) {
    let of = nodes[k].1;
    for (output, (_, sink, level)) in sinks.iter().enumerate().filter(|(_, s)| s.0 == k) {
        if direct == Some(output) {
            continue;
        }
        let action = match *sink {
            Sink::Store { truth } => Action::Store { output, truth },
            Sink::Fold(fold, to) => {
                code.accumulators.push(Accumulator { fold, to, output, of });
                Action::Accumulate(code.accumulators.len() - 1)
            }
        };
        let level = if matches!(sink, Sink::Fold(..)) { of } else { *level };
        let x = [Operand { slot: k, level: of }; 3];
        code.work += 1;
        code.tile.push(Instruction { action, level, to: k, x });
    }
}

/// Frees the registers of operands that were used for the last time, and of a value that is not used at all.
fn release(
    registers: &mut Registers,
    places: &[Place],
    node: Node,
    last: &[usize],
    k: Id,
    constant: &impl Fn(Id) -> bool,
) {
    let mut ended: Vec<Id> = node.operands().chain([k]).filter(|&x| last[x] == k && !constant(x)).collect();
    ended.sort_unstable();
    ended.dedup();
    ended.into_iter().for_each(|x| registers.give(places[x]));
}

/// Sine for cosine and the other way round; any other function is its own partner.
fn other_of(f: Function) -> Function {
    match f {
        Function::Sin => Function::Cos,
        Function::Cos => Function::Sin,
        f => f,
    }
}
