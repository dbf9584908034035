//! The laws that every operation obeys, tested on its samples in both float types.
//!
//! First order: pullback = central differences along a random direction = pushforward. Second order: the same for the
//! pullback. Honesty: what `uses` does not name is not there to be read (see `At`), and what it names is needed.

mod batching;
mod blocks;
mod compiled;
mod device;
mod special;

use super::fault::{self, Fault};
use super::*;
use crate::check::{Check, Report};
use crate::tensor::Key;
use pullback_testing::{all_hold, caught, close};
use std::collections::{BTreeMap, BTreeSet};

/// A sample's differentiable inputs, and the operation as a function of them.
struct Case {
    op: Op,
    all: Vec<Tensor>,
}

impl Case {
    fn new(sample: &Sample, dtype: DType, key: Key) -> Case {
        let all =
            sample.inputs.iter().enumerate().map(|(k, d)| d.tensor(key.fold_in(k as u64), dtype)).collect();
        // A cast to its own type would be no test of a cast.
        let op = match &sample.op {
            Op::Cast(c) => {
                let other = if dtype == DType::F64 { DType::F32 } else { DType::F64 };
                Op::Cast(Cast { to: if c.to.is_complex() { other.complex() } else { other } })
            }
            op => op.clone(),
        };
        Case { op, all }
    }

    fn floats(&self) -> Vec<Tensor> {
        self.all.iter().filter(|t| t.dtype().is_differentiable()).cloned().collect()
    }

    fn apply(&self, floats: &[Tensor]) -> Tensor {
        let mut floats = floats.iter();
        let args: Vec<&Tensor> = self
            .all
            .iter()
            .map(|t| if t.dtype().is_differentiable() { floats.next().unwrap() } else { t })
            .collect();
        bind(self.op.clone(), &args).unwrap()
    }

    fn differentiable(&self) -> bool {
        !self.floats().is_empty() && self.apply(&self.floats()).dtype().is_differentiable()
    }

    fn check(&self, dtype: DType) -> std::result::Result<(), Report> {
        let mut check = Check { directions: 2, ..Check::default() };
        // A cast between float types has the precision of the lower one, whichever side it stands on.
        if dtype == DType::F64 && matches!(self.op, Op::Cast(_)) {
            (check.tolerance, check.step) = (Some(2e-2), Some(1e-2));
        }
        check.run(|x: &Vec<Tensor>| self.apply(x), &self.floats())
    }
}

/// Numbers from 0 to 1; of a complex type, both parts.
fn uniform(key: Key, shape: impl Into<Shape>, dtype: DType) -> Tensor {
    let shape = shape.into();
    if !dtype.is_complex() {
        return Tensor::uniform(key, &shape, dtype);
    }
    let [re, im] = key.split().map(|key| Tensor::uniform(key, &shape, dtype.real()));
    Tensor::complex(re, im)
}

/// All samples. What is drawn for one depends on the name of its operation alone, so that another operation in the list changes nothing for the rest.
fn cases(dtype: DType) -> Vec<Case> {
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    let draw = |s: &Sample| {
        let count = seen.entry(s.op.name()).or_default();
        *count += 1;
        let key = s.op.name().bytes().fold(Key::new(*count), |key, byte| key.fold_in(byte.into()));
        Case::new(s, dtype, key)
    };
    Op::samples().iter().map(draw).collect()
}

#[test]
fn formulas_give_the_same_bits() {
    let mut seen = BTreeSet::new();
    for case in [DType::F32, DType::F64].into_iter().flat_map(cases) {
        let Some(formula) = case.op.formula(&case.all) else { continue };
        let value = bind(case.op.clone(), &case.all.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(value.bits(), formula.bits(), "{}", case.op.name());
        seen.insert(case.op.name());
    }
    assert!(["gelu", "silu", "xlogy"].iter().all(|name| seen.contains(name)), "{seen:?}");
}

#[test]
fn every_operation_has_samples() {
    let sampled: BTreeSet<&str> = Op::samples().iter().map(|s| s.op.name()).collect();
    let all: BTreeSet<&str> = Op::NAMES.iter().copied().collect();
    assert_eq!(all.difference(&sampled).collect::<Vec<_>>(), Vec::<&&str>::new());
    assert_eq!(all.len(), Op::NAMES.len(), "two operations have one name");
}

#[test]
fn a_view_is_one_of_every_row_major_input() {
    all_hold(cases(DType::F64), |Case { op, all }| {
        let shape = &all[0].node().shape;
        let seen = all.len() == 1 && op.view(shape, 0, &shape.strides()).is_some();
        assert_eq!(op.is_view(), seen, "{}", op.name());
    });
}

#[test]
fn derivatives_of_first_and_second_order_f64() {
    all_hold(cases(DType::F64).iter().filter(|c| c.differentiable()), |case| {
        case.check(DType::F64).unwrap_or_else(|e| panic!("{:?}: {e}", case.op));
    });
}

#[test]
fn derivatives_of_first_and_second_order_f32() {
    all_hold(cases(DType::F32).iter().filter(|c| c.differentiable()), |case| {
        case.check(DType::F32).unwrap_or_else(|e| panic!("{:?}: {e}", case.op));
    });
}

/// f32 results and cotangents are those of f64, to the precision of f32: differences alone would not show a rule that
/// loses half of the digits.
#[test]
fn single_precision_agrees_with_double() {
    let both = cases(DType::F32).into_iter().zip(cases(DType::F64));
    all_hold(both.filter(|(c, _)| c.differentiable()), |(single, double)| {
        let exact: Vec<Tensor> =
            single.floats().iter().map(|t| t.cast(DType::promote(t.dtype(), DType::F64))).collect();
        if matches!(single.op, Op::Cast(_)) {
            return;
        }
        let (y32, pull32) = crate::vjp(|x: &Vec<Tensor>| single.apply(x), &single.floats());
        let (y64, pull64) = crate::vjp(|x: &Vec<Tensor>| double.apply(x), &exact);
        let g = uniform(Key::new(3), y64.shape(), y32.dtype()) + 0.5;
        let near = |a: &Tensor, b: &Tensor, what: &str| {
            for (a, b) in a.numbers().into_iter().zip(b.numbers()) {
                assert!(close(a, b, 1e-5), "{:?}: {what}: {a} in f32, {b} in f64", single.op);
            }
        };
        near(&y32, &y64, "value");
        for (a, b) in pull32(&g).iter().zip(&pull64(&g.cast(y64.dtype()))) {
            near(a, b, "cotangent");
        }
    });
}

/// A cotangent of zero stays zero through every elementwise rule, wherever the input is.
#[test]
fn zero_cotangents_stay_zero() {
    let odd = [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let rows = Op::samples().into_iter().filter(|s| is_row(&s.op));
    all_hold(rows.filter(|s| matches!(&s.inputs[0], Draw::Float(_, s) if s.is_empty())), |sample| {
        for a in odd {
            for b in odd {
                let x: Vec<Tensor> =
                    [a, b].iter().take(sample.inputs.len()).map(|&v| Tensor::scalar(v)).collect();
                let f = |x: &Vec<Tensor>| bind(sample.op.clone(), &x.iter().collect::<Vec<_>>()).unwrap();
                let g = crate::vjp(f, &x).1(&Tensor::scalar(0.0));
                assert!(g.iter().all(|g| g.item() == 0.0), "{:?} at {a}, {b}: {g:?}", sample.op);
            }
        }
    });
}

fn is_row(op: &Op) -> bool {
    pullback_table::ROWS.iter().any(|row| row.name == op.name())
}

/// The mutation test: with a fault in its rule, no operation passes.
#[test]
fn faults_are_found() {
    let mut tried = 0;
    all_hold(cases(DType::F64).iter().filter(|c| c.differentiable()), |case| {
        let name = case.op.name();
        let x = case.floats();
        let y = case.apply(&x);
        let (_, pull) = crate::vjp(|x: &Vec<Tensor>| case.apply(x), &x);
        // An input whose cotangent is zero has nothing to be wrong about, and a cast is too coarse to tell.
        let matters: Vec<bool> =
            pull(&y.ones_like()).iter().map(|g| g.numbers().iter().any(|&v| v != 0.0)).collect();
        if !matters.contains(&true) || matches!(case.op, Op::Cast(_)) {
            return;
        }
        let floats = (0..case.all.len()).filter(|&k| case.all[k].dtype().is_differentiable());
        let mut faults: Vec<Fault> =
            floats.zip(&matters).filter(|(_, m)| **m).map(|(k, _)| Fault::Scaled(k)).collect();
        if matters[0] && case.all[0].dtype().is_differentiable() {
            faults.push(Fault::Missing);
        }
        if x.len() == 2 && case.all.len() == 2 && x[0].shape() == x[1].shape() && !symmetric(case) {
            faults.push(Fault::Swapped);
        }
        if case.op.linearity() == Linearity::Nonlinear && has_curvature(case) {
            faults.push(Fault::Detached);
        }
        if x[0].shape() == [3, 3] && off_by_one(&case.op).is_some() {
            faults.push(Fault::Axis(off_by_one));
        }
        for fault in faults {
            // A fault may also show as a panic, of a wrong shape for instance.
            let found = caught(|| fault::with(name, fault, || case.check(DType::F64)).is_err());
            assert!(found.unwrap_or(true), "{:?}: {fault:?} was not found", case.op);
            tried += 1;
        }
    });
    assert!(tried > 150, "only {tried} faults were tried");
}

/// Whether exchanging the cotangents changes nothing.
fn symmetric(case: &Case) -> bool {
    let (y, pull) = crate::vjp(|x: &Vec<Tensor>| case.apply(x), &case.floats());
    let g = pull(&y.ones_like());
    g[0].numbers() == g[1].numbers()
}

/// Whether the pullback depends on the inputs at all.
fn has_curvature(case: &Case) -> bool {
    let x = case.floats();
    let slope = |x: &Vec<Tensor>| {
        crate::vjp(|x: &Vec<Tensor>| case.apply(x), x).1(&case.apply(x).detach().ones_like())
    };
    let seed: Vec<Tensor> = x.iter().map(|t| t.ones_like()).collect();
    let second = crate::vjp(slope, &x).1(&seed);
    second.iter().any(|g| g.numbers().iter().any(|&v| v != 0.0))
}

fn off_by_one(op: &Op) -> Option<Op> {
    let next = |axes: &[usize]| (axes.len() == 1).then(|| [(axes[0] + 1) % 2].as_slice().into());
    Some(match op {
        Op::Sum(s) => Sum { axes: next(&s.axes)? }.into(),
        Op::Max(s) => Max { axes: next(&s.axes)? }.into(),
        Op::Min(s) => Min { axes: next(&s.axes)? }.into(),
        Op::LogSumExp(s) => LogSumExp { axes: next(&s.axes)? }.into(),
        Op::Permute(p) if p.perm.len() == 2 => Permute { perm: [0, 1].as_slice().into() }.into(),
        _ => return None,
    })
}
