//! Random programs of loops, branches and blocks, each run as it is and unrolled into plain operations, under random nestings of transforms
//! that see only some of the inputs.

use pullback::ode::{self, Dopri5};
use pullback::prelude::*;
use pullback::{
    Bound, Policy, Schedule, associative_scan, checkpoint_with, custom_rule, linearize, scan_with, switch,
    while_loop_with,
};
use pullback::{Executable, implicit, name, trace};
use std::sync::Arc;

/// Statements over vectors of two numbers. The inputs come first, then the result of each statement; the last one is the value.
#[derive(Clone, Debug)]
pub struct Body {
    pub statements: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub enum Statement {
    Op(Op, usize, usize),
    Block(Block),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    First,
    Mean,
    Mul,
    Sin,
    Tanh,
    Bump,
    Larger,
    Product,
    Named,
    Quiet,
}

/// A construct around bodies. Its two arguments are given to it; what is captured is only reached by the bodies.
#[derive(Clone, Debug)]
pub struct Block {
    pub kind: Kind,
    pub bodies: Vec<Body>,
    pub args: [usize; 2],
    pub captured: Vec<usize>,
    pub steps: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Checkpoint,
    Kept(usize),
    OnDisk(usize),
    Dynamic,
    Verified,
    KeptVerified(usize),
    Offloaded,
    Compile,
    Executable,
    CustomPullback,
    CustomPushforward,
    Root,
    FixedPoint,
    Argmin,
    Adjoint,
    Rk4(usize),
    Scan,
    ScanCheckpointed(usize),
    ScanDynamic(usize),
    While,
    WhileBounded,
    WhileCheckpointed(usize),
    WhileDynamic(usize),
    Cond,
    Switch,
    Associative,
    Grad,
    Jvp,
    Vmap,
}

const POLICIES: [Policy; 4] =
    [Policy::Everything, Policy::Nothing, Policy::Products, Policy::Named(&["kept"])];

const SCHEDULES: [Schedule; 8] = [
    Schedule::All,
    Schedule::Sqrt,
    Schedule::Recursive,
    Schedule::Binomial { slots: 1 },
    Schedule::Binomial { slots: 2 },
    Schedule::Binomial { slots: 3 },
    Schedule::Online { slots: 1 },
    Schedule::Online { slots: 3 },
];

/// Whether constructs are what they are, or the operations that they mean.
#[derive(Clone, Copy, PartialEq)]
pub enum As {
    Blocks,
    Plain,
}

type Args = Vec<Tensor>;

impl Body {
    pub fn run(&self, inputs: &[Tensor], how: As) -> Tensor {
        let mut values = inputs.to_vec();
        for s in &self.statements {
            let value = match s {
                Statement::Op(op, a, b) => op.apply(&values[*a], &values[*b]),
                Statement::Block(block) => block.run(&values, how),
            };
            values.push(value);
        }
        values.pop().expect("a body has inputs")
    }
}

impl Op {
    fn apply(self, a: &Tensor, b: &Tensor) -> Tensor {
        match self {
            Op::First => a.clone(),
            Op::Mean => (a + b) * 0.5,
            Op::Mul => a * b,
            Op::Sin => a.sin(),
            Op::Tanh => (a + b * 0.3).tanh(),
            Op::Bump => (-a.square()).exp(),
            Op::Larger => a.maximum(b),
            Op::Product => Tensor::from([[0.6, -0.5], [0.4, 0.7]]).matmul(a),
            Op::Quiet => no_grad(|| (a * b).sin()),
            Op::Named => name(&(a * 0.8 + b * 0.3), "kept").sin(),
        }
    }
}

/// `x e^(-1/2) + 2 b (1 - e^(-1/2))`: the solution of `y' = b - y / 2` at 1.
fn decayed(x: &Tensor, b: &Tensor) -> Tensor {
    let e = (-0.5f64).exp();
    x * e + b * (2.0 * (1.0 - e))
}

/// The items of a loop: multiples of a vector.
fn items(x: &Tensor, n: usize) -> Tensor {
    let factors: Vec<f64> = (0..n).map(|k| 1.0 - 0.1 * k as f64).collect();
    Tensor::from_slice(&factors, [n, 1]) * x.unsqueeze(0)
}

fn scalar(v: f64) -> Tensor {
    Tensor::scalar(v)
}

impl Block {
    fn run(&self, values: &[Tensor], how: As) -> Tensor {
        let x: Args = self.args.iter().map(|&k| values[k].clone()).collect();
        let captured: Args = self.captured.iter().map(|&k| values[k].clone()).collect();
        match how {
            As::Blocks => self.apply(x, captured),
            As::Plain => self.unrolled(&x, &captured),
        }
    }

    /// A body as a function of the arguments that owns what it captures.
    fn body(
        &self,
        k: usize,
        captured: &Args,
        how: As,
    ) -> impl Fn(&Args) -> Tensor + Clone + Send + Sync + 'static {
        let (body, captured) = (Arc::new(self.bodies[k].clone()), captured.clone());
        move |x: &Args| body.run(&[&x[..], &captured].concat(), how)
    }

    /// The construct.
    fn apply(&self, x: Args, captured: Args) -> Tensor {
        let f = self.body(0, &captured, As::Blocks);
        let n = self.steps;
        let dir = std::env::temp_dir();
        let pair = |a: &Tensor, b: &Tensor| vec![a.clone(), b.clone()];
        let stepped = {
            let f = f.clone();
            move |h: &Tensor, item: &Tensor| {
                let next = f(&vec![h.clone(), item.clone()]);
                (next.clone(), next * 0.5 + item)
            }
        };
        let total = |(h, ys): (Tensor, Tensor)| h + ys.sum_axes(0);
        // State of a loop that ends when it has counted to its limit.
        type Counted = (Tensor, (Tensor, Tensor));
        let limit = Tensor::where_(&x[1].get(0).gt(0.0), scalar(n as f64), scalar((n / 2) as f64));
        let start: Counted = (x[0].clone(), (scalar(0.0), limit));
        let goes_on = |(_, (k, limit)): &Counted| k.lt(limit);
        let counted = {
            let (f, x1) = (f.clone(), x[1].clone());
            move |(h, (k, limit)): &Counted| (f(&vec![h.clone(), x1.clone()]), (k + 1.0, limit.clone()))
        };
        let residual = |p: &Args, x: &Tensor| x + x.sin() * 0.2 - f(p);
        match self.kind {
            Kind::Checkpoint => checkpoint(f)(&x),
            Kind::Kept(k) => checkpoint_with(POLICIES[k], f)(&x),
            Kind::OnDisk(k) => checkpoint_with(POLICIES[k].offload(dir), f)(&x),
            Kind::Dynamic => checkpoint_with(Policy::rerun(), f)(&x),
            Kind::Verified => checkpoint_with(Policy::rerun().verify(), f)(&x),
            Kind::KeptVerified(k) => checkpoint_with(POLICIES[k].offload(dir).verify(), f)(&x),
            Kind::Offloaded => checkpoint_with(Policy::rerun().offload(&dir), f)(&x),
            Kind::Compile => {
                let f = compile(f);
                (f.call(&x) + f.call(&x)) * 0.5
            }
            Kind::Executable => {
                let g = Executable::new(trace(f, &x)).expect("a traced graph is one");
                g.run(&x).expect("the inputs are like those of the trace").remove(0)
            }
            Kind::CustomPullback => {
                let rule = f.clone();
                custom_rule(f).pullback(move |x, _, g| vjp(|x| rule(x), x).1(g)).call(&x)
            }
            Kind::CustomPushforward => {
                let rule = f.clone();
                custom_rule(f).pushforward(move |x, _, t| jvp(|x| rule(x), x, t).1).call(&x)
            }
            Kind::Root => implicit::root(residual, &x, &Tensor::zeros([2])),
            Kind::FixedPoint => {
                implicit::fixed_point(|p: &Args, x: &Tensor| f(p) - x.sin() * 0.2, &x, &Tensor::zeros([2]))
            }
            Kind::Argmin => {
                let cost = |p: &Args, x: &Tensor| ((x - f(p)).square() * 0.5 - x.cos() * 0.2).sum();
                implicit::argmin(cost, &x, &Tensor::zeros([2]))
            }
            Kind::Adjoint => {
                let solver = Dopri5 { relative: 1e-8, absolute: 1e-8, ..Dopri5::default() };
                let y0 = x[0].clone();
                ode::adjoint(&solver, move |_, y: &Tensor, p: &Args| f(p) - y * 0.5, &x, &y0, 0.0, 1.0)
            }
            Kind::Rk4(k) => {
                let slope = move |_: f64, y: &Tensor, p: &Args| f(p) - y * 0.5;
                ode::rk4_with(SCHEDULES[k], slope, &x, &x[0], 0.0, 1.0, n)
            }
            Kind::Scan => total(scan(stepped, &x[0], &items(&x[1], n))),
            Kind::ScanCheckpointed(k) => total(scan_with(SCHEDULES[k], stepped, &x[0], &items(&x[1], n))),
            Kind::ScanDynamic(k) => total(scan_with(SCHEDULES[k].rerun(), stepped, &x[0], &items(&x[1], n))),
            Kind::While => {
                let body = |(h, k): &(Tensor, Tensor)| (f(&pair(h, &x[1])), k + 1.0);
                while_loop(|(_, k): &(Tensor, Tensor)| k.lt(n as f64), body, &(x[0].clone(), scalar(0.0))).0
            }
            Kind::WhileBounded => while_loop_with(Bound::at_most(n), goes_on, counted, &start).0,
            Kind::WhileCheckpointed(slots) => {
                while_loop_with(
                    Bound::at_most(n).schedule(Schedule::Online { slots }),
                    goes_on,
                    counted,
                    &start,
                )
                .0
            }
            Kind::WhileDynamic(slots) => {
                while_loop_with(
                    Bound::at_most(n).schedule(Schedule::Online { slots }.rerun()),
                    goes_on,
                    counted,
                    &start,
                )
                .0
            }
            Kind::Cond => cond(&x[0].get(0).gt(0.0), f, self.body(1, &captured, As::Blocks), &x),
            Kind::Switch => {
                let (g, h) = (self.body(1, &captured, As::Blocks), self.body(2, &captured, As::Blocks));
                let index = x[0].gt(0.0).cast(DType::I64).sum();
                switch(&index, &[&f, &g, &h], &x)
            }
            Kind::Associative => {
                associative_scan(|a: &Tensor, b: &Tensor| a * b * &x[0], &items(&x[1], n.max(1))).sum_axes(0)
            }
            Kind::Grad | Kind::Jvp | Kind::Vmap => self.transformed(&x, &captured, As::Blocks),
        }
    }

    /// A transform inside of a body.
    fn transformed(&self, x: &Args, captured: &Args, how: As) -> Tensor {
        let f = self.body(0, captured, how);
        let of = |a: &Tensor| f(&vec![a.clone(), x[1].clone()]);
        match self.kind {
            Kind::Grad => grad(|a: &Tensor| of(a).sum())(&x[0]),
            Kind::Jvp => jvp(of, &x[0], &x[1].cos()).1,
            _ => vmap(of)(&Tensor::stack(&[&x[0], &(&x[0] * 0.5)], 0)).sum_axes(0),
        }
    }

    /// What the construct means, in plain operations.
    fn unrolled(&self, x: &Args, captured: &Args) -> Tensor {
        let f = |a: &Tensor, b: &Tensor| self.body(0, captured, As::Plain)(&vec![a.clone(), b.clone()]);
        let n = self.steps;
        match self.kind {
            Kind::Root | Kind::FixedPoint | Kind::Argmin => {
                let b = f(&x[0], &x[1]);
                // x = b - sin(x) / 5, a contraction.
                (0..30).fold(b.clone(), |x, _| &b - x.sin() * 0.2)
            }
            Kind::Adjoint => decayed(&x[0], &f(&x[0], &x[1])),
            Kind::Rk4(_) => {
                ode::rk4(|_, y: &Tensor, p: &Args| f(&p[0], &p[1]) - y * 0.5, x, &x[0], 0.0, 1.0, n)
            }
            Kind::Scan | Kind::ScanCheckpointed(_) | Kind::ScanDynamic(_) => {
                let items = items(&x[1], n);
                let (mut h, mut total) = (x[0].clone(), Tensor::zeros([2]));
                for k in 0..n {
                    let item = items.get(k as isize);
                    h = f(&h, &item);
                    total += &h * 0.5 + item;
                }
                h + total
            }
            Kind::While => (0..n).fold(x[0].clone(), |h, _| f(&h, &x[1])),
            Kind::WhileBounded | Kind::WhileCheckpointed(_) | Kind::WhileDynamic(_) => {
                let few = x[1].get(0).gt(0.0);
                (0..n).fold(x[0].clone(), |h, k| match k < n / 2 {
                    true => f(&h, &x[1]),
                    false => Tensor::where_(&few, f(&h, &x[1]), &h),
                })
            }
            Kind::Cond => {
                let other = self.body(1, captured, As::Plain)(x);
                Tensor::where_(&x[0].get(0).gt(0.0), f(&x[0], &x[1]), other)
            }
            Kind::Switch => {
                let (g, h) = (self.body(1, captured, As::Plain)(x), self.body(2, captured, As::Plain)(x));
                let index = x[0].gt(0.0).cast(DType::I64).sum();
                let rest = Tensor::where_(&index.le(1), g, h);
                Tensor::where_(&index.le(0), f(&x[0], &x[1]), rest)
            }
            Kind::Associative => {
                let items = items(&x[1], n.max(1));
                let mut last = items.get(0);
                let mut total = last.clone();
                for k in 1..n.max(1) {
                    last = last * items.get(k as isize) * &x[0];
                    total += &last;
                }
                total
            }
            Kind::Grad | Kind::Jvp | Kind::Vmap => self.transformed(x, captured, As::Plain),
            _ => f(&x[0], &x[1]),
        }
    }
}

/// A transform around the program that sees some of the inputs; the others reach it as captured tensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layer {
    Backward(u8),
    Grad(u8),
    Jvp(u8),
    Vmap(u8),
    Linearize(u8),
    Compile(u8),
    Checkpoint(u8),
}

pub const INPUTS: usize = 4;

/// A program, and the transforms around it, the outermost first.
#[derive(Clone, Debug)]
pub struct Case {
    pub layers: Vec<Layer>,
    pub body: Body,
    pub inputs: Vec<[f64; 2]>,
}

/// With these in the places that the mask names.
fn put(x: &[Tensor], mask: u8, chosen: &[Tensor]) -> Vec<Tensor> {
    let mut chosen = chosen.iter();
    let each = |(k, x): (usize, &Tensor)| match mask >> k & 1 {
        1 => chosen.next().expect("one for each").clone(),
        _ => x.clone(),
    };
    x.iter().enumerate().map(each).collect()
}

fn weighted(y: &Tensor) -> Tensor {
    (y * Tensor::from([1.0, 0.7])).sum()
}

/// A sum that tells its terms apart.
fn combined(terms: &[Tensor]) -> Tensor {
    let factors = [1.0, 0.61, 1.43, -0.57];
    terms.iter().zip(factors).fold(Tensor::zeros([2]), |sum, (t, c)| sum + t * c)
}

impl Case {
    pub fn run(&self, how: As) -> Vec<f64> {
        let x: Args = self.inputs.iter().map(|v| Tensor::from(*v)).collect();
        self.under(&self.layers, &x, how).to_vec()
    }

    fn under(&self, layers: &[Layer], x: &[Tensor], how: As) -> Tensor {
        let Some((&layer, rest)) = layers.split_first() else { return self.body.run(x, how) };
        let (Layer::Backward(mask)
        | Layer::Grad(mask)
        | Layer::Jvp(mask)
        | Layer::Vmap(mask)
        | Layer::Linearize(mask)
        | Layer::Compile(mask)
        | Layer::Checkpoint(mask)) = layer;
        let chosen: Args =
            x.iter().enumerate().filter(|(k, _)| mask >> k & 1 == 1).map(|(_, t)| t.clone()).collect();
        let inner = |p: &Args| self.under(rest, &put(x, mask, p), how);
        let tangents: Args = chosen.iter().map(|t| t.sin() + 0.4).collect();
        match layer {
            Layer::Backward(_) => {
                let leaves: Args = chosen.iter().map(|t| t.detach().requires_grad()).collect();
                let y = weighted(&inner(&leaves));
                if y.needs_grad() {
                    y.backward();
                }
                let grads: Args =
                    leaves.iter().map(|t| t.grad().unwrap_or_else(|| Tensor::zeros([2]))).collect();
                combined(&grads)
            }
            Layer::Grad(_) => combined(&grad(|p: &Args| weighted(&inner(p)))(&chosen)),
            Layer::Jvp(_) => {
                let (y, dy) = jvp(inner, &chosen, &tangents);
                dy + y * 0.3
            }
            Layer::Vmap(_) => {
                let points = |t: &Tensor| Tensor::stack(&[t, &(t * 0.5 + 0.1), &(t * -0.7)], 0);
                let ys = vmap(inner)(&chosen.iter().map(points).collect());
                (ys * Tensor::from([[1.0], [0.8], [-0.6]])).sum_axes(0)
            }
            Layer::Linearize(_) => linearize(inner, &chosen).1(&tangents),
            Layer::Compile(_) if how == As::Blocks => compile(inner).call(&chosen),
            Layer::Checkpoint(_) if how == As::Blocks => checkpoint(inner)(&chosen),
            Layer::Compile(_) | Layer::Checkpoint(_) => inner(&chosen),
        }
    }
}
