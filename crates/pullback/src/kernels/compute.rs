//! The floats that tensors store, and the type that each is computed in: halves in `f32`, the rest in themselves.

use super::math::Float;
use super::tiles::TILE;
use super::vectorised::vectorised;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// A stored float, and the conversions to the type it is computed in.
pub(crate) trait Compute: Copy + Send + Sync + Default + 'static {
    type Wide: Float + Compute<Wide = Self::Wide>;
    fn widen(self) -> Self::Wide;
    fn narrow(x: Self::Wide) -> Self;
    /// Converts a slice to another of the same length.
    fn widen_all(from: &[Self], to: &mut [Self::Wide]);
    /// Converts a slice to another of the same length.
    fn narrow_all(from: &[Self::Wide], to: &mut [Self]);
    /// The slice itself, where no conversion is needed.
    fn as_wide(slice: &[Self]) -> Option<&[Self::Wide]>;
    /// The slice itself, where no conversion is needed.
    fn as_wide_mut(slice: &mut [Self]) -> Option<&mut [Self::Wide]>;

    /// The elements to compute with: `x` itself, or at most a tile of it converted into the buffer.
    #[inline(always)]
    fn widen_tile<'a>(x: &'a [Self], buffer: &'a mut [Self::Wide; TILE]) -> &'a [Self::Wide] {
        match Self::as_wide(x) {
            Some(x) => x,
            None => Self::copy_tile(x, buffer),
        }
    }

    /// The same, always in the buffer.
    #[inline(always)]
    fn copy_tile<'a>(x: &[Self], buffer: &'a mut [Self::Wide; TILE]) -> &'a [Self::Wide] {
        let copy = &mut buffer[..x.len()];
        Self::widen_all(x, copy);
        copy
    }

    /// Has `f` write the results, directly or (at most a tile) into a buffer that is then converted.
    #[inline(always)]
    fn narrow_tile(out: &mut [Self], f: impl FnOnce(&mut [Self::Wide])) {
        if let Some(wide) = Self::as_wide_mut(out) {
            return f(wide);
        }
        let mut buffer = [Self::Wide::ZERO; TILE];
        let wide = &mut buffer[..out.len()];
        f(wide);
        Self::narrow_all(wide, out);
    }
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
            #[inline(always)]
            fn widen_all(from: &[$T], to: &mut [$T]) {
                to.copy_from_slice(from);
            }
            #[inline(always)]
            fn narrow_all(from: &[$T], to: &mut [$T]) {
                to.copy_from_slice(from);
            }
            #[inline(always)]
            fn as_wide(slice: &[$T]) -> Option<&[$T]> {
                Some(slice)
            }
            #[inline(always)]
            fn as_wide_mut(slice: &mut [$T]) -> Option<&mut [$T]> {
                Some(slice)
            }
        }
    )*};
}
itself!(f32 f64);

macro_rules! by_f32 {
    ($($T:ty, |$from:ident, $to:ident| $widen:expr, $narrow:expr;)*) => {$(
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
            fn widen_all($from: &[$T], $to: &mut [f32]) {
                $widen
            }
            fn narrow_all($from: &[f32], $to: &mut [$T]) {
                $narrow
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
// The slice methods of `half` use the instructions that processors have for f16; for bf16 they have none, and a
// plain loop does better.
by_f32! {
    f16, |from, to| from.convert_to_f32_slice(to), to.convert_from_f32_slice(from);
    bf16, |from, to| widen_bf16(from, to), narrow_bf16(from, to);
}

vectorised! {
    fn widen_bf16<>(from: &[bf16], to: &mut [f32]) {
        to.iter_mut().zip(from).for_each(|(t, x)| *t = f32::from_bits((x.to_bits() as u32) << 16));
    }
}

vectorised! {
    /// Rounds to nearest, ties to even; a NaN stays one.
    fn narrow_bf16<>(from: &[f32], to: &mut [bf16]) {
        for (t, x) in to.iter_mut().zip(from) {
            let bits = x.to_bits();
            let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
            let kept = if x.is_nan() { bits | 0x0040_0000 } else { rounded };
            *t = bf16::from_bits((kept >> 16) as u16);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_convert_as_elements_do() {
        let x: Vec<f32> = (0..100_000u32).map(|i| f32::from_bits(i.wrapping_mul(0x9e37_79b9))).collect();
        let mut narrow = vec![bf16::ZERO; x.len()];
        bf16::narrow_all(&x, &mut narrow);
        assert!(narrow.iter().zip(&x).all(|(a, &b)| a.to_bits() == bf16::from_f32(b).to_bits()));
        let mut wide = vec![0.0; x.len()];
        bf16::widen_all(&narrow, &mut wide);
        assert!(wide.iter().zip(&narrow).all(|(a, b)| a.to_bits() == b.to_f32().to_bits()));
    }
}
