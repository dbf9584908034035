//! Scaled dot-product attention in tiles, in memory linear in the number of queries and keys (Dao et al., "FlashAttention", 2022; the softmax of pieces is
//! that of Milakov and Gimelshein, 2018).
//!
//! A *head* is one matrix of queries with its keys and values. Keys and values are copied once for each head, into panels for products with
//! queries and into padded rows for the others. Results do not depend on the number of threads.

mod backward;
mod forward;
mod tile;

use super::matmul::Fused;
use super::random::{Philox, unit};
use super::rows::RowMath;
use super::strided::Axes;
use super::view::View;
pub(crate) use backward::{Results, attention_pullback};
pub(crate) use forward::attention;
use std::ops::Range;
use tile::{Rows, padded, panel};

/// Queries and keys of a tile: tiles of scores, queries, keys and values lie in the second cache together.
const QUERIES: usize = 64;
const KEYS: usize = 128;

/// Multiply-adds a thread should have before another one is worth waking.
const GRAIN: usize = 1 << 18;

/// The floats it is computed in.
pub(crate) trait Real: RowMath + Fused {}
impl Real for f32 {}
impl Real for f64 {}

/// What changes scores before the softmax.
#[derive(Clone, Copy)]
pub(crate) enum Mask<'a, T> {
    None,
    /// Added to the scores.
    Added(View<'a, T>),
    /// Where it is 0 a key does not count.
    Kept(View<'a, u8>),
}

/// Weights that are dropped by chance, after the softmax.
pub(crate) struct Dropout {
    /// The probability of a weight to stay.
    pub keep: f64,
    /// One stream for as many heads as divide them evenly, in order.
    pub streams: Vec<Philox>,
}

/// How queries attend.
pub(crate) struct Attention<'a, T> {
    pub scale: f64,
    /// Whether query `i` sees the keys up to `i` only.
    pub causal: bool,
    pub mask: Mask<'a, T>,
    pub dropout: Option<Dropout>,
}

/// The lengths of one head.
#[derive(Clone, Copy)]
struct Lengths {
    heads: usize,
    queries: usize,
    keys: usize,
    /// Elements of a query and of a key, and of a value.
    d: usize,
    v: usize,
}

impl Lengths {
    fn new<T>(q: &View<T>, k: &View<T>, v: &View<T>) -> Lengths {
        let last = q.shape.len() - 1;
        Lengths {
            heads: q.shape[..last - 1].iter().product(),
            queries: q.shape[last - 1],
            keys: k.shape[last - 1],
            d: q.shape[last],
            v: v.shape[last],
        }
    }

    /// The multiply-adds of so many queries of a head.
    fn work(&self, queries: usize) -> usize {
        queries.saturating_mul(self.keys).saturating_mul(self.d + self.v)
    }
}

/// The matrices of a view, one for each head.
struct Heads<'a, T> {
    x: View<'a, T>,
    outer: Axes<1>,
    row: isize,
    column: isize,
}

impl<'a, T: Copy> Heads<'a, T> {
    fn new(x: View<'a, T>) -> Self {
        let front = x.shape.len() - 2;
        Heads {
            x,
            outer: Axes::of(&x.shape[..front], &x.strides[..front]),
            row: x.strides[front],
            column: x.strides[front + 1],
        }
    }

    /// The elements of a row of a head, from a column on.
    fn row(&self, start: isize, row: usize, column: usize, n: usize) -> impl Iterator<Item = T> + '_ {
        let first = start + row as isize * self.row + column as isize * self.column;
        (0..n as isize).map(move |j| self.x.data[(first + j * self.column) as usize])
    }

    /// The same in place, if they lie next to each other.
    fn slice(&self, start: isize, row: usize, column: usize, n: usize) -> Option<&'a [T]> {
        let first = start + row as isize * self.row + column as isize * self.column;
        (self.column == 1 || n == 1).then(|| &self.x.data[first as usize..first as usize + n])
    }

    /// Where a head begins.
    fn start(&self, head: usize) -> isize {
        let mut found = 0;
        self.outer.walk(head..head + 1, |_, [at]| found = at);
        self.x.offset as isize + found
    }
}

impl<T: Real> Heads<'_, T> {
    /// Copies rows of a head, multiplied by a factor, to rows of so many padded elements.
    fn pack(&self, head: usize, rows: Range<usize>, n: usize, factor: T, out: &mut [T]) {
        let (start, stride) = (self.start(head), padded::<T>(n));
        for (i, out) in rows.zip(out.chunks_exact_mut(stride.max(1))) {
            let (to, rest) = out.split_at_mut(n);
            match self.slice(start, i, 0, n) {
                Some(x) => to.iter_mut().zip(x).for_each(|(o, &x)| *o = x * factor),
                None => to.iter_mut().zip(self.row(start, i, 0, n)).for_each(|(o, x)| *o = x * factor),
            }
            rest.fill(T::default());
        }
    }

    /// Copies a head to panels: of as many rows as a panel has columns, the first elements, then the second ones, and so on.
    fn pack_panels(&self, head: usize, rows: usize, n: usize, out: &mut [T]) {
        let (start, width) = (self.start(head), panel::<T>());
        for (p, out) in out.chunks_exact_mut((n * width).max(1)).take(rows.div_ceil(width)).enumerate() {
            let here = width.min(rows - p * width);
            if here < width {
                out.fill(T::default());
            }
            for lane in 0..here {
                let to = out[lane..].iter_mut().step_by(width);
                match self.slice(start, p * width + lane, 0, n) {
                    Some(x) => to.zip(x).for_each(|(o, &x)| *o = x),
                    None => to.zip(self.row(start, p * width + lane, 0, n)).for_each(|(o, x)| *o = x),
                }
            }
        }
    }
}

/// The elements that [`Heads::pack_panels`] writes.
fn in_panels<T>(rows: usize, n: usize) -> usize {
    rows.next_multiple_of(panel::<T>()) * n
}

/// Which part of the scores of a head a tile is.
#[derive(Clone, Copy)]
struct Place {
    head: usize,
    query: usize,
    key: usize,
    rows: Rows,
}

impl Place {
    /// The tile at a query and a key; its rows are [`KEYS`] apart.
    fn new(head: usize, query: usize, queries: usize, key: usize, keys: usize) -> Place {
        Place { head, query, key, rows: Rows { count: queries, n: keys, stride: KEYS } }
    }
}

impl<T: Real> Attention<'_, T> {
    /// Whether no query of a tile sees any of its keys.
    fn skips(&self, query: usize, queries: usize, key: usize) -> bool {
        self.causal && key >= query + queries
    }

    /// The scores of queries (padded rows, scaled) with keys (panels), masked.
    fn scores(&self, lengths: Lengths, at: Place, queries: &[T], panels: &[T], out: &mut [T]) {
        products(at.rows, lengths.d, queries, panels, at.key, out);
        let hidden = T::LOWEST;
        match &self.mask {
            Mask::None => {}
            Mask::Added(mask) => self.masked(Heads::new(*mask), at, out, |s, m| s + m),
            Mask::Kept(mask) => {
                self.masked(Heads::new(*mask), at, out, |s, m| if m == 0 { hidden } else { s })
            }
        }
        if self.causal && at.key + at.rows.n > at.query + 1 {
            for (i, row) in out.chunks_exact_mut(at.rows.stride).take(at.rows.count).enumerate() {
                let seen = (at.query + i + 1).saturating_sub(at.key).min(at.rows.n);
                row[seen..at.rows.n].fill(hidden);
            }
        }
    }

    fn masked<M: Copy>(&self, mask: Heads<M>, at: Place, out: &mut [T], f: impl Fn(T, M) -> T) {
        let start = mask.start(at.head);
        for (i, row) in out.chunks_exact_mut(at.rows.stride).take(at.rows.count).enumerate() {
            let row = &mut row[..at.rows.n];
            match mask.slice(start, at.query + i, at.key, at.rows.n) {
                Some(m) => row.iter_mut().zip(m).for_each(|(s, &m)| *s = f(*s, m)),
                None => {
                    let all = mask.row(start, at.query + i, at.key, at.rows.n);
                    row.iter_mut().zip(all).for_each(|(s, m)| *s = f(*s, m));
                }
            }
        }
    }

    /// The factors of dropout: 0 where a weight is dropped, `1 / keep` elsewhere. Those that `bernoulli` would draw for all scores of a stream's heads.
    fn factors(&self, dropout: &Dropout, lengths: Lengths, at: Place, out: &mut [T]) {
        let each = (lengths.heads / dropout.streams.len().max(1)).max(1);
        let stream = dropout.streams[at.head / each];
        let kept = T::of(1.0 / dropout.keep);
        for (i, row) in out.chunks_exact_mut(at.rows.stride).take(at.rows.count).enumerate() {
            let first = ((at.head % each) * lengths.queries + at.query + i) * lengths.keys + at.key;
            for (j, o) in row[..at.rows.n].iter_mut().enumerate() {
                *o = if unit(stream.word(first + j)) < dropout.keep { kept } else { T::default() };
            }
        }
    }
}

/// The products of each of some padded rows of `d` elements with each of the keys (or values) in panels, from the first of a tile on.
fn products<T: Real>(tile: Rows, d: usize, rows: &[T], panels: &[T], first: usize, out: &mut [T]) {
    let width = panel::<T>();
    let left = tile::Left { x: rows, row: padded::<T>(d), column: 1 };
    for column in (0..tile.n).step_by(width) {
        let b = &panels[(first + column) / width * d * width..];
        tile::product((tile.count, d, width), left, b, width, &mut out[column..], tile.stride, false);
    }
}

/// Parts of a slice, one after the other.
fn parts<T, const N: usize>(mut from: &mut [T], lengths: [usize; N]) -> [&mut [T]; N] {
    lengths.map(|n| {
        let (part, rest) = std::mem::take(&mut from).split_at_mut(n);
        from = rest;
        part
    })
}

#[cfg(test)]
mod tests;
