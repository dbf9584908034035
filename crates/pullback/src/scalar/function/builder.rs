//! Appends operations to a graph: equal ones once, constants folded, and what arithmetic leaves unchanged left out.

use super::graph::{Comparison, Graph, Guard, Node, Op};
use super::symbol::Symbol;
use crate::algebra::{Arithmetic, Expressions, is_power_of_two, simpler};
use crate::dtype::DType;
use std::collections::HashMap;
use std::panic::Location;

/// A graph under construction.
pub(super) struct Builder {
    graph: Graph,
    known: HashMap<Node, u32>,
    constants: HashMap<u64, u32>,
    guarded: HashMap<(Comparison, u32, u32), bool>,
    /// Told to the symbols, so that those of another recording are recognised.
    pub generation: u32,
}

impl Builder {
    pub fn new(generation: u32) -> Self {
        Self::extending(Graph::default(), generation)
    }

    /// A builder whose first nodes are those of `graph`; its outputs are dropped.
    pub fn extending(mut graph: Graph, generation: u32) -> Self {
        graph.outputs.clear();
        let mut known = HashMap::new();
        let mut constants = HashMap::new();
        for (k, node) in graph.nodes.iter().enumerate() {
            if node.op == Op::Constant {
                constants.insert(graph.constants[node.args[0] as usize].to_bits(), k as u32);
            } else {
                known.insert(*node, k as u32);
            }
        }
        let guarded = graph.guards.iter().map(|g| ((g.comparison, g.a, g.b), g.outcome)).collect();
        Builder { graph, known, constants, guarded, generation }
    }

    /// A new input.
    pub fn input(&mut self, value: f64) -> Symbol {
        let which = self.graph.inputs as u32;
        self.graph.inputs += 1;
        self.append(Node { op: Op::Input, args: [which, 0, 0] }, value)
    }

    /// An existing node.
    pub fn symbol(&self, node: u32) -> Symbol {
        match self.graph.nodes[node as usize] {
            Node { op: Op::Constant, args } => Symbol::fixed(self.graph.constants[args[0] as usize]),
            _ => Symbol::on_node(self.graph.values[node as usize], node, self.generation),
        }
    }

    pub fn finish(mut self, outputs: &[Symbol]) -> Graph {
        let outputs = outputs.iter().map(|&y| self.node(y)).collect();
        self.graph.outputs = outputs;
        self.graph.pruned()
    }

    /// The same function with plain products for those of the chain rule, which are faster and let more operations become one. It has
    /// the same results wherever none of them is NaN. `None` if there are no such products; or if pieces that are not taken may be outside
    /// of their domain, for there NaN is the rule.
    pub fn plain(graph: &Graph) -> Option<Graph> {
        if !graph.chains() || graph.chooses() {
            return None;
        }
        let mut plain = graph.clone();
        plain.nodes.iter_mut().filter(|n| n.op == Op::Chain).for_each(|n| n.op = Op::Mul);
        let mut builder = Builder::new(0);
        builder.graph.inputs = graph.inputs;
        let outputs = builder.include(&plain);
        let plain = builder.finish(&outputs);
        // A failed check is told by its number.
        (plain.guards.len() == graph.guards.len()).then_some(plain)
    }

    fn append(&mut self, node: Node, value: f64) -> Symbol {
        let at = *self.known.entry(node).or_insert_with(|| {
            self.graph.nodes.push(node);
            self.graph.values.push(value);
            u32::try_from(self.graph.nodes.len() - 1)
                .expect("a recorded function has at most 2^32 operations")
        });
        Symbol::on_node(self.graph.values[at as usize], at, self.generation)
    }

    /// The node of a symbol; a constant gets one.
    fn node(&mut self, x: Symbol) -> u32 {
        if let Some(node) = x.node() {
            self.check(x);
            return node;
        }
        let graph = &mut self.graph;
        *self.constants.entry(x.at_recording().to_bits()).or_insert_with(|| {
            graph.nodes.push(Node { op: Op::Constant, args: [graph.constants.len() as u32, 0, 0] });
            graph.constants.push(x.at_recording());
            graph.values.push(x.at_recording());
            graph.nodes.len() as u32 - 1
        })
    }

    /// Stops the program if a symbol is not of this recording.
    fn check(&self, x: Symbol) {
        assert!(
            x.node().is_none() || x.generation() == self.generation,
            "a symbol of one recorded function was used in the recording of another"
        );
    }

    /// Takes note that `a` and `b` compared so.
    pub fn guard(
        &mut self,
        comparison: Comparison,
        a: Symbol,
        b: Symbol,
        outcome: bool,
        location: &'static Location,
    ) {
        let (a, b) = (self.node(a), self.node(b));
        if self.guarded.insert((comparison, a, b), outcome).is_none() {
            self.graph.guards.push(Guard { a, b, comparison, outcome, location });
        }
    }

    /// The operations of another graph of the same inputs, as far as they are not there yet; the symbols of its outputs.
    pub fn include(&mut self, other: &Graph) -> Vec<Symbol> {
        let mut symbols: Vec<Symbol> = Vec::with_capacity(other.nodes.len());
        for (node, &value) in other.nodes.iter().zip(&other.values) {
            let symbol = match node.op {
                Op::Input => self.append(*node, value),
                Op::Constant => Symbol::fixed(other.constants[node.args[0] as usize]),
                op => {
                    let args: Vec<Symbol> = node.reads().iter().map(|&a| symbols[a as usize]).collect();
                    self.emit(op, &args, value)
                }
            };
            symbols.push(symbol);
        }
        for g in &other.guards {
            self.guard(g.comparison, symbols[g.a as usize], symbols[g.b as usize], g.outcome, g.location);
        }
        other.outputs.iter().map(|&y| symbols[y as usize]).collect()
    }

    /// What the symbol is the result of.
    fn definition(&self, x: Symbol) -> Option<Node> {
        x.node().map(|k| self.graph.nodes[k as usize])
    }

    /// `x`, if the symbol is `-x`.
    fn negated(&self, x: Symbol) -> Option<Symbol> {
        match self.definition(x)? {
            Node { op: Op::Neg, args } => Some(self.symbol(args[0])),
            _ => None,
        }
    }

    /// The result of an operation, whose value at the point of recording is known.
    ///
    /// What is done instead gives the same value to the last bit, but for the sign of a zero.
    pub fn emit(&mut self, op: Op, x: &[Symbol], value: f64) -> Symbol {
        if x.iter().all(|x| x.node().is_none()) {
            return Symbol::fixed(value);
        }
        x.iter().for_each(|&x| self.check(x));
        if let Some(simpler) = self.simplify(op, x, value) {
            return simpler;
        }
        let mut args = [0; 3];
        for (arg, &x) in args.iter_mut().zip(x) {
            *arg = self.node(x);
        }
        if op.commutes() && args[0] > args[1] {
            args.swap(0, 1);
        }
        self.append(Node { op, args }, value)
    }

    /// A product or quotient of negated factors: its sign comes last, where a sum may take it up.
    fn with_sign_last(&mut self, op: Op, a: Symbol, b: Symbol, value: f64) -> Option<Symbol> {
        match (self.negated(a), self.negated(b)) {
            (None, None) => None,
            (Some(a), Some(b)) => Some(self.emit(op, &[a, b], value)),
            (first, second) => {
                let product = self.emit(op, &[first.unwrap_or(a), second.unwrap_or(b)], -value);
                Some(self.emit(Op::Neg, &[product], value))
            }
        }
    }

    fn simplify(&mut self, op: Op, x: &[Symbol], value: f64) -> Option<Symbol> {
        let constant = |x: Symbol| x.node().is_none().then(|| x.at_recording());
        if let Some(op) = arithmetic(op)
            && let Some(result) = simpler(self, op, x)
        {
            return Some(result);
        }
        match (op, x) {
            (Op::Div, &[a, b]) if constant(a) == Some(1.0) => Some(self.emit(Op::Recip, &[b], value)),
            (Op::Mul | Op::Div, &[a, b]) => self.with_sign_last(op, a, b, value),
            (Op::Gate, &[a, b]) => match (constant(a), constant(b)) {
                (Some(0.0), _) | (_, Some(0.0)) => Some(Symbol::fixed(0.0)),
                (Some(k), _) | (_, Some(k)) if k.is_finite() => Some(self.emit(Op::Mul, &[a, b], value)),
                _ => None,
            },
            (Op::Chain, &[a, b]) => match (constant(a), constant(b)) {
                (Some(0.0), _) | (_, Some(0.0)) => Some(Symbol::fixed(0.0)),
                (Some(k), _) | (_, Some(k)) if k.is_finite() => Some(self.emit(Op::Mul, &[a, b], value)),
                _ if same(a, b) => Some(self.emit(Op::Mul, &[a, b], value)),
                _ => self.with_sign_last(op, a, b, value),
            },
            (Op::Square, &[x]) => Some(self.emit(Op::Mul, &[x, x], value)),
            (Op::Select, &[mask, a, b]) => match constant(mask) {
                Some(mask) => Some(if mask != 0.0 { a } else { b }),
                None => same(a, b).then_some(a),
            },
            _ => None,
        }
    }
}

fn arithmetic(op: Op) -> Option<Arithmetic> {
    Some(match op {
        Op::Neg => Arithmetic::Neg,
        Op::Add => Arithmetic::Add,
        Op::Sub => Arithmetic::Sub,
        Op::Mul => Arithmetic::Mul,
        Op::Div => Arithmetic::Div,
        _ => return None,
    })
}

/// Recorded functions do not keep the sign of a zero.
impl Expressions for Builder {
    type Value = Symbol;

    fn is_same(&self, a: Symbol, b: Symbol) -> bool {
        same(a, b)
    }

    fn dtype(&self, _: Symbol) -> DType {
        DType::F64
    }

    fn number(&self, x: Symbol) -> Option<f64> {
        x.node().is_none().then(|| x.at_recording())
    }

    fn operands(&self, x: Symbol, op: Arithmetic) -> Option<[Symbol; 2]> {
        let node = self.definition(x).filter(|n| arithmetic(n.op) == Some(op))?;
        let reads = node.reads();
        Some([self.symbol(reads[0]), self.symbol(reads[reads.len() - 1])])
    }

    fn constant(&mut self, number: f64, _: Symbol) -> Symbol {
        Symbol::fixed(number)
    }

    fn apply(&mut self, op: Arithmetic, x: &[Symbol]) -> Symbol {
        let (a, b) = (x[0].at_recording(), x[x.len() - 1].at_recording());
        match op {
            Arithmetic::Neg => self.emit(Op::Neg, x, -a),
            Arithmetic::Add => self.emit(Op::Add, x, a + b),
            Arithmetic::Sub => self.emit(Op::Sub, x, a - b),
            Arithmetic::Mul => self.emit(Op::Mul, x, a * b),
            Arithmetic::Div => self.emit(Op::Div, x, a / b),
        }
    }

    fn ignores_sign_of_zero(&self, _: Symbol) -> bool {
        true
    }

    /// A power of two only changes exponents.
    fn merges(&self, c: f64, d: f64, _: Symbol) -> bool {
        (is_power_of_two(c) || is_power_of_two(d)) && (c * d).is_normal()
    }
}

/// Whether two symbols are the same node or constant.
fn same(a: Symbol, b: Symbol) -> bool {
    match (a.node(), b.node()) {
        (None, None) => a.at_recording().to_bits() == b.at_recording().to_bits(),
        (a, b) => a == b,
    }
}
