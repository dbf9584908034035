//! The law of blocks at mixed levels: around every operation, a checkpoint, a compiled function, a loop or a branch is its plain function,
//! where a transform inside covers some of the inputs and a gradient outside asks for the others.
//!
//! The bodies here are one operation each, of every kind. `tests/transforms/blocks` has few operations, in programs of many constructs.

use super::*;
use crate::prelude::*;
use crate::{Policy, Schedule, checkpoint_with, scan_with};
use pullback_testing::alike;
use std::sync::Arc;

/// How many points the transform that maps runs over.
const LANES: u64 = 3;

/// What stands around the operation.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Plain,
    Checkpoint,
    /// A checkpoint that calls the function again.
    Rerun,
    Compile,
    /// A loop that keeps few of its states, with the operands among them.
    Scan,
    /// The same, which calls its body again, and the operands are captured.
    ScanRerun,
    Cond,
}

const KINDS: [Kind; 6] =
    [Kind::Checkpoint, Kind::Rerun, Kind::Compile, Kind::Scan, Kind::ScanRerun, Kind::Cond];

/// The transform that covers some of the inputs.
#[derive(Clone, Copy, Debug)]
enum Inside {
    Vmap,
    Jvp,
    Grad,
    Compile,
}

const INSIDE: [Inside; 4] = [Inside::Vmap, Inside::Jvp, Inside::Grad, Inside::Compile];

type Args = Vec<Tensor>;

/// An operation's operands, then a factor, so that there are two inputs at least.
struct Blocks {
    case: Case,
    /// The inputs at each of the points.
    points: Vec<Args>,
}

fn blocks(samples: &[Sample]) -> Vec<Arc<Blocks>> {
    let one = |(k, sample): (usize, &Sample)| {
        let at = |lane: u64| Case::new(sample, DType::F64, Key::new(lane * 10_000 + k as u64));
        let inputs = |lane: u64| {
            let factor = Tensor::scalar([0.8, -1.3, 0.4][lane as usize]);
            at(lane).floats().into_iter().chain([factor]).collect()
        };
        Arc::new(Blocks { case: at(0), points: (0..LANES).map(inputs).collect() })
    };
    let all = samples.iter().enumerate().map(one);
    all.filter(|b| b.case.differentiable()).collect()
}

/// One real number that depends on every element.
fn weighted(y: &Tensor) -> Tensor {
    let weights: Vec<f64> = (0..y.numel()).map(|k| 1.0 + (k as f64 * 0.7).sin() * 0.5).collect();
    let w = Tensor::from_slice(&weights, y.shape()).cast(y.dtype().real());
    match y.dtype().is_complex() {
        true => (y.real() * &w).sum() + (y.imag() * w).sum() * 0.7,
        false => (y * w).sum(),
    }
    .cast(DType::F64)
}

impl Blocks {
    /// The operation, weighted by the factor.
    fn body(&self, x: &[Tensor]) -> Tensor {
        let (factor, floats) = x.split_last().expect("there is a factor");
        weighted(&self.case.apply(floats)) * factor.sin()
    }

    /// A loop of two steps: its state and its item to the next state.
    fn step(&self, x: &[Tensor], sum: &Tensor, item: &Tensor) -> Tensor {
        sum * 0.5 + self.body(x) * item
    }

    fn run(self: &Arc<Blocks>, kind: Kind, x: &Args) -> Tensor {
        let this = self.clone();
        let f = move |x: &Args| this.body(x);
        let (zero, items) = (Tensor::scalar(0.3), Tensor::from([0.9, 1.2]));
        match kind {
            Kind::Plain => f(x),
            Kind::Checkpoint => checkpoint(f)(x),
            Kind::Rerun => checkpoint_with(Policy::rerun(), f)(x),
            Kind::Compile => compile(f).call(x),
            Kind::Scan => {
                let step = |(x, sum): &(Args, Tensor), item: &Tensor| {
                    let next = self.step(x, sum, item);
                    ((x.clone(), next.clone()), next)
                };
                let schedule = Schedule::Binomial { slots: 1 };
                let ((_, sum), all) = scan_with(schedule, step, &(x.clone(), zero), &items);
                sum + all.sum() * 0.1
            }
            Kind::ScanRerun => {
                let (this, x) = (self.clone(), x.clone());
                let step = move |sum: &Tensor, item: &Tensor| {
                    let next = this.step(&x, sum, item);
                    (next.clone(), next)
                };
                let (sum, all) = scan_with(Schedule::Recursive.rerun(), step, &zero, &items);
                sum + all.sum() * 0.1
            }
            Kind::Cond => {
                let branches = |x: &Args| cond(&x[x.len() - 1].gt(0.0), &f, |x| f(x) * 0.5, x);
                compile(branches).call(x)
            }
        }
    }

    /// What the construct means.
    fn plain(self: &Arc<Blocks>, kind: Kind, x: &Args) -> Tensor {
        match kind {
            Kind::Scan | Kind::ScanRerun => {
                let first = self.step(x, &Tensor::scalar(0.3), &Tensor::scalar(0.9));
                let second = self.step(x, &first, &Tensor::scalar(1.2));
                &second + (first + &second) * 0.1
            }
            Kind::Cond => {
                let y = self.body(x);
                Tensor::where_(&x[x.len() - 1].gt(0.0), &y, &y * 0.5)
            }
            _ => self.run(Kind::Plain, x),
        }
    }

    /// With other values for the inputs that the mask names.
    fn with(&self, x: &Args, mask: usize, chosen: &Args) -> Args {
        let mut chosen = chosen.iter();
        let each = |(k, x): (usize, &Tensor)| match mask >> k & 1 {
            1 => chosen.next().expect("one for each").clone(),
            _ => x.clone(),
        };
        x.iter().enumerate().map(each).collect()
    }

    /// The gradient with respect to the inputs outside of the mask, of a transform with respect to those inside.
    fn derivative(&self, inside: Inside, mask: usize, f: impl Fn(&Args) -> Tensor) -> Args {
        let of = |x: &Args, mask: usize| -> Args {
            x.iter().enumerate().filter(|(k, _)| mask >> k & 1 == 1).map(|(_, t)| t.clone()).collect()
        };
        let here = &self.points[0];
        let (chosen, rest) = (of(here, mask), of(here, !mask));
        let outer = |rest: &Args| {
            let x = self.with(here, !mask, rest);
            let inner = |p: &Args| f(&self.with(&x, mask, p));
            let tangent = |t: &Tensor| uniform(Key::new(5), t.shape(), t.dtype()) + 0.5;
            match inside {
                Inside::Vmap => {
                    let lanes: Vec<Args> = self.points.iter().map(|x| of(x, mask)).collect();
                    let stack = |k: usize| Tensor::stack(&lanes.iter().map(|l| &l[k]).collect::<Vec<_>>(), 0);
                    weighted(&vmap(inner)(&(0..chosen.len()).map(stack).collect()))
                }
                Inside::Jvp => {
                    let (y, dy) = jvp(inner, &chosen, &chosen.iter().map(tangent).collect());
                    dy + y * 0.3
                }
                Inside::Grad => grad(inner)(&chosen).iter().map(weighted).reduce(|a, b| a + b).expect("some"),
                Inside::Compile => compile(inner).call(&chosen),
            }
        };
        grad(outer)(&rest)
    }

    /// Where the construct is not its plain function.
    fn broken(self: &Arc<Blocks>, kind: Kind, inside: Inside, mask: usize) -> Option<String> {
        let expected = self.derivative(inside, mask, |x| self.plain(kind, x));
        let what = || format!("{:?}: {kind:?} under {inside:?} of {mask:b}", self.case.op);
        let found = match caught(|| self.derivative(inside, mask, |x| self.run(kind, x))) {
            Ok(found) => found,
            Err(panic) => return Some(format!("{}: {panic}", what())),
        };
        let numbers = |all: &Args| all.iter().flat_map(Tensor::numbers).collect::<Vec<f64>>();
        let (found, expected) = (numbers(&found), numbers(&expected));
        let same =
            found.len() == expected.len() && found.iter().zip(&expected).all(|(&a, &b)| alike(a, b, 1e-10));
        (!same).then(|| format!("{}: {found:?} for {expected:?}", what()))
    }
}

/// All that is wrong around these operations. For each of them every construct is tried once, each time under the next transform, and of other inputs.
fn broken(all: &[(usize, Arc<Blocks>)]) -> Vec<String> {
    let each = |(k, blocks): &(usize, Arc<Blocks>)| {
        let proper = (1 << blocks.points[0].len()) - 2;
        let one = |(j, kind): (usize, Kind)| {
            blocks.broken(kind, INSIDE[(k + j) % INSIDE.len()], 1 + (k / INSIDE.len() + j) % proper)
        };
        KINDS.into_iter().enumerate().filter_map(one).collect::<Vec<_>>()
    };
    all.iter().flat_map(each).collect()
}

#[test]
fn around_every_operation_blocks_are_their_plain_functions() {
    let all: Vec<(usize, Arc<Blocks>)> = blocks(&Op::samples()).into_iter().enumerate().collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let found: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> =
            all.chunks(all.len().div_ceil(threads)).map(|part| scope.spawn(|| broken(part))).collect();
        parts.into_iter().flat_map(|p| p.join().expect("panics are caught")).collect()
    });
    assert!(found.is_empty(), "{} blocks are wrong:\n{}", found.len(), found.join("\n"));
}

/// The mutation test: a block that loses the history of its inputs is found around every operation.
#[test]
fn faults_of_blocks_are_found() {
    let mut tried = 0;
    let names = [
        (Kind::Checkpoint, "checkpoint"),
        (Kind::Rerun, "checkpoint"),
        (Kind::Compile, "compiled"),
        (Kind::Scan, "scan_with"),
        (Kind::Cond, "compiled"),
    ];
    all_hold(blocks(&Op::samples()).iter().enumerate(), |(k, blocks)| {
        // The operands inside, so that the factor outside has a gradient wherever the value is not zero.
        let mask = (1 << (blocks.points[0].len() - 1)) - 1;
        let (kind, name) = names[k % names.len()];
        let inside = [Inside::Vmap, Inside::Jvp][k % 2];
        let g = blocks.derivative(inside, mask, |x| blocks.plain(kind, x));
        if g[0].numbers().iter().all(|v| v.abs() < 1e-9) {
            return;
        }
        let found = fault::with(name, Fault::Stripped, || blocks.broken(kind, inside, mask));
        assert!(found.is_some(), "{:?}: {kind:?} under {inside:?} was not found", blocks.case.op);
        tried += 1;
    });
    assert!(tried > 400, "only {tried} faults were tried");
}
