//! A charged particle is steered so that it crosses the axis at the origin: the field is a gradient, and the best charge is found by
//! another gradient through the flight.

use super::nested::{Field, Forward, Lift, Mode, Reverse, minimise};
use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::scalar::{Real, Taped, native};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::marker::PhantomData;

#[derive(Deserialize)]
struct Input {
    w: f64,
}

/// The potential of two charges, one of which `w` moves.
struct Potential<T> {
    w: T,
}

#[inline(always)]
fn inverse_norm<T: Real>(x: T, y: T) -> T {
    (x.square() + y.square()).rsqrt()
}

/// The charges are at (10, 10 - w) and (10, 0).
#[inline(always)]
fn potential<T: Real>(w: T, x: [T; 2]) -> T {
    let dx = x[0] - 10.0;
    inverse_norm(dx, x[1] + w - 10.0) + inverse_norm(dx, x[1])
}

impl<T: Taped> Field<T, 2> for Potential<T> {
    #[inline(always)]
    fn value(&self, x: [T; 2]) -> T {
        potential(self.w, x)
    }

    #[inline(always)]
    fn lifted<U: Lift<T>>(&self, x: [U; 2]) -> U {
        potential(U::lift(self.w), x)
    }
}

/// The squared distance from the origin at which the particle crosses the axis.
struct Miss<M>(PhantomData<M>);

#[inline(always)]
fn miss<T: Taped, M: Mode>(w: T) -> T {
    const DT: f64 = 0.1;
    let mut x = [0.0, 8.0].map(T::constant);
    let mut v = [0.75, 0.0].map(T::constant);
    loop {
        let slope = M::gradient(&Potential { w }, x);
        x = std::array::from_fn(|k| x[k] + v[k] * DT);
        if x[1] <= 0.0 {
            let t = -x[1] / v[1];
            let at = x[0] + t * v[0];
            return at * at;
        }
        v = std::array::from_fn(|k| v[k] - slope[k] * DT);
    }
}

impl<M: Mode> Field<f64, 1> for Miss<M> {
    #[inline(always)]
    fn value(&self, [w]: [f64; 1]) -> f64 {
        miss::<f64, M>(w)
    }

    #[inline(always)]
    fn lifted<U: Lift<f64>>(&self, [w]: [U; 1]) -> U {
        miss::<U, M>(w)
    }
}

/// The best `w`, with the modes of the outer and of the inner gradient.
#[inline(always)]
fn best<Outer: Mode, Inner: Mode>(w: f64) -> f64 {
    minimise::<f64, Outer, 1>(&Miss::<Inner>(PhantomData), [w])[0]
}

fn timed<Outer: Mode, Inner: Mode>(input: &RawValue, w: f64) -> Outcome {
    let best = |_: &mut ()| {
        native(
            // Without the attribute it is a call, since it is long, to code for every processor.
            #[inline(always)]
            || best::<Outer, Inner>(w),
        )
    };
    measure(input, || (), best, |_, w| w)
}

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let Input { w } = parse(input)?;
    match function {
        "rr" => timed::<Reverse, Reverse>(input, w),
        "ff" => timed::<Forward, Forward>(input, w),
        "fr" => timed::<Forward, Reverse>(input, w),
        "rf" => timed::<Reverse, Forward>(input, w),
        _ => unknown(function),
    }
}
