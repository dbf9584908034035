//! The instructions of a fused program, with registers assigned.
//!
//! Every value has a slot, which says where it is while a tile is worked on: in a register, in an input, or in an output. Registers
//! are used again when their value is not needed any more, and the result of an instruction never lies where an operand does.

use super::Real;
use super::function::{Both, Loops};
use super::lower::{Id, Load, Node, Output, Reach, Sink, Values};
use super::space::Extent;
use crate::graph::operands::Shift;
use crate::ops::Reduction;

/// One instruction.
pub(super) struct Instruction<F: 'static> {
    pub action: Action<F>,
    pub extent: Extent,
    /// The slot of the result.
    pub to: Id,
    pub x: [Operand; 3],
    pub span: Span,
}

/// Which elements of a value are computed for a tile: how many before its first place and after its last, and how many there are in
/// all. Nothing is before or after but where values are read at other places; then a tile has its own copy of its neighbours' elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub before: i32,
    pub after: i32,
    pub len: usize,
}

/// The length of one number that is repeated.
const ENDLESS: usize = usize::MAX;

impl Span {
    /// For a tile of `size` elements that begins with element `at`: the first place, relative to that, and how many.
    #[inline]
    pub fn within(self, at: usize, size: usize) -> (isize, usize) {
        let (mut first, mut end) = (-self.before as isize, size as isize + self.after as isize);
        if self.len != ENDLESS {
            first = first.max(-(at as isize));
            end = end.min(self.len as isize - at as isize);
        }
        (first, (end - first).max(0) as usize)
    }

    /// Elements beyond a tile.
    fn beyond(self) -> usize {
        (self.before + self.after).max(0) as usize
    }
}

#[derive(Clone, Copy)]
pub(super) enum Action<F: 'static> {
    Load(usize),
    Map(Loops<F>),
    /// Two functions of one argument: the first to `to`, and the second to this slot.
    Pair(Both<F>, Id),
    Fold(Reduction),
    Spread,
    /// One of the shifts of the program.
    Shift(usize),
    /// Into an output.
    Store {
        output: usize,
        truth: bool,
    },
    /// Into an accumulator.
    Accumulate(usize),
}

/// A value, and how it is read by an instruction of the same or a larger extent.
#[derive(Clone, Copy)]
pub(super) struct Operand {
    pub slot: Id,
    pub extent: Extent,
}

/// Where a slot is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Home {
    /// A register for a tile, by number, and the place in it of the tile's first element.
    Full(usize, i32),
    /// A register for the rows of a tile.
    Row(usize),
    /// One of the numbers of the program.
    Number(usize),
    /// The part of an output that belongs to the tile.
    Output(usize),
    /// Where another value is.
    Shared,
}

/// A value at other places. Those without elements are filled beside the value in its own register, or else in a copy.
pub(super) struct Shifted {
    pub shift: Shift,
    pub beside: bool,
}

/// A reduction that goes on from tile to tile.
pub(super) struct Accumulator {
    pub fold: Reduction,
    pub to: Extent,
    pub output: usize,
    /// The extent of what is reduced.
    pub of: Extent,
}

/// A compiled group.
pub(super) struct Code<F: 'static> {
    /// What is done once for all tiles of a block.
    pub first: Vec<Instruction<F>>,
    pub tile: Vec<Instruction<F>>,
    pub places: Vec<Home>,
    pub numbers: Vec<F>,
    pub loads: Vec<Load>,
    pub shifts: Vec<Shifted>,
    /// Values have [spans](Span) of their own.
    pub shifted: bool,
    pub accumulators: Vec<Accumulator>,
    /// The elements that are stored, or reduced, for each output.
    pub lengths: Vec<usize>,
    pub full_registers: usize,
    pub row_registers: usize,
    /// Elements of a register beyond those of a tile.
    pub beyond: usize,
    /// Tenths of a nanosecond for an element, roughly.
    pub work: usize,
}

struct Registers {
    free: [Vec<usize>; 2],
    count: [usize; 2],
}

impl Registers {
    fn take(&mut self, extent: Extent, span: Span) -> Home {
        let kind = (extent == Extent::Full) as usize;
        let register = self.free[kind].pop().unwrap_or_else(|| {
            self.count[kind] += 1;
            self.count[kind] - 1
        });
        if extent == Extent::Full { Home::Full(register, span.before) } else { Home::Row(register) }
    }

    fn give(&mut self, place: Home) {
        match place {
            Home::Full(r, _) => self.free[1].push(r),
            Home::Row(r) => self.free[0].push(r),
            Home::Number(_) | Home::Output(_) | Home::Shared => {}
        }
    }
}

/// Assigns registers and picks loops. `spans` says that a tile holds whole rows.
pub(super) fn assemble<F: Real>(values: Values<F>, spans: bool) -> Code<F> {
    let spans_of = spans_of(&values);
    let Values { nodes, mut loads, sinks, shifted, .. } = values;
    for ((node, _), span) in nodes.iter().zip(&spans_of) {
        if let Node::Load(l) = *node {
            loads[l].beyond = span.before != 0 || span.after != 0;
        }
    }
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
    // A value at other places may lie where it was.
    for (k, (node, _)) in nodes.iter().enumerate().rev() {
        if let Node::Shift(x, _) = *node {
            last[x] = last[x].max(last[k]);
        }
    }
    let mut ended: Vec<Vec<Id>> = vec![Vec::new(); nodes.len()];
    (0..nodes.len()).filter(|&k| !constant(k)).for_each(|k| ended[last[k]].push(k));
    let mut code = Code {
        first: Vec::new(),
        tile: Vec::new(),
        places: vec![Home::Number(0); nodes.len()],
        numbers: Vec::new(),
        loads: Vec::new(),
        shifts: Vec::new(),
        shifted,
        accumulators: Vec::new(),
        lengths: sinks.iter().map(|s| s.len).collect(),
        full_registers: 0,
        row_registers: 0,
        beyond: spans_of.iter().map(|s| s.beyond()).max().unwrap_or(0),
        work: 0,
    };
    let mut registers = Registers { free: [Vec::new(), Vec::new()], count: [0, 0] };
    // What is constant is in registers before the first tile, and stays there.
    for (k, (_, extent)) in nodes.iter().enumerate().filter(|(k, _)| constant(*k)) {
        code.places[k] = registers.take(*extent, spans_of[k]);
    }
    // A float for each element that is an output is computed in its place.
    let direct = |k: Id| {
        let own = |s: &Output| spans_of[k] == Span { before: 0, after: 0, len: s.len };
        let stored = |s: &Output| s.value == k && s.sink == Sink::Store { truth: false } && own(s);
        let computed = matches!(nodes[k].0, Node::Map(..) | Node::Spread(_)) && nodes[k].1 == Extent::Full;
        sinks.iter().position(stored).filter(|_| computed && !constant(k))
    };
    let operand = |x: Id| Operand { slot: x, extent: nodes.get(x).map_or(Extent::One, |n| n.1) };
    let mut done = vec![false; nodes.len()];
    for (k, &(node, extent)) in nodes.iter().enumerate() {
        if done[k] {
            finish(&mut code, &nodes, &sinks, direct(k), k);
            ended[k].iter().for_each(|&x| registers.give(code.places[x]));
            continue;
        }
        let mut place = |code: &mut Code<F>, k: Id| {
            code.places[k] = match direct(k) {
                Some(output) => Home::Output(output),
                None => registers.take(extent, spans_of[k]),
            }
        };
        let none = [operand(usize::MAX); 3];
        let span = spans_of[k];
        match node {
            Node::Number(v) => {
                code.places[k] = Home::Number(code.numbers.len());
                code.numbers.push(F::from_f64(v.get()));
            }
            Node::Load(l) => {
                let instruction = Instruction { action: Action::Load(l), extent, to: k, x: none, span };
                if constant(k) {
                    code.first.push(instruction);
                } else {
                    place(&mut code, k);
                    code.tile.push(instruction);
                }
                code.work += 1;
            }
            Node::Map(f, x) => {
                place(&mut code, k);
                let pair = f.pair::<F>().and_then(|([first, second], both)| {
                    let other = if f == first { second } else { first };
                    let is_other =
                        |k: &Id| nodes[*k] == (Node::Map(other, x), extent) && spans_of[*k] == span;
                    Some(((k + 1..nodes.len()).find(is_other)?, other, f == first, both))
                });
                let (action, to, work) = match pair {
                    Some((at, other, is_first, both)) => {
                        place(&mut code, at);
                        done[at] = true;
                        let (first, second) = if is_first { (k, at) } else { (at, k) };
                        (Action::Pair(both, second), first, f.work().max(other.work()))
                    }
                    None => (Action::Map(f.loops()), k, f.work()),
                };
                code.work += if extent == Extent::Full { work } else { 0 };
                code.tile.push(Instruction { action, extent, to, x: x.map(operand), span });
            }
            Node::Fold(fold, x) => {
                place(&mut code, k);
                let x = [operand(x), none[1], none[2]];
                code.work += 1;
                code.tile.push(Instruction { action: Action::Fold(fold), extent, to: k, x, span });
            }
            Node::Spread(x) => {
                let x = [operand(x), none[1], none[2]];
                if constant(k) {
                    code.first.push(Instruction { action: Action::Spread, extent, to: k, x, span });
                } else {
                    place(&mut code, k);
                    code.tile.push(Instruction { action: Action::Spread, extent, to: k, x, span });
                }
            }
            Node::Shift(x, shift) => {
                let own = matches!((nodes[x].0, code.places[x]), (Node::Map(..), Home::Full(..)));
                let beside = own && ends_with(&shift, spans_of[x].len) && has_one_fill(&nodes, x);
                if shift.is_full() || beside {
                    code.places[k] = Home::Shared;
                } else {
                    place(&mut code, k);
                }
                let x = [operand(x), none[1], none[2]];
                let action = Action::Shift(code.shifts.len());
                code.shifts.push(Shifted { shift, beside });
                code.tile.push(Instruction { action, extent, to: k, x, span });
            }
        }
        finish(&mut code, &nodes, &sinks, direct(k), k);
        ended[k].iter().for_each(|&x| registers.give(code.places[x]));
    }
    code.loads = loads;
    [code.row_registers, code.full_registers] = registers.count;
    code
}

/// What becomes of a value that has just been computed.
fn finish<F: Real>(
    code: &mut Code<F>,
    nodes: &[(Node, Extent)],
    sinks: &[Output],
    direct: Option<usize>,
    k: Id,
) {
    let of = nodes[k].1;
    for (output, out) in sinks.iter().enumerate().filter(|(_, s)| s.value == k) {
        if direct == Some(output) {
            continue;
        }
        let action = match out.sink {
            Sink::Store { truth } => Action::Store { output, truth },
            Sink::Fold(fold, to) => {
                code.accumulators.push(Accumulator { fold, to, output, of });
                Action::Accumulate(code.accumulators.len() - 1)
            }
        };
        let extent = if matches!(out.sink, Sink::Fold(..)) { of } else { out.extent };
        let span = Span { before: 0, after: 0, len: out.len };
        let x = [Operand { slot: k, extent: of }; 3];
        code.work += 1;
        code.tile.push(Instruction { action, extent, to: k, x, span });
    }
}

/// Whether the places that have no element come before the first and after the last of `len`: nothing else is there.
fn ends_with(shift: &Shift, len: usize) -> bool {
    let element = |place: usize| place as isize + shift.by;
    let first = shift.inside.0 == 0 || element(shift.inside.0) == 0;
    first && (shift.inside.1 == shift.len || element(shift.inside.1) == len as isize)
}

/// Whether all pads of a value are of one number.
fn has_one_fill(nodes: &[(Node, Extent)], x: Id) -> bool {
    let mut fills = nodes.iter().filter_map(|(node, _)| match node {
        Node::Shift(of, shift) if *of == x && !shift.is_full() => Some(shift.fill),
        _ => None,
    });
    let first = fills.next();
    fills.all(|fill| Some(fill) == first)
}

/// The elements of each value that a tile computes.
fn spans_of<F>(values: &Values<F>) -> Vec<Span> {
    let even = Span { before: 0, after: 0, len: values.size };
    if !values.shifted {
        return vec![even; values.nodes.len()];
    }
    // What is not needed at all reaches nowhere.
    const NOWHERE: i32 = i32::MIN / 2;
    let mut spans = vec![Span { before: NOWHERE, after: NOWHERE, len: ENDLESS }; values.nodes.len()];
    for (k, (node, _)) in values.nodes.iter().enumerate() {
        spans[k].len = match node {
            Node::Load(l) if values.loads[*l].reach == Reach::Full => values.loads[*l].view.len(),
            Node::Shift(_, shift) => shift.len,
            _ => node.operands().map(|x| spans[x].len).min().unwrap_or(ENDLESS),
        };
    }
    let widen = |spans: &mut Vec<Span>, x: Id, before: i32, after: i32| {
        spans[x].before = spans[x].before.max(before);
        spans[x].after = spans[x].after.max(after);
    };
    values.sinks.iter().for_each(|s| widen(&mut spans, s.value, 0, 0));
    for (k, (node, _)) in values.nodes.iter().enumerate().rev() {
        let Span { before, after, .. } = spans[k];
        // Layouts have few elements beyond a tile.
        let by = if let Node::Shift(_, shift) = node { shift.by as i32 } else { 0 };
        node.operands().for_each(|x| widen(&mut spans, x, before - by, after + by));
    }
    spans
}
