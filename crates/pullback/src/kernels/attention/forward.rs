//! Results, and the logarithms of the sums of exponentials that the pullback needs.

use super::super::parallel::{self, Disjoint};
use super::super::scratch::with_scratch;
use super::super::view::View;
use super::tile::{Left, padded, product, soften};
use super::{Attention, GRAIN, Heads, KEYS, Lengths, Place, QUERIES, Real, in_panels, parts};
use std::slice::from_raw_parts_mut;

/// For each head the results `[queries, v]` and then the logarithm of the sum of the exponentials of each query's scores. Both are 0 for a query
/// that sees no key.
pub(crate) fn attention<T: Real>(q: View<T>, k: View<T>, v: View<T>, how: &Attention<T>, out: &mut [T]) {
    let lengths = Lengths::new(&q, &k, &v);
    let Lengths { heads, queries, keys, d, v: width } = lengths;
    assert_eq!(out.len(), heads * queries * (width + 1), "attention: the output has a row for each query");
    let (q, k, v) = (Heads::new(q), Heads::new(k), Heads::new(v));
    let (panels, values) = (in_panels::<T>(keys, d), keys * padded::<T>(width));
    let each = panels + values;
    with_scratch(heads * each, heads * each * size_of::<T>(), |memory: *mut T| {
        // SAFETY: the scratch memory has so many elements, and is ours until the results are there.
        let packed = unsafe { from_raw_parts_mut(memory, heads * each) };
        {
            let packed = Disjoint::new(packed);
            parallel::split(heads, GRAIN.div_ceil(8 * each.max(1)), 1, |range| {
                for head in range {
                    // SAFETY: each head has its own part.
                    let part = unsafe { packed.part(head * each..(head + 1) * each) };
                    let [keys_in_panels, values_in_rows] = parts(part, [panels, values]);
                    k.pack_panels(head, keys, d, keys_in_panels);
                    v.pack(head, 0..keys, width, T::of(1.0), values_in_rows);
                }
            });
        }
        let packed = &*packed;
        let tiles = queries.div_ceil(QUERIES);
        let out = Disjoint::new(out);
        let grain = GRAIN.div_ceil(lengths.work(QUERIES.min(queries)).max(1));
        parallel::split(heads * tiles, grain, 1, |range| {
            for i in range {
                let (head, first) = (i / tiles, i % tiles * QUERIES);
                let count = QUERIES.min(queries - first);
                let (panels, values) = packed[head * each..(head + 1) * each].split_at(panels);
                let start = head * queries * (width + 1);
                let (rows, totals) = (start + first * width, start + queries * width + first);
                // SAFETY: each query belongs to one tile.
                let (rows, totals) =
                    unsafe { (out.part(rows..rows + count * width), out.part(totals..totals + count)) };
                tile(lengths, (head, first, count), &q, panels, values, how, rows, totals);
            }
        });
    });
}

/// The results of some queries of a head.
#[allow(clippy::too_many_arguments, reason = "all operands of one kernel")]
fn tile<T: Real>(
    lengths: Lengths,
    (head, first, count): (usize, usize, usize),
    q: &Heads<T>,
    panels: &[T],
    values: &[T],
    how: &Attention<T>,
    rows: &mut [T],
    totals: &mut [T],
) {
    let (wide, row) = (padded::<T>(lengths.d), padded::<T>(lengths.v));
    let drawn = if how.dropout.is_some() { QUERIES * KEYS } else { 0 };
    let sizes = [QUERIES * wide, QUERIES * KEYS, QUERIES * row, QUERIES, QUERIES, drawn];
    with_scratch(sizes.iter().sum(), 0, |memory: *mut T| {
        // SAFETY: the scratch memory has so many elements, and is ours until the tile is done.
        let memory = unsafe { from_raw_parts_mut(memory, sizes.iter().sum()) };
        let [queries, scores, sums, tops, weights, drawn] = parts(memory, sizes);
        q.pack(head, first..first + count, lengths.d, T::of(how.scale), queries);
        sums.fill(T::default());
        tops.fill(T::LOWEST);
        weights.fill(T::default());
        for key in (0..lengths.keys).step_by(KEYS) {
            if how.skips(first, count, key) {
                break;
            }
            let n = KEYS.min(lengths.keys - key);
            let at = Place::new(head, first, count, key, n);
            how.scores(lengths, at, queries, panels, scores);
            soften(scores, at.rows, tops, weights, sums, row);
            if let Some(dropout) = &how.dropout {
                how.factors(dropout, lengths, at, drawn);
                super::tile::multiply(scores, at.rows, drawn);
            }
            let left = Left { x: scores, row: KEYS, column: 1 };
            product((count, n, row), left, &values[key * row..], row, sums, row, true);
        }
        for i in 0..count {
            let none = weights[i] == T::default();
            let factor = if none { T::default() } else { T::of(1.0) / weights[i] };
            let (from, to) = (&sums[i * row..], &mut rows[i * lengths.v..(i + 1) * lengths.v]);
            to.iter_mut().zip(from).for_each(|(o, &x)| *o = x * factor);
            totals[i] = if none { T::default() } else { tops[i] + weights[i].ln() };
        }
    });
}
