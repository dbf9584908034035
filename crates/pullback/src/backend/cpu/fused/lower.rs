//! From the operations of a group to a list of values of three extents, with neighbouring operations combined.
//!
//! A value has the smallest extent that its operands allow (a function of row values is computed once for each row, wherever
//! the graph had broadcast them), equal values once. Products are combined with what uses them where that saves an instruction; a
//! fused multiply-add then rounds once where the single operations round twice, and no other result differs from theirs.

use super::Real;
use super::function::Function;
use super::space::{Extent, Space};
use crate::DType;
use crate::algebra::{Arithmetic, Expressions, simpler};
use crate::graph::operands::repeated;
use crate::graph::operands::{Exact, Operands, Shift, View};
use crate::graph::{Graph, Ref};
use crate::ops::{Op, Reduction};
use smallvec::SmallVec;

/// A value by its number.
pub(super) type Id = usize;

/// How a value comes about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Node {
    Number(Exact),
    Load(usize),
    Map(Function, [Id; 3]),
    /// The reduction of each row.
    Fold(Reduction, Id),
    /// The same value with a larger extent.
    Spread(Id),
    /// The same value at other places.
    Shift(Id, Shift),
}

/// What is read of an input.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Load {
    pub input: usize,
    pub truth: bool,
    pub view: View,
    pub reach: Reach,
    /// A tile reads elements beyond its own.
    pub beyond: bool,
    /// Places that have no element get the number of the view; else another load has them.
    pub fills: bool,
    /// Loads that have elements at places where this one has none, and are read with it.
    pub others: SmallVec<[usize; 2]>,
}

/// Which places of the iteration space have elements of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    One,
    Row,
    Column,
    Full,
}

/// What becomes of a value. One for each output of the group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sink {
    /// Stored, for each element or each row.
    Store { truth: bool },
    /// Reduced to one number, for each column, or (in rows longer than a tile) for each row.
    Fold(Reduction, Extent),
}

/// An output of the group: a value, what becomes of it, its extent, and how many elements it has.
pub(super) struct Output {
    pub value: Id,
    pub sink: Sink,
    pub extent: Extent,
    pub len: usize,
}

/// The values of a group in the order of their computation.
pub(super) struct Values<F> {
    pub nodes: Vec<(Node, Extent)>,
    pub loads: Vec<Load>,
    pub sinks: Vec<Output>,
    /// The elements of a value that has one for each place.
    pub size: usize,
    /// Values have lengths of their own, and are read at other places.
    pub shifted: bool,
    /// Row values are spread before they meet a full one: the rows are too short for a loop each.
    narrow: bool,
    float: std::marker::PhantomData<F>,
}

/// Rows shorter than this are not worth a loop of their own.
const NARROW: usize = 64;

/// Where an operand that is not there points to.
const NONE: Id = Id::MAX;

/// The values of a group. `spans` says that a tile holds whole rows.
pub(super) fn lower<F: Real>(
    graph: &Graph,
    operands: &Operands,
    members: &[usize],
    space: &Space,
    spans: bool,
) -> Option<Values<F>> {
    let mut values = Values {
        nodes: Vec::new(),
        loads: Vec::new(),
        sinks: Vec::new(),
        size: space.rows * space.cols,
        shifted: space.shifted,
        narrow: spans && space.cols < NARROW,
        float: std::marker::PhantomData,
    };
    let mut result: Vec<Id> = Vec::with_capacity(members.len());
    let mut finals: Vec<Option<(Reduction, Extent)>> = Vec::with_capacity(members.len());
    let member = |at: Ref| match at {
        Ref::Step(k, 0) => members.binary_search(&k).ok(),
        _ => None,
    };
    for (k, &m) in members.iter().enumerate() {
        let step = &graph.steps[m];
        let mut x = Vec::with_capacity(3);
        for (base, view) in &operands[m] {
            x.push(match (member(*base), *base) {
                (Some(p), _) if space.shifted => {
                    values.shift(result[p], view.shift(&graph.aval(*base).shape)?)
                }
                (Some(p), _) => result[p],
                (None, Ref::Input(input)) => {
                    let truth = graph.inputs[input].dtype == DType::Bool;
                    values.load(input, truth, view.clone(), space)
                }
                (None, other) => values.number_of(repeated(graph, other)?),
            });
        }
        let mut last = None;
        result.push(match (&step.op, space.extents[k]) {
            (Op::Cast(c), _) if c.to == DType::Bool => values.map(Function::IsTrue, &x),
            (Op::Cast(_), _) => x[0],
            (Op::Clamp(c), _) => {
                let mut bound = |v: f64| values.number_of(F::from_f64(v).into());
                let (low, high) = (bound(c.low), bound(c.high));
                let above = values.map(Function::Maximum, &[x[0], low]);
                values.map(Function::Minimum, &[above, high])
            }
            (op, _) if op.is_rowwise() => values.rowwise(op, &x)?,
            (op, extent) => match op.reduction() {
                None => values.map(Function::of(op)?, &x),
                Some((fold, _)) if extent == Extent::Row && spans => {
                    let full = values.spread(x[0], Extent::Full);
                    values.push(Node::Fold(fold, full), Extent::Row)
                }
                Some((fold, _)) => {
                    last = Some((fold, extent));
                    // What is reduced to one number may be a value of the rows.
                    let rows =
                        extent == Extent::Total && !space.shifted && operands[m][0].1.len() < values.size;
                    values.spread(x[0], if rows { Extent::Row } else { Extent::Full })
                }
            },
        });
        finals.push(last);
    }
    for &out in &graph.outputs {
        let k = member(out)?;
        let output = match finals[k] {
            Some((fold, extent)) => {
                let len = operands[members[k]][0].1.len();
                Output { value: result[k], sink: Sink::Fold(fold, extent), extent, len }
            }
            None => {
                let (extent, aval) = (space.extents[k], graph.aval(out));
                let sink = Sink::Store { truth: aval.dtype == DType::Bool };
                Output { value: values.spread(result[k], extent), sink, extent, len: aval.shape.numel() }
            }
        };
        values.sinks.push(output);
    }
    Some(values.joined().named().combined().alive())
}

impl<F: Real> Values<F> {
    pub fn extent(&self, x: Id) -> Extent {
        self.nodes[x].1
    }

    pub fn number_of(&mut self, number: f64) -> Id {
        self.push(Node::Number(Exact::new(number)), Extent::One)
    }

    /// A new value, or an equal one that is there already.
    pub fn push(&mut self, node: Node, extent: Extent) -> Id {
        match self.nodes.iter().position(|v| *v == (node, extent)) {
            Some(at) => at,
            None => {
                self.nodes.push((node, extent));
                self.nodes.len() - 1
            }
        }
    }

    fn spread(&mut self, x: Id, extent: Extent) -> Id {
        if self.extent(x) >= extent { x } else { self.push(Node::Spread(x), extent) }
    }

    /// A value at other places; one number is the same at all of them, but for those that a pad adds.
    fn shift(&mut self, x: Id, shift: Shift) -> Id {
        let stays = shift.is_full() && (shift.by == 0 || self.extent(x) < Extent::Full);
        if stays {
            return x;
        }
        // A factor comes after the shift, where a sum may take it up, unless it changes what the pad adds.
        if let (Node::Map(Function::Mul, [a, c, _]), Extent::Full) = self.nodes[x]
            && let Some(factor) = self.number(c)
        {
            let zero = Shift { fill: Exact::new(0.0), ..shift };
            let fill: f64 = Function::Mul.fold(&[F::ZERO, F::from_f64(factor)]).into();
            if shift.is_full() || Exact::new(fill) == shift.fill {
                let moved = self.shift(a, zero);
                return self.map(Function::Mul, &[moved, c]);
            }
        }
        let full = self.spread(x, Extent::Full);
        self.push(Node::Shift(full, shift), Extent::Full)
    }

    fn load(&mut self, input: usize, truth: bool, view: View, space: &Space) -> Id {
        let size = view.len();
        let (view, reach) = if let Some(one) = view.one() {
            (one, Reach::One)
        } else if space.shifted {
            (view, Reach::Full)
        } else if size != space.rows * space.cols {
            (view, Reach::Row)
        } else if let Some(rows) = view.rows(space.cols) {
            (rows, Reach::Row)
        } else if let Some(columns) = view.columns(space.cols).filter(|_| space.rows > 1) {
            (columns, Reach::Column)
        } else {
            (view, Reach::Full)
        };
        let load = Load { input, truth, view, reach, beyond: false, fills: true, others: SmallVec::new() };
        let at = self.loads.iter().position(|l| *l == load).unwrap_or_else(|| {
            self.loads.push(load);
            self.loads.len() - 1
        });
        let extent = match reach {
            Reach::One => Extent::One,
            Reach::Row => Extent::Row,
            Reach::Column | Reach::Full => Extent::Full,
        };
        self.push(Node::Load(at), extent)
    }

    /// An operation on [whole rows](crate::ops::Primitive::ROWWISE), by the formulas of its kernel.
    fn rowwise(&mut self, op: &Op, x: &[Id]) -> Option<Id> {
        use Function::*;
        let full: Vec<Id> = x.iter().map(|&x| self.spread(x, Extent::Full)).collect();
        let over_row = |values: &mut Self, fold, x| {
            let x = values.spread(x, Extent::Full);
            values.push(Node::Fold(fold, x), Extent::Row)
        };
        Some(match (op, &full[..]) {
            (Op::Softmax(_) | Op::LogSoftmax(_), &[x]) => {
                let top = over_row(self, Reduction::Max, x);
                let below = self.map(Sub, &[x, top]);
                let terms = self.map(Exp, &[below]);
                let total = over_row(self, Reduction::Sum, terms);
                if let Op::Softmax(_) = op {
                    let factor = self.map(Recip, &[total]);
                    self.map(Mul, &[terms, factor])
                } else {
                    let log = self.map(Ln, &[total]);
                    self.map(Sub, &[below, log])
                }
            }
            (Op::SoftmaxPullback(_), &[y, g]) => {
                let terms = self.map(Mul, &[g, y]);
                let centre = over_row(self, Reduction::Sum, terms);
                let centred = self.map(Sub, &[g, centre]);
                self.map(Mul, &[y, centred])
            }
            (Op::LogSoftmaxPullback(_), &[y, g]) => {
                let total = over_row(self, Reduction::Sum, g);
                let weights = self.map(Exp, &[y]);
                let part = self.map(Mul, &[weights, total]);
                self.map(Sub, &[g, part])
            }
            _ => return None,
        })
    }

    /// A function of values, with the largest of their extents.
    pub fn map(&mut self, f: Function, x: &[Id]) -> Id {
        if let Some(simpler) = self.simplified(f, x) {
            return simpler;
        }
        // There is no loop over a single number: it is one for each row.
        let extent = x.iter().map(|&x| self.extent(x)).max().unwrap_or(Extent::Row).max(Extent::Row);
        let mut args = [NONE; 3];
        for (to, &x) in args.iter_mut().zip(x) {
            let narrow = self.narrow && extent == Extent::Full && self.extent(x) == Extent::Row;
            *to = if narrow { self.spread(x, extent) } else { x };
        }
        let none_full = x.iter().all(|&x| self.extent(x) < extent);
        if x.len() != 2 || none_full {
            args[0] = self.spread(args[0], extent);
        }
        self.push(Node::Map(f, args), extent)
    }

    /// The same result from a simpler function, always exact.
    fn simplified(&mut self, f: Function, x: &[Id]) -> Option<Id> {
        use Function::*;
        let known: Vec<F> = x.iter().map_while(|&x| self.number(x)).map(F::from_f64).collect();
        if known.len() == x.len() {
            return Some(self.number_of(f.fold(&known).into()));
        }
        if let Some(op) = arithmetic(f)
            && let Some(simpler) = simpler(self, op, x)
        {
            return Some(simpler);
        }
        let negated = |x: Id| self.operands(x, Arithmetic::Neg).map(|[x, _]| x);
        match (f, x) {
            (Square, &[x]) => Some(self.map(Mul, &[x, x])),
            (Mul | Add, &[a, b]) if self.number(a).is_some() => Some(self.map(f, &[b, a])),
            (Mul, &[a, b]) => match (negated(a), negated(b)) {
                (None, None) => None,
                (first, second) => Some(self.map(NegMul, &[first.unwrap_or(a), second.unwrap_or(b)])),
            },
            (Gate, &[a, b]) => match (self.number(a), self.number(b)) {
                (Some(0.0), _) => Some(a),
                (Some(c), _) | (_, Some(c)) if c.is_finite() && c != 0.0 => Some(self.map(Mul, x)),
                // The sign of a product comes last, where a sum may take it up.
                _ => {
                    let (a, b) = match (negated(a), negated(b)) {
                        (None, None) => return None,
                        (Some(a), _) => (a, b),
                        (None, Some(b)) => (a, b),
                    };
                    let product = self.map(Gate, &[a, b]);
                    Some(self.map(Neg, &[product]))
                }
            },
            _ => None,
        }
    }

    /// How often each value is used.
    pub fn uses(&self) -> Vec<usize> {
        let mut uses = vec![0; self.nodes.len()];
        self.nodes.iter().for_each(|(node, _)| node.operands().for_each(|x| uses[x] += 1));
        self.sinks.iter().for_each(|s| uses[s.value] += 1);
        uses
    }

    /// Products joined with the operation that uses them, if it is the only one.
    fn combined(self) -> Values<F> {
        let uses = self.uses();
        let mut out = Values { nodes: Vec::new(), ..self };
        let mut moved: Vec<Id> = Vec::with_capacity(self.nodes.len());
        for &(node, extent) in &self.nodes {
            let to = |x: Id| if x == NONE { NONE } else { moved[x] };
            let inner = |x: Id| match self.nodes.get(x) {
                Some(&(Node::Map(f, args), l)) if l == extent && uses[x] == 1 => Some((f, args.map(to))),
                _ => None,
            };
            let joined = match node {
                Node::Map(f, [a, b, _]) => joined(f, (to(a), inner(a)), (to(b), inner(b))),
                _ => None,
            };
            // The first operand of three is a vector; the factors of a product may change places.
            let joined = joined.map(|(f, [a, b, c])| {
                let product =
                    matches!(f, Function::MulAdd | Function::MulSub | Function::NegMulAdd | Function::MulMul);
                (f, if product && out.extent(a) < extent { [b, a, c] } else { [a, b, c] })
            });
            let joined = joined.filter(|(_, args)| args[2] == NONE || out.extent(args[0]) == extent);
            let node = joined.map_or_else(|| node.with_operands(to), |(f, args)| Node::Map(f, args));
            moved.push(out.push(node, extent));
        }
        out.sinks.iter_mut().for_each(|s| s.value = moved[s.value]);
        out
    }

    /// Whether something uses each value.
    pub fn live(&self) -> Vec<bool> {
        let mut live = vec![false; self.nodes.len()];
        self.sinks.iter().for_each(|s| live[s.value] = true);
        for k in (0..self.nodes.len()).rev() {
            if live[k] {
                self.nodes[k].0.operands().for_each(|x| live[x] = true);
            }
        }
        live
    }

    /// Without the values that nothing uses.
    fn alive(self) -> Values<F> {
        let live = self.live();
        let mut place = vec![NONE; self.nodes.len()];
        let mut out = Values { nodes: Vec::new(), ..self };
        for (k, &(node, extent)) in self.nodes.iter().enumerate().filter(|(k, _)| live[*k]) {
            place[k] = out.nodes.len();
            out.nodes.push((node.with_operands(|x| if x == NONE { NONE } else { place[x] }), extent));
        }
        out.sinks.iter_mut().for_each(|s| s.value = place[s.value]);
        out
    }
}

fn arithmetic(f: Function) -> Option<Arithmetic> {
    Some(match f {
        Function::Neg => Arithmetic::Neg,
        Function::Add => Arithmetic::Add,
        Function::Sub => Arithmetic::Sub,
        Function::Mul => Arithmetic::Mul,
        Function::Div => Arithmetic::Div,
        _ => return None,
    })
}

impl<F: Real> Expressions for Values<F> {
    type Value = Id;

    fn is_same(&self, a: Id, b: Id) -> bool {
        a == b
    }

    /// Groups compute in f32 or f64; what is moderate in one is in the other.
    fn dtype(&self, _: Id) -> DType {
        DType::F32
    }

    fn number(&self, x: Id) -> Option<f64> {
        match self.nodes[x].0 {
            Node::Number(v) => Some(v.get()),
            _ => None,
        }
    }

    fn operands(&self, x: Id, op: Arithmetic) -> Option<[Id; 2]> {
        match self.nodes[x].0 {
            Node::Map(f, [a, b, _]) if arithmetic(f) == Some(op) => Some([a, if b == NONE { a } else { b }]),
            _ => None,
        }
    }

    fn constant(&mut self, number: f64, _: Id) -> Id {
        self.number_of(F::from_f64(number).into())
    }

    fn apply(&mut self, op: Arithmetic, x: &[Id]) -> Id {
        let f = match op {
            Arithmetic::Neg => Function::Neg,
            Arithmetic::Add => Function::Add,
            Arithmetic::Sub => Function::Sub,
            Arithmetic::Mul => Function::Mul,
            Arithmetic::Div => Function::Div,
        };
        self.map(f, x)
    }

    fn ignores_sign_of_zero(&self, _: Id) -> bool {
        false
    }

    /// The passes over the graph have done that.
    fn merges(&self, _: f64, _: f64, _: Id) -> bool {
        false
    }
}

/// A function of values.
type Call = (Function, [Id; 3]);

/// A function and what makes one of its operands, as one function; `NONE` where it takes only two.
fn joined(f: Function, a: (Id, Option<Call>), b: (Id, Option<Call>)) -> Option<Call> {
    use Function::*;
    Some(match (f, a, b) {
        (Add, (_, Some((Mul, [x, y, _]))), (c, _)) | (Add, (c, _), (_, Some((Mul, [x, y, _])))) => {
            (MulAdd, [x, y, c])
        }
        (Add, (_, Some((NegMul, [x, y, _]))), (c, _)) | (Add, (c, _), (_, Some((NegMul, [x, y, _])))) => {
            (NegMulAdd, [x, y, c])
        }
        (Add, (_, Some((Gate, [x, y, _]))), (c, _)) | (Add, (c, _), (_, Some((Gate, [x, y, _])))) => {
            (GateAdd, [x, y, c])
        }
        (Sub, (_, Some((Mul, [x, y, _]))), (c, _)) => (MulSub, [x, y, c]),
        (Sub, (c, _), (_, Some((Mul, [x, y, _])))) => (NegMulAdd, [x, y, c]),
        (Sub, (c, _), (_, Some((NegMul, [x, y, _])))) => (MulAdd, [x, y, c]),
        (Neg, (_, Some((Mul, [x, y, _]))), _) => (NegMul, [x, y, NONE]),
        (Mul, (_, Some((Mul, [x, y, _]))), (c, _)) | (Mul, (c, _), (_, Some((Mul, [x, y, _])))) => {
            (MulMul, [x, y, c])
        }
        (Gate, (g, _), (_, Some((Mul, [x, y, _])))) => (GateMul, [g, x, y]),
        (Gate, (_, Some((Gate, [g, x, _]))), (y, _)) => (GateGate, [g, x, y]),
        _ => return None,
    })
}

impl Node {
    pub fn operands(&self) -> impl Iterator<Item = Id> + use<> {
        let all = match *self {
            Node::Number(_) | Node::Load(_) => [NONE; 3],
            Node::Map(_, x) => x,
            Node::Fold(_, x) | Node::Spread(x) | Node::Shift(x, _) => [x, NONE, NONE],
        };
        all.into_iter().filter(|&x| x != NONE)
    }

    pub fn with_operands(self, to: impl Fn(Id) -> Id) -> Node {
        match self {
            Node::Number(_) | Node::Load(_) => self,
            Node::Map(f, x) => Node::Map(f, x.map(to)),
            Node::Fold(f, x) => Node::Fold(f, to(x)),
            Node::Spread(x) => Node::Spread(to(x)),
            Node::Shift(x, shift) => Node::Shift(to(x), shift),
        }
    }
}
