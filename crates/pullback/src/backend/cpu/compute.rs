//! The type in which the elements of another are computed: halves in `f32`, the rest in themselves.

use half::{bf16, f16};

/// A floating-point element, and the conversions to the type it is computed in.
pub(crate) trait Compute: Copy + Send + Sync + Default + 'static {
    type Wide: Compute<Wide = Self::Wide>;
    fn widen(self) -> Self::Wide;
    fn narrow(x: Self::Wide) -> Self;
    /// The slice itself, where no conversion is needed.
    fn as_wide(slice: &[Self]) -> Option<&[Self::Wide]>;
    /// The slice itself, where no conversion is needed.
    fn as_wide_mut(slice: &mut [Self]) -> Option<&mut [Self::Wide]>;
}

macro_rules! itself {
    ($($T:ty)*) => {$(
        impl Compute for $T {
            type Wide = $T;
            #[inline(always)]
            fn widen(self) -> $T {
                self
            }
            #[inline(always)]
            fn narrow(x: $T) -> $T {
                x
            }
            fn as_wide(slice: &[$T]) -> Option<&[$T]> {
                Some(slice)
            }
            fn as_wide_mut(slice: &mut [$T]) -> Option<&mut [$T]> {
                Some(slice)
            }
        }
    )*};
}
itself!(f32 f64);

macro_rules! by_f32 {
    ($($T:ty)*) => {$(
        impl Compute for $T {
            type Wide = f32;
            #[inline(always)]
            fn widen(self) -> f32 {
                self.to_f32()
            }
            #[inline(always)]
            fn narrow(x: f32) -> $T {
                <$T>::from_f32(x)
            }
            fn as_wide(_: &[$T]) -> Option<&[f32]> {
                None
            }
            fn as_wide_mut(_: &mut [$T]) -> Option<&mut [f32]> {
                None
            }
        }
    )*};
}
by_f32!(f16 bf16);
