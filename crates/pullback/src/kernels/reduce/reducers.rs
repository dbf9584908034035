//! What is done with the elements: sums, extremes, and truth.

use half::{bf16, f16};

/// A reduction that may be done in any grouping.
pub(crate) trait Reducer<T>: 'static {
    type Acc: Copy + Send + Sync;
    type Out: Copy + Send + Sync;
    /// The result of nothing.
    const EMPTY: Self::Acc;
    fn lift(x: T) -> Self::Acc;
    fn merge(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    fn finish(acc: Self::Acc) -> Self::Out;
}

/// The sum; integers are summed in `i64` and wrap.
pub(crate) struct Sum;
/// The largest element; NaN if there is one. Nothing gives the lowest value.
pub(crate) struct Max;
/// The smallest element; NaN if there is one. Nothing gives the highest value.
pub(crate) struct Min;
/// Whether some element is not zero.
pub(crate) struct Any;
/// Whether every element is not zero.
pub(crate) struct All;

macro_rules! reducer {
    ($R:ident for $T:ty: $Acc:ty => $Out:ty, $empty:expr, |$x:ident| $lift:expr,
     |$a:ident, $b:ident| $merge:expr, |$acc:ident| $finish:expr) => {
        impl Reducer<$T> for $R {
            type Acc = $Acc;
            type Out = $Out;
            const EMPTY: $Acc = $empty;
            #[inline(always)]
            fn lift($x: $T) -> $Acc {
                $lift
            }
            #[inline(always)]
            fn merge($a: $Acc, $b: $Acc) -> $Acc {
                $merge
            }
            #[inline(always)]
            fn finish($acc: $Acc) -> $Out {
                $finish
            }
        }
    };
}

macro_rules! floats {
    ($($T:ty: $Acc:ty, |$x:ident| $lift:expr, |$acc:ident| $finish:expr;)*) => {$(
        reducer! { Sum for $T: $Acc => $T, 0.0, |$x| $lift, |a, b| a + b, |$acc| $finish }
        // A NaN on the left fails the comparison and stays.
        reducer! { Max for $T: $Acc => $T, <$Acc>::NEG_INFINITY, |$x| $lift,
            |a, b| if b > a || b.is_nan() { b } else { a }, |$acc| $finish }
        reducer! { Min for $T: $Acc => $T, <$Acc>::INFINITY, |$x| $lift,
            |a, b| if b < a || b.is_nan() { b } else { a }, |$acc| $finish }
        reducer! { Any for $T: bool => u8, false, |x| { let $x = x; $lift != 0.0 }, |a, b| a | b, |a| a as u8 }
        reducer! { All for $T: bool => u8, true, |x| { let $x = x; $lift != 0.0 }, |a, b| a & b, |a| a as u8 }
    )*};
}
floats! {
    f32: f32, |x| x, |a| a;
    f64: f64, |x| x, |a| a;
    f16: f32, |x| x.to_f32(), |a| f16::from_f32(a);
    bf16: f32, |x| x.to_f32(), |a| bf16::from_f32(a);
}

macro_rules! integers {
    ($($T:ty)*) => {$(
        reducer! { Sum for $T: i64 => i64, 0, |x| x as i64, |a, b| a.wrapping_add(b), |a| a }
        reducer! { Max for $T: $T => $T, <$T>::MIN, |x| x, |a, b| a.max(b), |a| a }
        reducer! { Min for $T: $T => $T, <$T>::MAX, |x| x, |a, b| a.min(b), |a| a }
        reducer! { Any for $T: bool => u8, false, |x| x != 0, |a, b| a | b, |a| a as u8 }
        reducer! { All for $T: bool => u8, true, |x| x != 0, |a, b| a & b, |a| a as u8 }
    )*};
}
integers!(i64 i32 u8);
