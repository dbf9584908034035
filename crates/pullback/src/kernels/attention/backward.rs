//! Cotangents of queries, keys and values.
//!
//! Weights are computed again from scores and their totals, tile by tile. With `p` the weights, `h = g vᵀ` and `c = Σ g y`, the cotangents of the scores are
//! `p (h - c)`.

use super::super::parallel::{self, Disjoint};
use super::super::scratch::{filled, with_scratch};
use super::super::strided::Axes;
use super::super::view::View;
use super::tile::{Left, multiply, padded, product, slopes, weights};
use super::{Attention, GRAIN, Heads, KEYS, Lengths, Place, QUERIES, Real, in_panels, parts, products};
use std::ops::Range;
use std::slice::from_raw_parts_mut;

/// Pieces of the queries of a head at most, where there are few heads: each has its own sums for keys and values, which are added up in the end. They depend on
/// the shape alone, and so does the rounding.
const PIECES: usize = 8;

/// What the pullback gets beside the inputs: results with totals as [`attention`](super::attention) gives them, and their cotangents. The last axis of both is
/// a head.
pub(crate) struct Results<'a, T> {
    pub y: View<'a, T>,
    pub g: View<'a, T>,
}

/// For each head the cotangents of queries, keys and values, one after the other.
pub(crate) fn attention_pullback<T: Real>(
    q: View<T>,
    k: View<T>,
    v: View<T>,
    results: Results<T>,
    how: &Attention<T>,
    out: &mut [T],
) {
    let lengths = Lengths::new(&q, &k, &v);
    let Lengths { heads, queries, keys, d, v: width } = lengths;
    let each = queries * d + keys * (d + width);
    assert_eq!(out.len(), heads * each, "attention: cotangents of queries, keys and values");
    let tiles = queries.div_ceil(QUERIES);
    let pieces = PIECES.div_ceil(heads.max(1)).min(tiles).max(1);
    let piece = |i: usize| tiles * i / pieces * QUERIES..(tiles * (i + 1) / pieces * QUERIES).min(queries);
    let run = Run {
        lengths,
        q: Heads::new(q),
        k: Heads::new(k),
        v: Heads::new(v),
        y: Row::new(results.y),
        g: Row::new(results.g),
        how,
    };
    let shared = keys * (d + width);
    let mut sums = filled(T::default(), if pieces > 1 { heads * pieces * shared } else { 0 });
    {
        let (out, sums) = (Disjoint::new(out), Disjoint::new(&mut sums));
        let grain = GRAIN.div_ceil((2 * lengths.work(queries.div_ceil(pieces))).max(1));
        parallel::split(heads * pieces, grain, 1, |range| {
            for i in range {
                let (head, rows) = (i / pieces, piece(i % pieces));
                let start = head * each;
                let to = match pieces {
                    1 => (start + queries * d, &out),
                    _ => (i * shared, &sums),
                };
                // SAFETY: each piece has its own queries, and its own sums.
                let (dq, rest) = unsafe {
                    (out.part(start + rows.start * d..start + rows.end * d), to.1.part(to.0..to.0 + shared))
                };
                let (dk, dv) = rest.split_at_mut(keys * d);
                run.piece(head, rows, dq, dk, dv);
            }
        });
    }
    if pieces > 1 {
        for head in 0..heads {
            let total = &mut out[head * each + queries * d..(head + 1) * each];
            total.fill(T::default());
            for sum in sums[head * pieces * shared..(head + 1) * pieces * shared].chunks_exact(shared.max(1))
            {
                total.iter_mut().zip(sum).for_each(|(t, &s)| *t = *t + s);
            }
        }
    }
}

/// Rows along the last axis, one for each head.
struct Row<'a, T> {
    x: View<'a, T>,
    outer: Axes<1>,
    step: isize,
}

impl<'a, T: Copy> Row<'a, T> {
    fn new(x: View<'a, T>) -> Self {
        let last = x.shape.len() - 1;
        Row { x, outer: Axes::of(&x.shape[..last], &x.strides[..last]), step: x.strides[last] }
    }

    /// The elements of a head from one on.
    fn from(&self, head: usize, first: usize) -> impl Iterator<Item = T> + '_ {
        let mut start = 0;
        self.outer.walk(head..head + 1, |_, [at]| start = at);
        let start = self.x.offset as isize + start + first as isize * self.step;
        let left = self.x.shape[self.x.shape.len() - 1] - first;
        (0..left as isize).map(move |j| self.x.data[(start + j * self.step) as usize])
    }
}

struct Run<'a, T> {
    lengths: Lengths,
    q: Heads<'a, T>,
    k: Heads<'a, T>,
    v: Heads<'a, T>,
    y: Row<'a, T>,
    g: Row<'a, T>,
    how: &'a Attention<'a, T>,
}

impl<T: Real> Run<'_, T> {
    /// The cotangents of some queries of a head, and their part of those of its keys and values.
    fn piece(&self, head: usize, rows: Range<usize>, dq: &mut [T], dk: &mut [T], dv: &mut [T]) {
        let Lengths { queries: all, keys, d, v, .. } = self.lengths;
        let (wide, row, n) = (padded::<T>(d), padded::<T>(v), rows.len());
        let drawn = if self.how.dropout.is_some() { QUERIES * KEYS } else { 0 };
        let sizes = [
            in_panels::<T>(keys, d),
            in_panels::<T>(keys, v),
            keys * wide,
            n * wide,
            n * row,
            n * wide,
            KEYS * wide,
            KEYS * row,
            n,
            n,
            QUERIES * KEYS,
            QUERIES * KEYS,
            drawn,
        ];
        let size: usize = sizes.iter().sum();
        with_scratch(size, size * size_of::<T>(), |memory: *mut T| {
            // SAFETY: the scratch memory has so many elements, and is ours until the piece is done.
            let memory = unsafe { from_raw_parts_mut(memory, size) };
            let [
                k_panels,
                v_panels,
                k_rows,
                q_rows,
                g_rows,
                q_sums,
                k_sums,
                v_sums,
                totals,
                centres,
                p,
                h,
                drawn,
            ] = parts(memory, sizes);
            self.k.pack_panels(head, keys, d, k_panels);
            self.v.pack_panels(head, keys, v, v_panels);
            self.k.pack(head, 0..keys, d, T::of(1.0), k_rows);
            self.q.pack(head, rows.clone(), d, T::of(self.how.scale), q_rows);
            let mut g = self.g.from(head, rows.start * v);
            let mut y = self.y.from(head, rows.start * v);
            for (to, centre) in g_rows.chunks_exact_mut(row.max(1)).zip(&mut *centres) {
                let (to, rest) = to.split_at_mut(v);
                rest.fill(T::default());
                *centre = T::default();
                for (o, (g, y)) in to.iter_mut().zip(g.by_ref().zip(y.by_ref())) {
                    *o = g;
                    *centre = *centre + g * y;
                }
            }
            if row == 0 {
                centres.fill(T::default());
            }
            let behind = all * v + rows.start;
            totals.iter_mut().zip(self.y.from(head, behind)).for_each(|(t, y)| *t = y);
            centres.iter_mut().zip(self.g.from(head, behind)).for_each(|(c, g)| *c = *c - g);
            q_sums.fill(T::default());
            for key in (0..keys).step_by(KEYS) {
                let m = KEYS.min(keys - key);
                k_sums.fill(T::default());
                v_sums.fill(T::default());
                for first in (0..n).step_by(QUERIES) {
                    let count = QUERIES.min(n - first);
                    if self.how.skips(rows.start + first, count, key) {
                        continue;
                    }
                    let at = Place::new(head, rows.start + first, count, key, m);
                    let (q, g) = (&q_rows[first * wide..], &g_rows[first * row..]);
                    self.how.scores(self.lengths, at, q, k_panels, p);
                    weights(p, at.rows, &totals[first..]);
                    products(at.rows, v, g, v_panels, key, h);
                    match &self.how.dropout {
                        Some(dropout) => {
                            self.how.factors(dropout, self.lengths, at, drawn);
                            multiply(h, at.rows, drawn);
                            multiply(drawn, at.rows, p);
                            let left = Left { x: drawn, row: 1, column: KEYS };
                            product((m, count, row), left, g, row, v_sums, row, true);
                        }
                        None => {
                            let left = Left { x: p, row: 1, column: KEYS };
                            product((m, count, row), left, g, row, v_sums, row, true);
                        }
                    }
                    slopes(p, h, at.rows, &centres[first..]);
                    let left = Left { x: h, row: KEYS, column: 1 };
                    product(
                        (count, m, wide),
                        left,
                        &k_rows[key * wide..],
                        wide,
                        &mut q_sums[first * wide..],
                        wide,
                        true,
                    );
                    let left = Left { x: h, row: 1, column: KEYS };
                    product((m, count, wide), left, q, wide, k_sums, wide, true);
                }
                unpack(k_sums, T::of(1.0), d, &mut dk[key * d..(key + m) * d]);
                unpack(v_sums, T::of(1.0), v, &mut dv[key * v..(key + m) * v]);
            }
            unpack(q_sums, T::of(self.how.scale), d, dq);
        });
    }
}

/// Padded rows without their padding, multiplied by a factor.
fn unpack<T: Real>(from: &[T], factor: T, n: usize, to: &mut [T]) {
    for (to, from) in to.chunks_exact_mut(n.max(1)).zip(from.chunks_exact(padded::<T>(n).max(1))) {
        to.iter_mut().zip(from).for_each(|(o, &x)| *o = x * factor);
    }
}
