//! Elementwise operations: one output element from the elements at the same index of the operands.
//!
//! The operands come as [`Tiles`], whatever their strides, so each operation is compiled to one loop over slices for each
//! float type and instruction set ([`dispatch`](super::dispatch)). The result for an element depends on its operands alone:
//! not on its place, the size of the tensor or the number of threads.

use super::compute::Compute;
use super::cost::Cost;
use super::dispatch::{loop1, loop2, loop2_into_left, one1, one2, select_tile, zip_tile};
use super::math::Float;
use super::parallel::{self, Disjoint};
use super::tiles::{TILE, Tiles, buffer};
use super::view::View;
use bytemuck::Pod;
use pullback_table::Number;
use std::ops::Range;

/// An elementwise function of one argument.
pub(crate) trait Map1: 'static {
    fn value<N: Number>(x: N) -> N;
}

/// An elementwise function of two arguments.
pub(crate) trait Map2: 'static {
    fn value<N: Number>(a: N, b: N) -> N;
}

/// How many elements plain moves and comparisons handle in about 100 µs.
const CHEAP_GRAIN: usize = 1 << 18;

/// Elements that are known to be stored as they are computed.
fn direct<E: Compute>(x: &[E]) -> &[E::Wide] {
    E::as_wide(x).expect("the output is stored so, and it has the same type")
}

/// `out = M(x)`.
pub(crate) fn map1<M: Map1, E: Compute>(x: View<'_, E>, out: &mut [E]) {
    match out {
        [out] => *out = E::narrow(one1::<M, E::Wide>(x.data[x.offset].widen())),
        _ => map1_by(x, out, M::value(Cost::OPERAND).grain(), loop1::<M, E::Wide>),
    }
}

/// `x = M(x)`.
pub(crate) fn map1_in_place<M: Map1, E: Compute>(x: &mut [E]) {
    match x {
        [x] => *x = E::narrow(one1::<M, E::Wide>(x.widen())),
        _ => map1_in_place_by(x, M::value(Cost::OPERAND).grain(), loop1::<M, E::Wide>),
    }
}

/// `out = M(a, b)`.
pub(crate) fn map2<M: Map2, E: Compute>(a: View<'_, E>, b: View<'_, E>, out: &mut [E]) {
    match out {
        [out] => {
            let (a, b) = (a.data[a.offset].widen(), b.data[b.offset].widen());
            *out = E::narrow(one2::<M, E::Wide>(a, b));
        }
        _ => map2_by(a, b, out, M::value(Cost::OPERAND, Cost::OPERAND).grain(), loop2::<M, E::Wide>),
    }
}

/// `a = M(a, b)`.
pub(crate) fn map2_into_left<M: Map2, E: Compute>(a: &mut [E], b: View<'_, E>) {
    let cost = M::value(Cost::OPERAND, Cost::OPERAND);
    match a {
        [a] => *a = E::narrow(one2::<M, E::Wide>(a.widen(), b.data[b.offset].widen())),
        _ if cost.limited => map2_into_left_by(a, b, cost.grain(), loop2::<M, E::Wide>, None),
        _ => {
            let over: Over<E::Wide> = loop2_into_left::<M, E::Wide>;
            map2_into_left_by(a, b, cost.grain(), loop2::<M, E::Wide>, Some(over));
        }
    }
}

/// `b = M(a, b)`.
pub(crate) fn map2_into_right<M: Map2, E: Compute>(a: View<'_, E>, b: &mut [E]) {
    match b {
        [b] => *b = E::narrow(one2::<M, E::Wide>(a.data[a.offset].widen(), b.widen())),
        _ => {
            map2_into_right_by(a, b, M::value(Cost::OPERAND, Cost::OPERAND).grain(), loop2::<M, E::Wide>);
        }
    }
}

// What follows gets the loop of the function as a pointer, so that it is compiled once for each type of elements and not for each
// function: one call a tile costs nothing.

/// `out = M(x)`, slices of one length.
type Loop1<F> = fn(&[F], &mut [F]);
/// `out = M(a, b)`, slices of one length.
type Loop2<F> = fn(&[F], &[F], &mut [F]);
/// `a = M(a, b)`, slices of one length.
type Over<F> = fn(&mut [F], &[F]);

fn map1_by<E: Compute>(x: View<'_, E>, out: &mut [E], grain: usize, run: Loop1<E::Wide>) {
    let contiguous = x.as_slice().and_then(E::as_wide);
    for_parts(out, grain, |range, out| {
        if let (Some(x), Some(out)) = (contiguous, E::as_wide_mut(out)) {
            return run(&x[range], out);
        }
        let mut gathered = buffer();
        let mut x = Tiles::new(x, range, &mut gathered);
        if let Some(out) = E::as_wide_mut(out) {
            return out.chunks_mut(TILE).for_each(|out| run(direct(x.next(out.len())), out));
        }
        let mut wide = [E::Wide::ZERO; TILE];
        for out in out.chunks_mut(TILE) {
            let x = E::widen_tile(x.next(out.len()), &mut wide);
            E::narrow_tile(out, |out| run(x, out));
        }
    });
}

fn map1_in_place_by<E: Compute>(x: &mut [E], grain: usize, run: Loop1<E::Wide>) {
    for_parts(x, grain, |_, x| {
        let mut wide = [E::Wide::ZERO; TILE];
        for x in x.chunks_mut(TILE) {
            let old = E::copy_tile(x, &mut wide);
            E::narrow_tile(x, |out| run(old, out));
        }
    });
}

fn map2_by<E: Compute>(a: View<'_, E>, b: View<'_, E>, out: &mut [E], grain: usize, run: Loop2<E::Wide>) {
    let contiguous = a.as_slice().and_then(E::as_wide).zip(b.as_slice().and_then(E::as_wide));
    for_parts(out, grain, |range, out| {
        if let (Some((a, b)), Some(out)) = (contiguous, E::as_wide_mut(out)) {
            return run(&a[range.clone()], &b[range], out);
        }
        let (mut gathered_a, mut gathered_b) = (buffer(), buffer());
        let mut a = Tiles::new(a, range.clone(), &mut gathered_a);
        let mut b = Tiles::new(b, range, &mut gathered_b);
        if let Some(out) = E::as_wide_mut(out) {
            return out
                .chunks_mut(TILE)
                .for_each(|out| run(direct(a.next(out.len())), direct(b.next(out.len())), out));
        }
        let (mut wide_a, mut wide_b) = ([E::Wide::ZERO; TILE], [E::Wide::ZERO; TILE]);
        for out in out.chunks_mut(TILE) {
            let a = E::widen_tile(a.next(out.len()), &mut wide_a);
            let b = E::widen_tile(b.next(out.len()), &mut wide_b);
            E::narrow_tile(out, |out| run(a, b, out));
        }
    });
}

/// By `over` where there is one and the elements are stored as they are computed.
fn map2_into_left_by<E: Compute>(
    a: &mut [E],
    b: View<'_, E>,
    grain: usize,
    run: Loop2<E::Wide>,
    over: Option<Over<E::Wide>>,
) {
    let contiguous = b.as_slice().and_then(E::as_wide);
    for_parts(a, grain, |range, a| {
        if let (Some(over), Some(b), Some(a)) = (over, contiguous, E::as_wide_mut(a)) {
            return over(a, &b[range]);
        }
        let mut gathered = buffer();
        let mut b = Tiles::new(b, range, &mut gathered);
        if let (Some(over), Some(a)) = (over, E::as_wide_mut(a)) {
            return a.chunks_mut(TILE).for_each(|a| over(a, direct(b.next(a.len()))));
        }
        let (mut wide_a, mut wide_b) = ([E::Wide::ZERO; TILE], [E::Wide::ZERO; TILE]);
        for a in a.chunks_mut(TILE) {
            let b = E::widen_tile(b.next(a.len()), &mut wide_b);
            let old = E::copy_tile(a, &mut wide_a);
            E::narrow_tile(a, |out| run(old, b, out));
        }
    });
}

fn map2_into_right_by<E: Compute>(a: View<'_, E>, b: &mut [E], grain: usize, run: Loop2<E::Wide>) {
    for_parts(b, grain, |range, b| {
        let mut gathered = buffer();
        let mut a = Tiles::new(a, range, &mut gathered);
        let (mut wide_a, mut wide_b) = ([E::Wide::ZERO; TILE], [E::Wide::ZERO; TILE]);
        for b in b.chunks_mut(TILE) {
            let a = E::widen_tile(a.next(b.len()), &mut wide_a);
            let old = E::copy_tile(b, &mut wide_b);
            E::narrow_tile(b, |out| run(a, old, out));
        }
    });
}

/// `out = f(x..)` for a function of single numbers that costs so much that vectors would not show. It is a pointer, so that no loop is compiled for it.
pub(crate) fn special<E: Compute, const N: usize>(
    f: &(dyn Fn([f64; N]) -> f64 + Sync),
    work: Cost,
    x: [View<'_, E>; N],
    out: &mut [E],
) {
    for_parts(out, work.grain(), |range, out| {
        let mut gathered: [_; N] = std::array::from_fn(|_| buffer());
        let mut buffers = gathered.iter_mut();
        let mut x = x.map(|x| Tiles::new(x, range.clone(), buffers.next().expect("one for each operand")));
        for out in out.chunks_mut(TILE) {
            let x = x.each_mut().map(|x| x.next(out.len()));
            for (k, out) in out.iter_mut().enumerate() {
                *out = E::narrow(E::Wide::from_f64(f(x.map(|x| x[k].widen().to_f64()))));
            }
        }
    });
}

/// `out = f(x)` for any types: comparisons with a constant, logic, casts.
pub(crate) fn map_with<A, O>(x: View<'_, A>, out: &mut [O], f: impl Fn(A) -> O + Sync + Copy)
where
    A: Copy + Sync,
    O: Send,
{
    for_parts(out, CHEAP_GRAIN, |range, out| {
        let mut gathered = buffer();
        let mut x = Tiles::new(x, range, &mut gathered);
        for out in out.chunks_mut(TILE) {
            let n = out.len();
            zip_tile(x.next(n), &[(); TILE][..n], out, |x, ()| f(x));
        }
    });
}

/// `out = f(a, b)` for any types: comparisons, logic, integer arithmetic.
pub(crate) fn zip_with<A, B, O>(
    a: View<'_, A>,
    b: View<'_, B>,
    out: &mut [O],
    f: impl Fn(A, B) -> O + Sync + Copy,
) where
    A: Copy + Sync,
    B: Copy + Sync,
    O: Send,
{
    for_parts(out, CHEAP_GRAIN, |range, out| {
        let (mut gathered_a, mut gathered_b) = (buffer(), buffer());
        let mut a = Tiles::new(a, range.clone(), &mut gathered_a);
        let mut b = Tiles::new(b, range, &mut gathered_b);
        for out in out.chunks_mut(TILE) {
            zip_tile(a.next(out.len()), b.next(out.len()), out, f);
        }
    });
}

/// `a` where the mask is not zero, else `b`.
pub(crate) fn select<T>(mask: View<'_, u8>, a: View<'_, T>, b: View<'_, T>, out: &mut [T])
where
    T: Pod + Send + Sync,
{
    for_parts(out, CHEAP_GRAIN, |range, out| {
        let (mut gathered_mask, mut gathered_a, mut gathered_b) = (buffer(), buffer(), buffer());
        let mut mask = Tiles::new(mask, range.clone(), &mut gathered_mask);
        let mut a = Tiles::new(a, range.clone(), &mut gathered_a);
        let mut b = Tiles::new(b, range, &mut gathered_b);
        for out in out.chunks_mut(TILE) {
            let n = out.len();
            select_tile(mask.next(n), a.next(n), b.next(n), out);
        }
    });
}

/// Runs `f` on parts of the output, in parallel if there are at least two grains of it.
fn for_parts<O: Send>(out: &mut [O], grain: usize, f: impl Fn(Range<usize>, &mut [O]) + Sync) {
    let n = out.len();
    if n == 0 {
        return;
    }
    if n < 2 * grain {
        return f(0..n, out);
    }
    let parts = Disjoint::new(out);
    // SAFETY: the ranges of a split are disjoint, and it returns before the borrow of `out` ends.
    parallel::split(n, grain, TILE, |range| f(range.clone(), unsafe { parts.part(range) }));
}
