//! The floating-point types that tensors store, and the ones their elements are computed in.

use super::math::Float;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// How many elements a kernel works on at once: small enough for its buffers to stay in the first cache.
pub(crate) const TILE: usize = 512;

/// A stored float. `f16` and `bf16` are computed in `f32`, a tile at a time.
pub(crate) trait Element: Copy + Send + Sync + 'static {
    type Float: Float;
    fn widen_one(self) -> Self::Float;
    fn narrow_one(x: Self::Float) -> Self;

    /// The elements to compute with: `x` itself, or at most a tile of it converted into the buffer.
    fn widen<'a>(x: &'a [Self], buffer: &'a mut [Self::Float; TILE]) -> &'a [Self::Float];

    /// The same, always in the buffer.
    fn copy_wide<'a>(x: &[Self], buffer: &'a mut [Self::Float; TILE]) -> &'a [Self::Float];

    /// The elements as floats of the computation, if they are stored as such.
    fn direct(x: &[Self]) -> Option<&[Self::Float]>;
    fn direct_mut(x: &mut [Self]) -> Option<&mut [Self::Float]>;

    /// Has `f` write the results, directly or (at most a tile) into a buffer that is then converted.
    fn narrow(out: &mut [Self], f: impl FnOnce(&mut [Self::Float]));
}

macro_rules! direct {
    ($($F:ident)*) => {$(
        impl Element for $F {
            type Float = $F;

            #[inline(always)]
            fn widen_one(self) -> $F {
                self
            }
            #[inline(always)]
            fn narrow_one(x: $F) -> $F {
                x
            }
            #[inline(always)]
            fn widen<'a>(x: &'a [$F], _: &'a mut [$F; TILE]) -> &'a [$F] {
                x
            }
            #[inline(always)]
            fn copy_wide<'a>(x: &[$F], buffer: &'a mut [$F; TILE]) -> &'a [$F] {
                let copy = &mut buffer[..x.len()];
                copy.copy_from_slice(x);
                copy
            }
            #[inline(always)]
            fn direct(x: &[$F]) -> Option<&[$F]> {
                Some(x)
            }
            #[inline(always)]
            fn direct_mut(x: &mut [$F]) -> Option<&mut [$F]> {
                Some(x)
            }
            #[inline(always)]
            fn narrow(out: &mut [$F], f: impl FnOnce(&mut [$F])) {
                f(out);
            }
        }
    )*};
}
direct!(f32 f64);

macro_rules! through_f32 {
    ($($F:ident)*) => {$(
        impl Element for $F {
            type Float = f32;

            #[inline(always)]
            fn widen_one(self) -> f32 {
                self.to_f32()
            }
            #[inline(always)]
            fn narrow_one(x: f32) -> $F {
                $F::from_f32(x)
            }
            fn widen<'a>(x: &'a [$F], buffer: &'a mut [f32; TILE]) -> &'a [f32] {
                Self::copy_wide(x, buffer)
            }
            fn direct(_: &[$F]) -> Option<&[f32]> {
                None
            }
            fn direct_mut(_: &mut [$F]) -> Option<&mut [f32]> {
                None
            }
            fn copy_wide<'a>(x: &[$F], buffer: &'a mut [f32; TILE]) -> &'a [f32] {
                let wide = &mut buffer[..x.len()];
                x.convert_to_f32_slice(wide);
                wide
            }
            fn narrow(out: &mut [$F], f: impl FnOnce(&mut [f32])) {
                let mut buffer = [0.0; TILE];
                let wide = &mut buffer[..out.len()];
                f(wide);
                out.convert_from_f32_slice(wide);
            }
        }
    )*};
}
through_f32!(f16 bf16);
