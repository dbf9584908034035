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
    ($($F:ident: $widen:expr, $narrow:expr;)*) => {$(
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
            fn copy_wide<'a>(x: &[$F], buffer: &'a mut [f32; TILE]) -> &'a [f32] {
                let wide = &mut buffer[..x.len()];
                $widen(x, wide);
                wide
            }
            fn direct(_: &[$F]) -> Option<&[f32]> {
                None
            }
            fn direct_mut(_: &mut [$F]) -> Option<&mut [f32]> {
                None
            }
            fn narrow(out: &mut [$F], f: impl FnOnce(&mut [f32])) {
                let mut buffer = [0.0; TILE];
                let wide = &mut buffer[..out.len()];
                f(wide);
                $narrow(wide, out);
            }
        }
    )*};
}
through_f32! {
    f16: <[f16]>::convert_to_f32_slice, |x: &[f32], out: &mut [f16]| out.convert_from_f32_slice(x);
    bf16: widen_bf16, narrow_bf16;
}

/// `bf16` is the upper half of an `f32`.
fn widen_bf16(x: &[bf16], wide: &mut [f32]) {
    for (wide, x) in wide.iter_mut().zip(x) {
        *wide = f32::from_bits(u32::from(x.to_bits()) << 16);
    }
}

/// Rounds to nearest, ties to even, by a carry into the upper half; in a form that vectorises, unlike `bf16::from_f32`.
fn narrow_bf16(wide: &[f32], out: &mut [bf16]) {
    for (out, x) in out.iter_mut().zip(wide) {
        let bits = x.to_bits();
        let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
        // A carry must not turn a NaN into another number.
        let quiet = (bits >> 16) | 0x40;
        *out = bf16::from_bits(if x.is_nan() { quiet } else { rounded } as u16);
    }
}
