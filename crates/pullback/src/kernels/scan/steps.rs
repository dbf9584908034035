//! What is done with each element of a scan.

use half::{bf16, f16};

/// One step of a scan: the state after another element, and the result that is seen of it.
pub(crate) trait Step<T>: 'static {
    type State: Copy + Send + Sync;
    type Out: Copy + Send + Sync;
    const START: Self::State;
    /// Whether states of blocks can be merged, so that a long lane is shared between threads.
    const BLOCKED: bool = false;
    /// The state after element `x` at place `j`.
    fn step(state: Self::State, x: T, j: i64) -> Self::State;
    fn value(state: Self::State) -> Self::Out;
    /// The state of two blocks, one after the other.
    fn merge(_: Self::State, _: Self::State) -> Self::State {
        unreachable!("only blocks are merged")
    }
}

/// The sum so far; integers are summed in `i64` and wrap.
pub(crate) struct Sum;
/// The product so far; integers are multiplied in `i64` and wrap.
pub(crate) struct Product;
/// `ln Σ exp(x)` so far.
pub(crate) struct LogSumExp;
/// The place of the latest largest (or smallest) element so far. NaN beats every number.
pub(crate) struct Latest<const LARGEST: bool>;

/// A sum of exponentials, as multiples of the largest.
#[derive(Clone, Copy)]
pub(crate) struct Scaled {
    largest: f64,
    sum: f64,
}

impl Scaled {
    const NOTHING: Scaled = Scaled { largest: f64::NEG_INFINITY, sum: 0.0 };

    fn with(self, x: f64) -> Scaled {
        if x == self.largest {
            // Also where both are infinite: their difference is not 0 then.
            Scaled { sum: self.sum + 1.0, ..self }
        } else if x < self.largest {
            Scaled { sum: self.sum + (x - self.largest).exp(), ..self }
        } else {
            // NaN comes here too, and stays: it is neither equal to anything nor less.
            Scaled { largest: x, sum: self.sum * (self.largest - x).exp() + 1.0 }
        }
    }

    fn log(self) -> f64 {
        // One term alone is exact, and infinite ones are what they are, however many; NaN is in the sum.
        let exact = self.sum == 1.0 || self.largest.is_infinite() && !self.sum.is_nan();
        if exact { self.largest } else { self.largest + self.sum.ln() }
    }
}

macro_rules! floats {
    ($($T:ty, |$x:ident| $widen:expr, |$s:ident| $narrow:expr;)*) => {$(
        impl Step<$T> for Sum {
            type State = f64;
            type Out = $T;
            const START: f64 = 0.0;
            const BLOCKED: bool = true;
            #[inline(always)]
            fn step(state: f64, $x: $T, _: i64) -> f64 {
                state + $widen
            }
            #[inline(always)]
            fn value($s: f64) -> $T {
                $narrow
            }
            #[inline(always)]
            fn merge(a: f64, b: f64) -> f64 {
                a + b
            }
        }
        impl Step<$T> for Product {
            type State = f64;
            type Out = $T;
            const START: f64 = 1.0;
            #[inline(always)]
            fn step(state: f64, $x: $T, _: i64) -> f64 {
                state * $widen
            }
            #[inline(always)]
            fn value($s: f64) -> $T {
                $narrow
            }
        }
        impl Step<$T> for LogSumExp {
            type State = Scaled;
            type Out = $T;
            const START: Scaled = Scaled::NOTHING;
            #[inline(always)]
            fn step(state: Scaled, $x: $T, _: i64) -> Scaled {
                state.with($widen)
            }
            #[inline(always)]
            fn value(state: Scaled) -> $T {
                let $s = state.log();
                $narrow
            }
        }
    )*};
}
floats! {
    f64, |x| x, |s| s;
    f32, |x| x as f64, |s| s as f32;
    f16, |x| x.to_f64(), |s| f16::from_f64(s);
    bf16, |x| x.to_f64(), |s| bf16::from_f64(s);
}

macro_rules! integers {
    ($($T:ty)*) => {$(
        impl Step<$T> for Sum {
            type State = i64;
            type Out = i64;
            const START: i64 = 0;
            const BLOCKED: bool = true;
            #[inline(always)]
            fn step(state: i64, x: $T, _: i64) -> i64 {
                state.wrapping_add(x as i64)
            }
            #[inline(always)]
            fn value(state: i64) -> i64 {
                state
            }
            #[inline(always)]
            fn merge(a: i64, b: i64) -> i64 {
                a.wrapping_add(b)
            }
        }
        impl Step<$T> for Product {
            type State = i64;
            type Out = i64;
            const START: i64 = 1;
            #[inline(always)]
            fn step(state: i64, x: $T, _: i64) -> i64 {
                state.wrapping_mul(x as i64)
            }
            #[inline(always)]
            fn value(state: i64) -> i64 {
                state
            }
        }
    )*};
}
integers!(i64 i32 u8);

impl<T: PartialOrd + Copy + Send + Sync + 'static, const LARGEST: bool> Step<T> for Latest<LARGEST> {
    /// The best so far and its place, once there is one.
    type State = Option<(T, i64)>;
    type Out = i64;
    const START: Self::State = None;

    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn step(state: Self::State, x: T, j: i64) -> Self::State {
        let wins = |best: T| x != x || best == best && if LARGEST { x >= best } else { x <= best };
        match state {
            Some((best, _)) if !wins(best) => state,
            _ => Some((x, j)),
        }
    }

    #[inline(always)]
    fn value(state: Self::State) -> i64 {
        state.map_or(0, |(_, j)| j)
    }
}
