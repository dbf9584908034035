//! A saddle point: the least of the largest values, by descent through ascent.

use super::nested::{Field, Forward, Lift, Mode, Reverse, minimise};
use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::scalar::{Real, Taped, native};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::marker::PhantomData;

#[derive(Deserialize)]
struct Input {
    start: [f64; 2],
}

#[inline(always)]
fn height<T: Real>(x: [T; 2], y: [T; 2]) -> T {
    let square = |v: [T; 2]| v[0].square() + v[1].square();
    square(x) - square(y)
}

/// The negative height over `y`, where `x` is fixed.
struct Depth<T> {
    x: [T; 2],
}

impl<T: Taped> Field<T, 2> for Depth<T> {
    #[inline(always)]
    fn value(&self, y: [T; 2]) -> T {
        -height(self.x, y)
    }

    #[inline(always)]
    fn lifted<U: Lift<T>>(&self, y: [U; 2]) -> U {
        -height(self.x.map(U::lift), y)
    }
}

/// The largest height over `y`, searched from `start`.
struct Ridge<M> {
    start: [f64; 2],
    mode: PhantomData<M>,
}

#[inline(always)]
fn ridge<T: Taped, M: Mode>(start: [f64; 2], x: [T; 2]) -> T {
    let y = minimise::<T, M, 2>(&Depth { x }, start.map(T::constant));
    height(x, y)
}

impl<M: Mode> Field<f64, 2> for Ridge<M> {
    #[inline(always)]
    fn value(&self, x: [f64; 2]) -> f64 {
        ridge::<f64, M>(self.start, x)
    }

    #[inline(always)]
    fn lifted<U: Lift<f64>>(&self, x: [U; 2]) -> U {
        ridge::<U, M>(self.start, x)
    }
}

/// `x` and `y` of the saddle, with the modes of the outer and of the inner gradient.
#[inline(always)]
fn saddle<Outer: Mode, Inner: Mode>(start: [f64; 2]) -> [f64; 4] {
    let x = minimise::<f64, Outer, 2>(&Ridge::<Inner> { start, mode: PhantomData }, start);
    let y = minimise::<f64, Inner, 2>(&Depth { x }, start);
    [x[0], x[1], y[0], y[1]]
}

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let Input { start } = parse(input)?;
    match function {
        "rr" => measure(input, || (), |()| native(|| saddle::<Reverse, Reverse>(start)), |_, at| at),
        "ff" => measure(input, || (), |()| native(|| saddle::<Forward, Forward>(start)), |_, at| at),
        "fr" => measure(input, || (), |()| native(|| saddle::<Forward, Reverse>(start)), |_, at| at),
        "rf" => measure(input, || (), |()| native(|| saddle::<Reverse, Forward>(start)), |_, at| at),
        _ => unknown(function),
    }
}
