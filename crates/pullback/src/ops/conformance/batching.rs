//! The laws of batching: an operation on all lanes at once is the operation on one after the other, whichever inputs
//! are mapped, and so are its pullback and its pushforward, inside and around.

use super::*;
use crate::{jvp, vjp, vmap_axes};

const LANES: usize = 3;

/// An operation, and inputs of which some are different in each lane.
struct Lanes {
    op: Op,
    mapped: Vec<bool>,
    /// Mapped inputs have their lanes along the first axis.
    all: Vec<Tensor>,
}

/// Every sample with every choice of mapped inputs.
fn cases() -> Vec<Lanes> {
    let mut out = Vec::new();
    for (k, sample) in Op::samples().iter().enumerate() {
        let lanes: Vec<Case> = (0..LANES)
            .map(|l| Case::new(sample, DType::F64, Key::new((1 + l) as u64 * 1000 + k as u64)))
            .collect();
        for subset in 1..1 << sample.inputs.len() {
            let mapped: Vec<bool> = (0..sample.inputs.len()).map(|j| subset >> j & 1 == 1).collect();
            let input = |(j, &mapped): (usize, &bool)| match mapped {
                true => Tensor::stack(&lanes.iter().map(|c| c.all[j].clone()).collect::<Vec<_>>(), 0),
                false => lanes[0].all[j].clone(),
            };
            let all = mapped.iter().enumerate().map(input).collect();
            out.push(Lanes { op: lanes[0].op.clone(), mapped, all });
        }
    }
    out
}

/// A case of one lane, and the cotangent or tangents that belong to it, as one list.
type Args = Vec<Tensor>;

impl Lanes {
    fn arity(&self) -> usize {
        self.mapped.len()
    }

    fn is_moving(&self, k: usize) -> bool {
        self.all[k].dtype().is_differentiable()
    }

    fn differentiable(&self) -> bool {
        (0..self.arity()).any(|k| self.is_moving(k))
            && self.apply(&self.lane(&self.all, 0)).dtype().is_differentiable()
    }

    fn apply(&self, x: &[Tensor]) -> Tensor {
        bind(self.op.clone(), &x.iter().collect::<Vec<_>>()).unwrap()
    }

    /// Batched `l` of a list of inputs and of what follows them, which is mapped.
    fn lane(&self, x: &[Tensor], l: usize) -> Args {
        let one = |(k, t): (usize, &Tensor)| match self.mapped.get(k).copied().unwrap_or(true) {
            true => t.get(l as isize),
            false => t.clone(),
        };
        x.iter().enumerate().map(one).collect()
    }

    fn floats(&self, x: &[Tensor]) -> Args {
        (0..self.arity()).filter(|&k| self.is_moving(k)).map(|k| x[k].clone()).collect()
    }

    /// The operation as a function of its float inputs, the others being those of `x`.
    fn of_floats<'a>(&'a self, x: &'a [Tensor]) -> impl Fn(&Args) -> Tensor + 'a {
        move |floats| {
            let mut floats = floats.iter();
            let input =
                |k: usize| if self.is_moving(k) { floats.next().unwrap().clone() } else { x[k].clone() };
            let all: Args = (0..self.arity()).map(input).collect();
            self.apply(&all)
        }
    }

    fn pull(&self, x: &Args) -> Args {
        vjp(self.of_floats(x), &self.floats(x)).1(&x[self.arity()])
    }

    fn push(&self, x: &Args) -> Args {
        let tangents = x[self.arity()..].to_vec();
        vec![jvp(self.of_floats(x), &self.floats(x), &tangents).1]
    }

    /// Whether `f` of all lanes at once gives what it gives lane by lane.
    fn agrees(&self, what: &str, x: &Args, f: impl Fn(&Args) -> Args) -> std::result::Result<(), String> {
        let axes: Vec<Option<isize>> =
            (0..x.len()).map(|k| self.mapped.get(k).copied().unwrap_or(true).then_some(0)).collect();
        let batched = vmap_axes(&f, &axes, 0)(x);
        let single: Vec<Args> = (0..LANES).map(|l| f(&self.lane(x, l))).collect();
        batched.iter().enumerate().try_for_each(|(k, got)| {
            let expected = Tensor::stack(&single.iter().map(|s| s[k].clone()).collect::<Vec<_>>(), 0);
            self.near(what, got, &expected)
        })
    }

    fn near(&self, what: &str, got: &Tensor, expected: &Tensor) -> std::result::Result<(), String> {
        // A product of many rows is summed in another order than that of a few.
        let close = |(&a, &b): (&f64, &f64)| pullback_testing::alike(a, b, 1e-12);
        let (a, b) = (got.numbers(), expected.numbers());
        let same = got.dtype() == expected.dtype() && got.shape() == expected.shape();
        match same && a.iter().zip(&b).all(close) {
            true => Ok(()),
            false => Err(format!("{:?}, mapped {:?}: {what}: {got}\nfor\n{expected}", self.op, self.mapped)),
        }
    }

    /// A number for each element that is different in each lane, in the type of the output.
    fn cotangent(&self) -> Tensor {
        let y = self.apply(&self.lane(&self.all, 0));
        uniform(Key::new(7), y.node().shape.inserted(0, LANES), y.dtype()) + 0.5
    }

    fn check(&self) -> std::result::Result<(), String> {
        self.agrees("value", &self.all, |x| vec![self.apply(x)])?;
        if !self.differentiable() {
            return Ok(());
        }
        let mut pulled = self.all.clone();
        pulled.push(self.cotangent());
        self.agrees("pullback", &pulled, |x| self.pull(x))?;

        let tangent = |k: usize| {
            let shape = self.lane(&self.all, 0)[k].node().shape.inserted(0, LANES);
            uniform(Key::new(20 + k as u64), shape, self.all[k].dtype()) + 0.5
        };
        let mut pushed = self.all.clone();
        pushed.extend((0..self.arity()).filter(|&k| self.is_moving(k)).map(tangent));
        self.agrees("pushforward", &pushed, |x| self.push(x))?;
        self.check_around()
    }

    /// The pullback of the batched operation: stacked for a mapped input, summed for a shared one.
    fn check_around(&self) -> std::result::Result<(), String> {
        let axes: Vec<Option<isize>> = self.mapped.iter().map(|m| m.then_some(0)).collect();
        let batched = |floats: &Args| {
            let mut floats = floats.iter();
            let input =
                |k: usize| if self.is_moving(k) { floats.next().unwrap() } else { &self.all[k] }.clone();
            let all: Args = (0..self.arity()).map(input).collect();
            vmap_axes(|x: &Args| self.apply(x), &axes, 0)(&all)
        };
        let g = self.cotangent();
        let got = vjp(batched, &self.floats(&self.all)).1(&g);
        let mut x = self.all.clone();
        x.push(g);
        let single: Vec<Args> = (0..LANES).map(|l| self.pull(&self.lane(&x, l))).collect();
        let floats = (0..self.arity()).filter(|&k| self.is_moving(k));
        for ((j, k), got) in floats.enumerate().zip(&got) {
            let stacked = Tensor::stack(&single.iter().map(|s| s[j].clone()).collect::<Vec<_>>(), 0);
            let expected = if self.mapped[k] { stacked } else { stacked.sum_axes(0) };
            self.near("pullback of vmap", got, &expected)?;
        }
        Ok(())
    }
}

#[test]
fn batched_is_lane_by_lane() {
    all_hold(cases(), |case| case.check().unwrap_or_else(|e| panic!("{e}")));
}

/// No operation runs lane by lane.
#[test]
fn every_operation_has_a_batching_rule() {
    all_hold(cases(), |case| {
        let lane = |(value, &mapped): (&Tensor, &bool)| Batched { value: value.clone(), mapped };
        let lanes: Vec<Batched> = case.all.iter().zip(&case.mapped).map(lane).collect();
        assert!(case.op.batch(&lanes, LANES).is_some(), "{:?}, mapped {:?}", case.op, case.mapped);
    });
}

/// No lanes at all are an empty axis, of the right type.
#[test]
fn no_lanes() {
    all_hold(cases(), |case| {
        let lane = case.apply(&case.lane(&case.all, 0));
        let empty = |(t, &mapped): (&Tensor, &bool)| if mapped { t.narrow(0, 0, 0) } else { t.clone() };
        let all: Args = case.all.iter().zip(&case.mapped).map(empty).collect();
        let axes: Vec<Option<isize>> = case.mapped.iter().map(|m| m.then_some(0)).collect();
        let y = vmap_axes(|x: &Args| case.apply(x), &axes, 0)(&all);
        assert_eq!(y.shape(), &lane.node().shape.inserted(0, 0)[..], "{:?}", case.op);
        assert_eq!(y.dtype(), lane.dtype(), "{:?}", case.op);
    });
}

/// The mutation test: with a fault in its batching rule, no operation passes.
#[test]
fn faults_of_batching_are_found() {
    let mut tried = 0;
    all_hold(cases(), |case| {
        // Nothing to see in an output without elements, or with the same one in each lane.
        let lane = |l| case.apply(&case.lane(&case.all, l)).numbers();
        let mut faults = Vec::new();
        if lane(0) != lane(LANES - 1) {
            faults.push(Fault::Lanes);
        }
        if case.lane(&case.all, 0)[0].shape() == [3, 3] && off_by_one(&case.op).is_some() {
            faults.push(Fault::BatchedAxis(off_by_one));
        }
        for fault in faults {
            let found = fault::with(case.op.name(), fault, || case.check()).is_err();
            assert!(found, "{:?}, mapped {:?}: {fault:?} was not found", case.op, case.mapped);
            tried += 1;
        }
    });
    assert!(tried > 250, "only {tried} faults were tried");
}

/// What batching makes of an ordinary function: one product over all rows, and nothing that an author of batched code would
/// not have written.
#[test]
fn batched_as_by_hand() {
    let w = Tensor::ones([4, 5]);
    let f = |x: &Tensor| x.matmul(&w).tanh().sum();
    let steps = |g: &dyn Fn(&Tensor) -> Tensor| -> Vec<(&str, Shape)> {
        let input = Aval { dtype: DType::F64, shape: [100, 4].into() };
        let graph = crate::graph::trace_leaves(|x| Ok(vec![g(&x[0])]), vec![input]).unwrap();
        // A change of shape copies nothing here.
        let works = graph.steps.iter().filter(|s| s.op.name() != "reshape");
        works.map(|s| (s.op.name(), s.avals[0].shape.clone())).collect()
    };
    let by_hand = steps(&|xs| xs.matmul(&w).tanh().sum_axes(-1));
    let batched = steps(&|xs| crate::vmap(f)(xs));
    assert_eq!(by_hand.iter().map(|s| s.0).collect::<Vec<_>>(), ["matmul", "tanh", "sum"]);
    assert_eq!(batched, by_hand);

    // Summed over the examples, the gradient of the shared factor is one product too, not the sum of a hundred.
    let gradient =
        steps(&|xs| crate::grad(|w: &Tensor| crate::vmap(|x: &Tensor| x.matmul(w).sum())(xs).sum())(&w));
    assert_eq!(gradient, [("permute", [4, 100].into()), ("matmul", [4, 5].into())]);
}
