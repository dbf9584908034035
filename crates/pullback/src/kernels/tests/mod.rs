//! Tests of the elementwise kernels.

mod accuracy;
mod drivers;
#[allow(clippy::approx_constant, reason = "values as they were computed")]
mod elementary_values;
mod erf_values;
mod exhaustive;
mod special_values;

use super::dispatch::{loop1, loop2};
use super::map::{Map1, Map2};
use super::math::Float;
use pullback_table::{Number, elementwise_table};

/// A row of the table as an elementwise function, under the name of its method.
macro_rules! row {
    ($P:ident $m:ident($x:ident)) => {
        pub(super) struct $P;
        impl Map1 for $P {
            #[inline(always)]
            fn value<N: Number>($x: N) -> N {
                $x.$m()
            }
        }
    };
    ($P:ident $m:ident($a:ident, $b:ident)) => {
        pub(super) struct $P;
        impl Map2 for $P {
            #[inline(always)]
            fn value<N: Number>($a: N, $b: N) -> N {
                $a.$m($b)
            }
        }
    };
}

macro_rules! rows {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = [$($d:expr),+]; reads $([$($r:ident)*])+; $facts:tt)*) => {
        mod row {
            use super::*;
            $(row! { $P $m($($x),+) })*
        }
    };
}
elementwise_table!(rows);

/// `M(x)` of each element, by the loop of the present instruction set.
fn each1<M: Map1, F: Float>(x: &[F]) -> Vec<F> {
    let mut y = vec![F::ZERO; x.len()];
    loop1::<M, F>(x, &mut y);
    y
}

/// `M(a, b)` of each pair, by the loop of the present instruction set.
fn each2<M: Map2, F: Float>(a: &[F], b: &[F]) -> Vec<F> {
    let mut y = vec![F::ZERO; a.len()];
    loop2::<M, F>(a, b, &mut y);
    y
}

/// Numbers in `0..1` that look random and are the same on every run.
pub(super) fn noise(seed: u64) -> impl Iterator<Item = f64> {
    let mut dice = pullback_testing::Dice(seed);
    std::iter::repeat_with(move || dice.fraction())
}
