//! Colourings: which columns of a sparse matrix can be computed together and told apart afterwards.

use super::pattern::Pattern;
use std::collections::HashMap;

/// A colour for each column, and how many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Colouring {
    /// The colour of each column, from 0.
    pub colours: Vec<u32>,
    /// The number of colours.
    pub count: usize,
}

/// Columns with the most neighbours first: they are the hardest to place.
fn order(degree: impl Fn(usize) -> usize, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&k| std::cmp::Reverse(degree(k)));
    order
}

/// The smallest colour that the vertex `v` is not forbidden. `forbidden[c]` names the last vertex that may not have `c`.
fn smallest(forbidden: &[usize], v: usize) -> u32 {
    forbidden.iter().position(|&f| f != v).expect("there is a colour for every vertex") as u32
}

const NONE: u32 = u32::MAX;

fn finished(colours: Vec<u32>) -> Colouring {
    let count = colours.iter().max().map_or(0, |&c| c as usize + 1);
    Colouring { colours, count }
}

/// Columns of one colour have no row in common (distance-2 colouring), so a product with the sum of their unit vectors
/// holds each of their entries.
pub fn columns(pattern: &Pattern) -> Colouring {
    let (n, by_column) = (pattern.columns(), pattern.transposed());
    let mut colours = vec![NONE; n];
    let mut forbidden = vec![usize::MAX; n + 1];
    for v in order(|k| by_column.row(k).len(), n) {
        for &row in by_column.row(v) {
            for &w in pattern.row(row as usize) {
                if colours[w as usize] != NONE {
                    forbidden[colours[w as usize] as usize] = v;
                }
            }
        }
        colours[v] = smallest(&forbidden, v);
    }
    finished(colours)
}

/// The neighbours of `v` in the graph of a symmetric pattern.
fn neighbours(pattern: &Pattern, v: usize) -> impl Iterator<Item = usize> {
    pattern.row(v).iter().map(|&w| w as usize).filter(move |&w| w != v)
}

/// Every path of four vertices has three colours (star colouring): each entry of a symmetric matrix, or its mirror image,
/// stands alone in some compressed column.
///
/// # Panics
/// If the pattern is not square.
#[track_caller]
pub fn star(pattern: &Pattern) -> Colouring {
    let n = pattern.columns();
    assert_eq!(pattern.rows(), n, "star: a symmetric pattern is square");
    let mut colours = vec![NONE; n];
    let mut forbidden = vec![usize::MAX; n + 1];
    for v in order(|k| pattern.row(k).len(), n) {
        for w in neighbours(pattern, v) {
            if colours[w] != NONE {
                forbidden[colours[w] as usize] = v;
            }
            for x in neighbours(pattern, w).filter(|&x| x != v && colours[x] != NONE) {
                // v-w-x with w still to come, or v-w-x-y with y coloured like w: then x must differ from v.
                let closes = || neighbours(pattern, x).any(|y| y != w && colours[y] == colours[w]);
                if colours[w] == NONE || closes() {
                    forbidden[colours[x] as usize] = v;
                }
            }
        }
        colours[v] = smallest(&forbidden, v);
    }
    finished(colours)
}

/// Disjoint sets of edges: the trees that two colours make.
struct Trees(Vec<u32>);

impl Trees {
    fn find(&mut self, mut e: u32) -> u32 {
        while self.0[e as usize] != e {
            self.0[e as usize] = self.0[self.0[e as usize] as usize];
            e = self.0[e as usize];
        }
        e
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a as usize] = b;
    }
}

/// Neighbours differ and every cycle has three colours (acyclic colouring): the entries of two colours form trees, and are
/// found from the leaves inwards. Needs fewer colours than [`star`], and subtractions.
///
/// # Panics
/// If the pattern is not square.
#[track_caller]
pub fn acyclic(pattern: &Pattern) -> Colouring {
    let n = pattern.columns();
    assert_eq!(pattern.rows(), n, "acyclic: a symmetric pattern is square");
    // One number for the edge and its mirror image.
    let edge =
        |v: usize, w: usize| pattern.position(v.min(w), v.max(w)).expect("the pattern is symmetric") as u32;
    let mut trees = Trees((0..pattern.nnz() as u32).collect());
    let mut colours = vec![NONE; n];
    let mut forbidden = vec![usize::MAX; n + 1];
    for v in order(|k| pattern.row(k).len(), n) {
        // By which neighbour of v each tree was reached first.
        let mut reached: HashMap<u32, usize> = HashMap::new();
        for w in neighbours(pattern, v).filter(|&w| colours[w] != NONE) {
            forbidden[colours[w] as usize] = v;
            for x in neighbours(pattern, w).filter(|&x| x != v && colours[x] != NONE) {
                let tree = trees.find(edge(w, x));
                if *reached.entry(tree).or_insert(w) != w {
                    // Two ways into one tree: with the colour of x, v would close a cycle.
                    forbidden[colours[x] as usize] = v;
                }
            }
        }
        colours[v] = smallest(&forbidden, v);
        let mut of_colour: HashMap<u32, u32> = HashMap::new();
        for w in neighbours(pattern, v).filter(|&w| colours[w] != NONE) {
            let here = edge(v, w);
            let first = *of_colour.entry(colours[w]).or_insert(here);
            trees.join(here, first);
            for x in neighbours(pattern, w).filter(|&x| x != v && colours[x] == colours[v]) {
                trees.join(here, edge(w, x));
            }
        }
    }
    finished(colours)
}
