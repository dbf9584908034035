//! Sparse Jacobians and Hessians: find the pattern, colour it, evaluate a few products, and read the entries from them.

mod colour;
mod matrix;
mod pattern;

pub use colour::{Colouring, acyclic, columns, star};
pub use matrix::{Compressed, SparseMatrix};
pub use pattern::Pattern;

use super::Function;

/// How a sparse matrix is computed.
#[derive(Debug)]
pub(super) enum Plan {
    /// Products with groups of columns.
    Columns(Pattern, Colouring),
    /// Products with groups of rows.
    Rows(Pattern, Colouring),
    /// Products of a symmetric matrix, with the order in which its entries are found.
    Symmetric(Pattern, Colouring, Vec<Recovery>),
}

/// One step in reading a symmetric matrix from its products: the entry at `place` and its `mirror` is what is
/// left of row `row` of the product for `colour`, and is taken from row `other` of the product for `other_colour`.
#[derive(Debug)]
pub(super) struct Recovery {
    place: usize,
    mirror: usize,
    row: usize,
    colour: usize,
    other: usize,
    other_colour: usize,
}

/// The plan for the Jacobian of a function.
pub(super) fn jacobian_plan(f: &Function) -> Plan {
    let pattern = pattern::jacobian(f.graph());
    let (by_columns, by_rows) = (columns(&pattern), columns(&pattern.transposed()));
    if by_columns.count <= by_rows.count {
        Plan::Columns(pattern, by_columns)
    } else {
        Plan::Rows(pattern, by_rows)
    }
}

/// The plan for the Hessian of a function, whose pattern is that of the Jacobian of its gradient.
pub(super) fn hessian_plan(f: &Function, colour: fn(&Pattern) -> Colouring) -> Plan {
    let pattern = pattern::jacobian(f.gradient_function().graph()).symmetrised();
    let colouring = colour(&pattern);
    let order = recovery(&pattern, &colouring);
    Plan::Symmetric(pattern, colouring, order)
}

/// Entries that stand alone in their row of a product first, then those that are alone once these are known.
fn recovery(pattern: &Pattern, colouring: &Colouring) -> Vec<Recovery> {
    let colour = |v: usize| colouring.colours[v] as usize;
    let n = pattern.rows();
    // How many unknown entries row i of product c holds, by (i, c).
    let mut unknown = std::collections::HashMap::<(usize, usize), Vec<u32>>::new();
    for i in 0..n {
        for &j in pattern.row(i) {
            unknown.entry((i, colour(j as usize))).or_default().push(j);
        }
    }
    let mut ready: std::collections::VecDeque<(usize, usize)> =
        unknown.iter().filter(|(_, js)| js.len() == 1).map(|(&at, _)| at).collect();
    // The map has no order of its own; results must not depend on it.
    ready.make_contiguous().sort_unstable();
    let mut steps = Vec::with_capacity(pattern.nnz());
    while let Some((i, c)) = ready.pop_front() {
        let Some(j) = unknown.get_mut(&(i, c)).and_then(|js| js.pop()) else { continue };
        let j = j as usize;
        let place = |i, j| pattern.position(i, j).expect("a symmetric pattern");
        steps.push(Recovery {
            place: place(i, j),
            mirror: place(j, i),
            row: i,
            colour: c,
            other: j,
            other_colour: colour(i),
        });
        if i != j
            && let Some(rest) = unknown.get_mut(&(j, colour(i)))
        {
            rest.retain(|&k| k as usize != i);
            if rest.len() == 1 {
                ready.push_back((j, colour(i)));
            }
        }
    }
    assert!(unknown.values().all(Vec::is_empty), "the colouring does not determine all entries");
    steps
}

/// The products of a function `(x, v) -> ..` with the sums of the unit vectors of each colour, a row for each.
#[track_caller]
fn products(f: &Function, x: &[f64], colouring: &Colouring) -> Vec<f64> {
    let mut points = Vec::with_capacity(colouring.count * f.inputs());
    for c in 0..colouring.count as u32 {
        points.extend_from_slice(x);
        points.extend(colouring.colours.iter().map(|&k| if k == c { 1.0 } else { 0.0 }));
    }
    f.evaluate_many(&points)
}

/// The matrix at `x`, given the plan for it.
#[track_caller]
pub(super) fn evaluate(f: &Function, plan: &Plan, x: &[f64]) -> SparseMatrix {
    assert_eq!(x.len(), f.inputs(), "the function has {} inputs", f.inputs());
    match plan {
        Plan::Columns(pattern, colouring) => {
            let m = pattern.rows();
            let compressed = products(f.pushforward_function(), x, colouring);
            let entry = |i: usize, j: u32| compressed[colouring.colours[j as usize] as usize * m + i];
            let values =
                (0..m).flat_map(|i| pattern.row(i).iter().map(move |&j| (i, j))).map(|(i, j)| entry(i, j));
            SparseMatrix::new(pattern.clone(), values.collect(), colouring.count)
        }
        Plan::Rows(pattern, colouring) => {
            let n = pattern.columns();
            let compressed = products(f.pullback_function(), x, colouring);
            let entry = |i: usize, j: u32| compressed[colouring.colours[i] as usize * n + j as usize];
            let rows = 0..pattern.rows();
            let values =
                rows.flat_map(|i| pattern.row(i).iter().map(move |&j| (i, j))).map(|(i, j)| entry(i, j));
            SparseMatrix::new(pattern.clone(), values.collect(), colouring.count)
        }
        Plan::Symmetric(pattern, colouring, order) => {
            let n = pattern.rows();
            let mut left = products(f.hessian_product_function(), x, colouring);
            let mut values = vec![0.0; pattern.nnz()];
            for step in order {
                let value = left[step.colour * n + step.row];
                values[step.place] = value;
                values[step.mirror] = value;
                if step.place != step.mirror {
                    left[step.other_colour * n + step.other] -= value;
                }
            }
            SparseMatrix::new(pattern.clone(), values, colouring.count)
        }
    }
}
