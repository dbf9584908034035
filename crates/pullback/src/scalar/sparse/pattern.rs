//! Which derivatives can be other than zero, found by passing sets of indices through a recorded function.

use crate::scalar::function::{Graph, Op};
use pullback_table::elementwise_table;
use std::rc::Rc;

/// The places of a sparse matrix that may hold something, row by row in order of their columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    columns: usize,
    /// Where each row starts in `indices`, and where the last one ends.
    starts: Vec<usize>,
    indices: Vec<u32>,
}

impl Pattern {
    /// A pattern from the columns of each row.
    ///
    /// # Panics
    /// If a column is not below `columns`.
    #[track_caller]
    pub fn from_rows(columns: usize, rows: impl IntoIterator<Item = Vec<u32>>) -> Pattern {
        let mut pattern = Pattern { columns, starts: vec![0], indices: Vec::new() };
        for mut row in rows {
            row.sort_unstable();
            row.dedup();
            assert!(
                row.last().is_none_or(|&k| (k as usize) < columns),
                "pattern: there are {columns} columns"
            );
            pattern.indices.extend(row);
            pattern.starts.push(pattern.indices.len());
        }
        pattern
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The number of places.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// The columns of the places of a row.
    pub fn row(&self, k: usize) -> &[u32] {
        &self.indices[self.starts[k]..self.starts[k + 1]]
    }

    pub(super) fn starts(&self) -> &[usize] {
        &self.starts
    }

    pub(super) fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// The number of the place `(i, j)`, if it is one.
    pub fn position(&self, i: usize, j: usize) -> Option<usize> {
        let at = self.row(i).binary_search(&u32::try_from(j).ok()?).ok()?;
        Some(self.starts[i] + at)
    }

    /// Rows and columns exchanged.
    pub fn transposed(&self) -> Pattern {
        let mut rows = vec![Vec::new(); self.columns];
        for i in 0..self.rows() {
            self.row(i).iter().for_each(|&j| rows[j as usize].push(i as u32));
        }
        Pattern::from_rows(self.rows(), rows)
    }

    /// The places of this square pattern and of its transpose.
    pub(super) fn symmetrised(&self) -> Pattern {
        let other = self.transposed();
        Pattern::from_rows(self.columns, (0..self.rows()).map(|k| [self.row(k), other.row(k)].concat()))
    }
}

macro_rules! flat_rows {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        /// Whether the derivatives of the operation are zero everywhere.
        fn is_flat(op: Op) -> bool {
            match op {
                Op::Fixed | Op::Less | Op::LessEqual => true,
                $(Op::$P => flat_rows!(@zero $d),)*
                _ => false,
            }
        }
    };
    (@zero [0.0]) => { true };
    (@zero [0.0, 0.0]) => { true };
    (@zero $other:tt) => { false };
}
elementwise_table!(flat_rows);

/// The union of two sorted sets.
fn union(a: &Rc<[u32]>, b: &Rc<[u32]>) -> Rc<[u32]> {
    if b.is_empty() || Rc::ptr_eq(a, b) {
        return a.clone();
    }
    if a.is_empty() {
        return b.clone();
    }
    let mut all = Vec::with_capacity(a.len() + b.len());
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        all.push(a[i].min(b[j]));
        let (x, y) = (a[i], b[j]);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    all.extend_from_slice(&a[i..]);
    all.extend_from_slice(&b[j..]);
    if all.len() == a.len() { a.clone() } else { all.into() }
}

/// The pattern of the Jacobian of a recorded function.
pub(super) fn jacobian(graph: &Graph) -> Pattern {
    let mut last_use: Vec<usize> = (0..graph.nodes.len()).collect();
    for (k, node) in graph.nodes.iter().enumerate() {
        node.reads().iter().for_each(|&a| last_use[a as usize] = k);
    }
    graph.outputs.iter().for_each(|&y| last_use[y as usize] = usize::MAX);
    let empty: Rc<[u32]> = Rc::from([]);
    let mut sets: Vec<Rc<[u32]>> = Vec::with_capacity(graph.nodes.len());
    for (k, node) in graph.nodes.iter().enumerate() {
        let carrying = match node.op {
            op if is_flat(op) => &[],
            Op::Select => &node.args[1..],
            _ => node.reads(),
        };
        let set = match node.op {
            Op::Input => Rc::from([node.args[0]]),
            _ => carrying.iter().fold(empty.clone(), |set, &a| union(&set, &sets[a as usize])),
        };
        sets.push(set);
        // Sets of long sums grow; those that are not needed any more go.
        for &a in node.reads().iter().filter(|&&a| last_use[a as usize] == k) {
            sets[a as usize] = empty.clone();
        }
    }
    Pattern::from_rows(graph.inputs, graph.outputs.iter().map(|&y| sets[y as usize].to_vec()))
}
