//! Random programs, as graphs: operations on whatever came before, of shapes and layouts of every kind.
//!
//! Elementwise operations, and everything that has no way of its own here, are used as their samples say: the operands are brought into the
//! shapes and domains of a sample. So an operation that is added to the list is part of the programs.

mod steps;

use crate::DType;
use crate::graph::{Graph, Ref, Step};
use crate::location::caller;
use crate::ops::*;
use crate::shape::Shape;
use crate::tensor::{Key, Tensor, bind};
use pullback_testing::Dice;
use std::collections::HashMap;

/// A random program and where its inputs are drawn from.
pub(crate) struct Program {
    pub graph: Graph,
    pub draws: Vec<Draw>,
    pub dtype: DType,
    /// Some tensors have more than a few thousand elements.
    pub long: bool,
}

/// How large a program's tensors are.
#[derive(Clone, Copy, PartialEq)]
enum Size {
    Small,
    /// Several tiles of a fused group.
    Medium,
    /// Rows that no group works on as a whole.
    Long,
}

struct Maker {
    dice: Dice,
    graph: Graph,
    draws: Vec<Draw>,
    dtype: DType,
    size: Size,
    /// Of each value, what it is for one choice of inputs.
    examples: HashMap<Ref, Tensor>,
    /// All values that operations may take, in the order in which they came.
    values: Vec<Ref>,
}

/// What a tensor holds at most for the example: what grows further overflows soon.
const LARGEST: f64 = 1e3;

/// Numbers that passes know something about, and others.
const NUMBERS: [f64; 9] = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.0, 0.7, 1.5];

impl Program {
    /// The program of a seed. One of its steps is the operation of that number in the list, so that as many programs as there are
    /// operations have every one of them.
    pub fn new(seed: u64, samples: &[Sample]) -> Program {
        let mut dice = Dice(seed);
        let size = match dice.roll(64) {
            0 => Size::Long,
            1..=8 => Size::Medium,
            _ => Size::Small,
        };
        let dtype = if dice.roll(2) == 0 { DType::F32 } else { DType::F64 };
        let graph = Graph { inputs: vec![], consts: vec![], steps: vec![], outputs: vec![], names: vec![] };
        let (draws, examples, values) = (Vec::new(), HashMap::new(), Vec::new());
        let mut maker = Maker { dice, graph, draws, dtype, size, examples, values };
        maker.inputs();
        let steps = if size == Size::Small { 2 + maker.dice.roll(9) } else { 1 + maker.dice.roll(5) };
        let (own, mut result) = (maker.dice.roll(steps), None);
        for k in 0..steps {
            if k == own {
                let x = maker.pick();
                result = maker.named(Op::NAMES[(seed % Op::NAMES.len() as u64) as usize], samples, x);
                maker.keep(result);
            } else {
                maker.step(samples);
            }
        }
        maker.outputs(result);
        Program { graph: maker.graph, draws: maker.draws, dtype, long: size != Size::Small }
    }

    /// Inputs for a call: other numbers in other layouts each time.
    pub fn inputs(&self, call: u64) -> Vec<Tensor> {
        let mut dice = Dice(call.wrapping_mul(0x9e37_79b9));
        let inputs = self.draws.iter().enumerate();
        inputs
            .map(|(k, draw)| arranged(&mut dice, draw, Key::new(call).fold_in(k as u64), self.dtype))
            .collect()
    }
}

/// A tensor in one of several layouts: row-major, transposed, every second element of a larger one, run backward, repeated.
fn arranged(dice: &mut Dice, draw: &Draw, key: Key, dtype: DType) -> Tensor {
    let shape: Vec<usize> = match draw {
        Draw::Float(_, s) | Draw::Index(_, s) | Draw::Mask(s) | Draw::Distinct(s) | Draw::Complex(s) => {
            s.to_vec()
        }
        // In another layout it would be another kind of matrix.
        #[cfg(feature = "linalg")]
        Draw::Matrix(..) => return draw.tensor(&key, dtype),
    };
    let with = |shape: Vec<usize>| match draw {
        Draw::Float(domain, _) => Draw::Float(*domain, shape.into()),
        Draw::Index(n, _) => Draw::Index(*n, shape.into()),
        Draw::Mask(_) => Draw::Mask(shape.into()),
        Draw::Distinct(_) => Draw::Distinct(shape.into()),
        #[cfg(feature = "linalg")]
        Draw::Matrix(..) => unreachable!("drawn above"),
        Draw::Complex(_) => Draw::Complex(shape.into()),
    };
    if shape.is_empty() || shape.contains(&0) {
        return draw.tensor(&key, dtype);
    }
    let axis = dice.roll(shape.len());
    let other = |n: usize| {
        let mut s = shape.clone();
        s[axis] = n;
        with(s).tensor(&key, dtype)
    };
    match dice.roll(7) {
        0 => {
            let back: Vec<isize> = (0..shape.len() as isize).rev().collect();
            with(shape.iter().rev().copied().collect()).tensor(&key, dtype).permute(&back)
        }
        1 => {
            let region = |(k, &n): (usize, &usize)| if k == axis { (1, 2, n) } else { (0, 1, n) };
            let axes = shape.iter().enumerate().map(region).collect();
            let wide = other(2 * shape[axis] + 1);
            bind(Slice { region: SliceSpec { axes } }, &[&wide]).expect("it is inside")
        }
        2 => other(shape[axis]).flip(axis as isize),
        3 => other(1).broadcast_to(shape.clone()),
        4 => other(shape[axis] + 2).narrow(axis as isize, 1, shape[axis]),
        _ => draw.tensor(key, dtype),
    }
}

impl Maker {
    fn roll(&mut self, n: usize) -> usize {
        self.dice.roll(n)
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.dice.roll(one_in) == 0
    }

    fn shape(&self, x: Ref) -> Vec<usize> {
        self.graph.aval(x).shape.to_vec()
    }

    /// An input of its own.
    fn input(&mut self, draw: Draw) -> Ref {
        let k = self.draws.len();
        let x = draw.tensor(Key::new(k as u64), self.dtype);
        self.graph.inputs.push(Aval { dtype: x.dtype(), shape: x.node().shape.clone() });
        self.draws.push(draw);
        self.examples.insert(Ref::Input(k), x);
        Ref::Input(k)
    }

    fn constant(&mut self, value: Tensor) -> Ref {
        let at = Ref::Const(self.graph.consts.len());
        self.graph.consts.push(value.clone());
        self.examples.insert(at, value);
        at
    }

    /// A number in some shape.
    fn number(&mut self, number: f64, shape: &[usize]) -> Ref {
        self.constant(Tensor::full(shape, number).cast(self.dtype))
    }

    fn any_number(&mut self, shape: &[usize]) -> Ref {
        let number = NUMBERS[self.roll(NUMBERS.len())];
        self.number(number, shape)
    }

    /// An operation, unless it cannot be: types that do not fit, too many elements, numbers that are too large.
    fn push(&mut self, op: impl Into<Op>, args: &[Ref]) -> Option<Ref> {
        let op = op.into();
        let x: Vec<&Tensor> = args.iter().map(|a| &self.examples[a]).collect();
        let y = bind(op.clone(), &x).ok()?;
        let most = match self.size {
            Size::Small => 200,
            Size::Medium => 4000,
            Size::Long => 40_000,
        };
        if y.numel() > most || y.rank() > 5 {
            return None;
        }
        let numbers = y.numbers();
        // A key is not a number.
        if !matches!(op, Op::FoldIn(_)) && numbers.iter().any(|v| !v.is_finite() || v.abs() > LARGEST) {
            return None;
        }
        let avals = [Aval { dtype: y.dtype(), shape: y.node().shape.clone() }].into();
        self.graph.steps.push(Step { op, args: args.into(), avals, location: caller() });
        let at = Ref::Step(self.graph.steps.len() - 1, 0);
        self.examples.insert(at, y);
        Some(at)
    }

    /// A value that later operations may take.
    fn keep(&mut self, x: Option<Ref>) {
        if let Some(x) = x
            && !self.values.contains(&x)
        {
            self.values.push(x);
        }
    }

    /// A float that is there, rather a new one than an old one.
    fn pick(&mut self) -> Ref {
        let float = |x: &&Ref| self.graph.aval(**x).dtype == self.dtype;
        let all: Vec<Ref> = self.values.iter().filter(float).copied().collect();
        let from = if self.chance(2) { all.len().saturating_sub(4) } else { 0 };
        all[from + self.roll(all.len() - from)]
    }

    fn inputs(&mut self) {
        let length = |maker: &mut Maker| match maker.roll(40) {
            0 => 0,
            1..=6 => 1,
            _ => [2, 3, 4, 5, 7][maker.roll(5)],
        };
        let mut base: Vec<usize> =
            (0..[0, 1, 1, 2, 2, 2, 2, 3][self.roll(8)]).map(|_| length(self)).collect();
        match self.size {
            Size::Small => {}
            Size::Medium => {
                let long = [64, 100, 257, 520, 1030, 40][self.roll(6)];
                base = if long == 40 { vec![40, 40] } else { vec![1 + self.roll(3), long] };
                if self.chance(3) {
                    base.swap(0, 1);
                }
            }
            Size::Long => base = vec![1 + self.roll(2), [8192, 8193, 9001][self.roll(3)]],
        }
        // Square ones: there a wrong axis does not show in the shape.
        if base.len() > 1 && self.size == Size::Small && self.chance(2) {
            let last = base.len() - 1;
            base[last - 1] = base[last];
        }
        let mut shapes = vec![base.clone()];
        for _ in 0..self.roll(3) {
            let mut s = base.clone();
            match self.roll(4) {
                0 => s.iter_mut().filter(|_| self.dice.roll(2) == 0).for_each(|n| *n = 1),
                1 if !s.is_empty() => drop(s.remove(0)),
                2 => s.reverse(),
                _ => {}
            }
            shapes.push(s);
        }
        for shape in shapes {
            let domain = if self.chance(4) { Domain::positive } else { Domain::any };
            let x = self.input(Draw::new(domain, &shape));
            self.values.push(x);
        }
    }

    /// Some values, the last one among them, and a float at least.
    fn outputs(&mut self, named: Option<Ref>) {
        let mut outputs = vec![self.values[self.values.len() - 1]];
        for _ in 0..self.roll(4) {
            let from = self.values.len() / 2;
            let k = from + self.roll(self.values.len() - from);
            outputs.push(self.values[k]);
        }
        let float = self.pick();
        outputs.push(float);
        outputs.extend(named);
        outputs.dedup();
        self.graph.outputs = outputs;
        self.graph = self.graph.clone().pruned();
    }

    /// Any operation of the list, by one of its samples.
    fn sampled(&mut self, samples: &[Sample], x: Ref) -> Option<Ref> {
        // First the operation, so that one with many samples takes nothing away from the others.
        let name = Op::NAMES[self.roll(Op::NAMES.len())];
        self.named(name, samples, x)
    }

    /// An operation by one of its samples, on values that are there; on inputs of its own where they cannot be made to fit, and now and then
    /// where they could.
    fn named(&mut self, name: &str, samples: &[Sample], x: Ref) -> Option<Ref> {
        let own: Vec<&Sample> = samples.iter().filter(|s| s.op.name() == name).collect();
        let sample = own[self.roll(own.len())];
        let op = self.varied(&sample.op);
        let there = if self.chance(8) { None } else { self.operands(sample, x) };
        let y = there.and_then(|args| self.push(op.clone(), &args)).or_else(|| {
            let args: Vec<Ref> = sample.inputs.iter().map(|draw| self.input(draw.clone())).collect();
            self.push(op, &args)
        })?;
        self.as_float(y)
    }

    /// Values that are there, in the shapes and domains of a sample.
    fn operands(&mut self, sample: &Sample, x: Ref) -> Option<Vec<Ref>> {
        let shape: Shape = self.shape(x).into();
        let mut args = Vec::new();
        for (k, draw) in sample.inputs.iter().enumerate() {
            let here = |own: &Shape| if sample.op.elementwise() { shape.to_vec() } else { own.to_vec() };
            args.push(match draw {
                Draw::Float(domain, own) => {
                    let value = if k == 0 { x } else { self.pick() };
                    let value = match self.roll(8) {
                        0 => self.any_number(&here(own)),
                        _ => self.fitted(value, &here(own))?,
                    };
                    self.within(value, *domain)?
                }
                Draw::Complex(own) => {
                    let im = self.pick();
                    let (re, im) = (self.fitted(x, &here(own))?, self.fitted(im, &here(own))?);
                    let re = self.within(re, Domain::positive)?;
                    self.push(MakeComplex, &[re, im])?
                }
                Draw::Index(n, own) => self.index(*n, &here(own)),
                Draw::Mask(own) => self.mask(&here(own))?,
                // All modes agree where numbers are equal, too.
                Draw::Distinct(own) => {
                    let value = self.pick();
                    self.fitted(value, &here(own))?
                }
                #[cfg(feature = "linalg")]
                Draw::Matrix(shift, own) => match self.roll(3) {
                    0 => self.input(draw.clone()),
                    _ => self.matrix(x, *shift, own)?,
                },
            });
        }
        if matches!(sample.op, Op::Uniform(_) | Op::Randn(_) | Op::Bernoulli(_)) && self.chance(2) {
            let mut keys = self.shape(args[0]);
            keys.pop();
            let number = self.index(9, &keys);
            args[0] = self.push(FoldIn, &[args[0], number])?;
        }
        Some(args)
    }

    /// An operation with other parameters, where its operands need not be others for that.
    fn varied(&mut self, op: &Op) -> Op {
        let relations = [Relation::Eq, Relation::Ne, Relation::Lt, Relation::Le, Relation::Gt, Relation::Ge];
        match op {
            Op::Compare(_) => Compare { relation: relations[self.roll(6)] }.into(),
            Op::Logic(_) => {
                let connectives = [Connective::And, Connective::Or, Connective::Xor];
                Logic { connective: connectives[self.roll(3)] }.into()
            }
            Op::Clamp(_) => {
                let low = NUMBERS[self.roll(NUMBERS.len())];
                Clamp { low, high: low + [0.0, 0.5, 2.0][self.roll(3)] }.into()
            }
            Op::Cast(_) => {
                let all = [DType::Bool, DType::F32, DType::F64, DType::I64, DType::C64, DType::C128];
                Cast { to: all[self.roll(6)] }.into()
            }
            Op::ArgExtreme(a) => ArgExtreme { axes: a.axes.clone(), largest: self.chance(2) }.into(),
            Op::Truth(t) => Truth { axes: t.axes.clone(), every: self.chance(2) }.into(),
            other => other.clone(),
        }
    }

    /// A value as a float of the program; now and then it is kept as it was, too.
    fn as_float(&mut self, x: Ref) -> Option<Ref> {
        if self.graph.aval(x).dtype == self.dtype {
            return Some(x);
        }
        if self.chance(3) {
            self.keep(Some(x));
        }
        if !self.graph.aval(x).dtype.is_complex() {
            return self.push(Cast { to: self.dtype }, &[x]);
        }
        let part = if self.chance(2) { self.push(Real, &[x])? } else { self.push(Imag, &[x])? };
        self.as_float(part)
    }

    /// A value in a domain.
    fn within(&mut self, x: Ref, domain: Domain) -> Option<Ref> {
        let shape = self.shape(x);
        let then = |maker: &mut Maker, f: Op, factor: f64, more: f64| {
            let y = maker.push(f, &[x])?;
            let y = match factor {
                1.0 => y,
                _ => {
                    let c = maker.number(factor, &shape);
                    maker.push(Mul, &[y, c])?
                }
            };
            let c = maker.number(more, &shape);
            maker.push(Add, &[y, c])
        };
        match domain {
            Domain::any | Domain::fractional => Some(x),
            Domain::positive | Domain::nonzero => match self.roll(3) {
                0 => then(self, Square.into(), 1.0, 0.4),
                1 => then(self, Abs.into(), 1.0, 0.3),
                _ => then(self, Sigmoid.into(), 1.5, 0.3),
            },
            Domain::unit => then(self, Tanh.into(), 0.8, 0.0),
            Domain::above_one => then(self, Sigmoid.into(), 1.0, 1.2),
            Domain::probability => then(self, Sigmoid.into(), 0.8, 0.1),
            Domain::dividend => then(self, Sigmoid.into(), 0.3, 2.3),
            Domain::divisor => then(self, Sigmoid.into(), 0.16, 0.92),
            // Not computed: a rounding more or less could be another order.
            Domain::order => Some(self.number(1.5, &shape)),
        }
    }

    /// A value as matrices that [`Draw::Matrix`] could have drawn.
    #[cfg(feature = "linalg")]
    fn matrix(&mut self, x: Ref, shift: usize, shape: &[usize]) -> Option<Ref> {
        let x = self.fitted(x, shape)?;
        let bounded = self.push(Tanh, &[x])?;
        let factor = self.number(0.15, shape);
        let more = self.push(Mul, &[bounded, factor])?;
        let diagonals = self.constant(Draw::diagonals(shift, shape).cast(self.dtype));
        self.push(Add, &[diagonals, more])
    }

    /// A value in another shape: repeated, reshaped, cut or put after itself.
    fn fitted(&mut self, x: Ref, to: &[usize]) -> Option<Ref> {
        let from = self.shape(x);
        if from == to {
            return Some(x);
        }
        let lead = to.len().checked_sub(from.len());
        let repeats = lead.is_some_and(|l| from.iter().zip(&to[l..]).all(|(&n, &m)| n == m || n == 1));
        if repeats {
            return self.push(Broadcast { to: to.into() }, &[x]);
        }
        let (have, need) = (from.iter().product::<usize>(), to.iter().product::<usize>());
        if have == 0 {
            return Some(self.any_number(to));
        }
        let mut y = if from.len() == 1 { x } else { self.push(Reshape { to: have.into() }, &[x])? };
        if have < need {
            y = self.push(Concat { axis: 0 }, &vec![y; need.div_ceil(have)])?;
        }
        let have = self.shape(y)[0];
        if have > need {
            let start = self.roll(have - need + 1);
            let part =
                if self.chance(4) && need > 0 { (start + need - 1, -1, need) } else { (start, 1, need) };
            y = self.push(Slice { region: SliceSpec { axes: [part].into() } }, &[y])?;
        }
        if to.len() == 1 { Some(y) } else { self.push(Reshape { to: to.into() }, &[y]) }
    }

    /// Integers below `n`: given, or constants.
    fn index(&mut self, n: usize, shape: &[usize]) -> Ref {
        let draw = Draw::Index(n.max(1), shape.into());
        match self.roll(2) {
            0 => self.input(draw),
            _ => {
                let key = Key::new(self.roll(1 << 20) as u64);
                self.constant(draw.tensor(key, self.dtype))
            }
        }
    }

    fn mask(&mut self, shape: &[usize]) -> Option<Ref> {
        if self.chance(4) {
            return Some(self.input(Draw::Mask(shape.into())));
        }
        let (a, b) = (self.pick(), self.pick());
        let (a, b) = (self.fitted(a, shape)?, self.fitted(b, shape)?);
        let relation = [Relation::Gt, Relation::Le, Relation::Lt, Relation::Ne][self.roll(4)];
        self.push(Compare { relation }, &[a, b])
    }
}
