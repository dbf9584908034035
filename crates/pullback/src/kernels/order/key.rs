//! Integers in the order of the elements.

use super::super::parallel;
use super::super::scratch::refill;
use super::radix::GRAIN;
use half::{bf16, f16};

/// An element that can be sorted.
pub(crate) trait Ordered: Copy + Send + Sync + 'static {
    /// Integers in the order of the elements. Equal elements have equal keys; that of NaN is the largest.
    type Key: Copy + Ord + Into<u64> + Send + Sync;
    fn key(self) -> Self::Key;
    /// The key in the opposite order.
    fn turned(key: Self::Key) -> Self::Key;

    /// Whether a key and a place among `n` fit 64 bits.
    fn fits(n: usize) -> bool {
        size_of::<Self::Key>() <= 4 && n <= u32::MAX as usize
    }

    /// The key in the wanted order.
    #[inline(always)]
    fn key_in(self, descending: bool) -> Self::Key {
        if descending { Self::turned(self.key()) } else { self.key() }
    }
}

macro_rules! integers {
    ($($T:ty: $Key:ty, $lowest:expr;)*) => {$(
        impl Ordered for $T {
            type Key = $Key;
            #[inline(always)]
            fn key(self) -> $Key {
                (self ^ $lowest) as $Key
            }
            #[inline(always)]
            fn turned(key: $Key) -> $Key {
                !key
            }
        }
    )*};
}
integers! {
    u8: u8, 0;
    i32: u32, i32::MIN;
    i64: u64, i64::MIN;
}

macro_rules! floats {
    ($($T:ty: $Key:ty, $Signed:ty, $float:ty, |$x:ident| $widen:expr;)*) => {$(
        impl Ordered for $T {
            type Key = $Key;
            #[inline(always)]
            fn key(self) -> $Key {
                let $x = self;
                let x: $float = $widen;
                // Adding 0.0 makes 0.0 of -0.0. Negative floats rise with falling bits: all are turned, and of others the sign.
                let bits = (x + 0.0).to_bits();
                let turn = (bits as $Signed >> (<$Signed>::BITS - 1)) as $Key | 1 << (<$Signed>::BITS - 1);
                if x.is_nan() { <$Key>::MAX } else { bits ^ turn }
            }
            #[inline(always)]
            fn turned(key: $Key) -> $Key {
                !key
            }
        }
    )*};
}
floats! {
    f32: u32, i32, f32, |x| x;
    f64: u64, i64, f64, |x| x;
    f16: u32, i32, f32, |x| x.to_f32();
    bf16: u32, i32, f32, |x| x.to_f32();
}

/// A key and a place in one integer, the key in front.
pub(super) trait Packed: Copy + Ord + Send + Sync + Default {
    /// The bytes of the key.
    const DIGITS: usize;
    fn new(key: u64, place: usize) -> Self;
    fn place(self) -> usize;
    /// A byte of the key, the lowest being 0.
    fn digit(self, k: usize) -> usize;
}

macro_rules! packed {
    ($($P:ty: $half:literal, $Place:ty;)*) => {$(
        impl Packed for $P {
            const DIGITS: usize = $half / 8;
            #[inline(always)]
            fn new(key: u64, place: usize) -> $P {
                (key as $P) << $half | place as $P
            }
            #[inline(always)]
            fn place(self) -> usize {
                self as $Place as usize
            }
            #[inline(always)]
            fn digit(self, k: usize) -> usize {
                (self >> ($half + 8 * k)) as u8 as usize
            }
        }
    )*};
}
packed! {
    u64: 32, u32;
    u128: 64, u64;
}

/// The packed keys of `n` elements that stand `step` apart, from `from` on; by several threads if the lane is `alone`.
pub(super) fn pack<T: Ordered, P: Packed>(
    data: &[T],
    from: isize,
    step: isize,
    n: usize,
    descending: bool,
    alone: bool,
    to: &mut Vec<P>,
) {
    let packed = |i: usize| P::new(data[(from + i as isize * step) as usize].key_in(descending).into(), i);
    if !alone || to.len() != n {
        return refill(to, (0..n).map(packed));
    }
    let out = parallel::Disjoint::new(to);
    parallel::split(n, GRAIN, 1, |range| {
        // SAFETY: parts are disjoint.
        let out = unsafe { out.part(range.clone()) };
        out.iter_mut().zip(range).for_each(|(o, i)| *o = packed(i));
    });
}
