//! Sparse derivatives: patterns, colourings, and the entries read from compressed products.

use pullback::scalar::sparse::{Colouring, Pattern, acyclic, columns, star};
use pullback::scalar::{Function, Real};
use pullback_testing::Dice;

/// A symmetric pattern with diagonal, of `n` rows with about `k` random entries each.
fn random(n: usize, k: usize, seed: u64) -> Pattern {
    let mut rows: Vec<Vec<u32>> = (0..n as u32).map(|i| vec![i]).collect();
    let mut dice = Dice(seed);
    for i in 0..n {
        for _ in 0..k {
            let j = dice.roll(n);
            rows[i].push(j as u32);
            rows[j].push(i as u32);
        }
    }
    Pattern::from_rows(n, rows)
}

fn edges(p: &Pattern) -> Vec<(usize, usize)> {
    (0..p.rows())
        .flat_map(|i| p.row(i).iter().map(move |&j| (i, j as usize)))
        .filter(|(i, j)| i < j)
        .collect()
}

fn proper(p: &Pattern, c: &Colouring) -> bool {
    edges(p).iter().all(|&(i, j)| c.colours[i] != c.colours[j])
}

#[test]
fn columns_of_one_colour_share_no_row() {
    for seed in 0..5 {
        let p = random(60, 2, seed);
        let c = columns(&p);
        for i in 0..p.rows() {
            let mut seen: Vec<u32> = p.row(i).iter().map(|&j| c.colours[j as usize]).collect();
            seen.sort_unstable();
            assert!(seen.windows(2).all(|w| w[0] != w[1]));
        }
    }
}

#[test]
fn star_colouring_has_no_path_of_four_in_two_colours() {
    for seed in 0..5 {
        let p = random(40, 2, seed);
        let c = star(&p);
        assert!(proper(&p, &c));
        let near =
            |v: usize| p.row(v).iter().map(|&w| w as usize).filter(move |&w| w != v).collect::<Vec<_>>();
        for a in 0..p.rows() {
            for b in near(a) {
                for d in near(b).into_iter().filter(|&d| d != a && c.colours[d] == c.colours[a]) {
                    assert!(near(d).into_iter().all(|e| e == b || e == a || c.colours[e] != c.colours[b]));
                }
            }
        }
    }
}

#[test]
fn acyclic_colouring_leaves_forests() {
    for seed in 0..5 {
        let p = random(40, 2, seed);
        let c = acyclic(&p);
        assert!(proper(&p, &c) && c.count <= star(&p).count);
        for x in 0..c.count as u32 {
            for y in x + 1..c.count as u32 {
                // A forest has no edge between two vertices that are already connected.
                let mut root: Vec<usize> = (0..p.rows()).collect();
                fn find(root: &[usize], v: usize) -> usize {
                    if root[v] == v { v } else { find(root, root[v]) }
                }
                for (i, j) in edges(&p) {
                    let pair = [c.colours[i], c.colours[j]];
                    if pair == [x, y] || pair == [y, x] {
                        let (a, b) = (find(&root, i), find(&root, j));
                        assert_ne!(a, b, "a cycle in colours {x} and {y}");
                        root[a] = b;
                    }
                }
            }
        }
    }
}

#[test]
fn a_long_chain_needs_three_colours_or_two() {
    fn chain<T: Real>(x: &[T]) -> T {
        x.windows(2).map(|w| (w[0] * w[1]).sin()).sum()
    }
    let f = Function::record(chain, 50);
    let x: Vec<f64> = (0..50).map(|k| (k as f64).cos()).collect();
    let dense = f.hessian(&x);
    for (h, colours) in [(f.sparse_hessian(&x), 3), (f.sparse_hessian_by_substitution(&x), 2)] {
        assert_eq!((h.colors(), h.nnz()), (colours, 50 + 2 * 49));
        for (i, row) in dense.iter().enumerate() {
            for (j, &e) in row.iter().enumerate() {
                assert!((h.get(i, j) - e).abs() < 1e-13);
            }
        }
    }
}

#[test]
fn jacobians_by_columns_and_by_rows() {
    fn tall<T: Real>(x: &[T]) -> Vec<T> {
        (0..30).map(|k| x[k % 5] * x[(k + 1) % 5].sin() + k as f64).collect()
    }
    fn arrow<T: Real>(x: &[T]) -> Vec<T> {
        let mut y = vec![x.iter().map(|&x| x * x).sum()];
        y.extend(x[1..].iter().map(|&a| a.exp()));
        y
    }
    for f in [Function::record(tall, 5), Function::record(arrow, 12)] {
        let x: Vec<f64> = (0..f.inputs()).map(|k| 0.3 + 0.1 * k as f64).collect();
        let sparse = f.sparse_jacobian(&x);
        let dense = f.jacobian(&x);
        assert_eq!(sparse.nnz(), dense.iter().flatten().filter(|&&d| d != 0.0).count());
        assert!(
            sparse
                .to_dense()
                .iter()
                .flatten()
                .zip(dense.iter().flatten())
                .all(|(a, b)| (a - b).abs() < 1e-14)
        );
        // The three forms hold the same entries.
        let (starts, rows, values) = sparse.to_csc();
        for (i, j, value) in sparse.triplets() {
            let at = (starts[j]..starts[j + 1]).find(|&k| rows[k] == i).unwrap();
            assert_eq!(values[at], value);
        }
        let ones = vec![1.0; f.inputs()];
        let sums: Vec<f64> = dense.iter().map(|row| row.iter().sum()).collect();
        assert!(sparse.times(&ones).iter().zip(sums).all(|(a, b)| (a - b).abs() < 1e-13));
        let down: Vec<f64> = (0..f.inputs()).map(|j| dense.iter().map(|row| row[j]).sum()).collect();
        let product = sparse.transpose_times(&vec![1.0; f.outputs()]);
        assert!(product.iter().zip(down).all(|(a, b)| (a - b).abs() < 1e-12));
    }
    // The first row is full, the other entries lie on the diagonal: by rows two products do.
    assert_eq!(Function::record(arrow, 12).sparse_jacobian(&[0.5; 12]).colors(), 2);
}

#[test]
fn functions_that_are_flat_have_no_entries() {
    fn f<T: Real>(x: &[T]) -> Vec<T> {
        vec![x[0].floor() + x[1], x[1].sign() * x[0], x[0].select_lt(x[1], x[2], T::constant(1.0))]
    }
    let j = Function::record(f, 3).sparse_jacobian(&[0.5, 1.5, 2.5]);
    let places: Vec<(usize, usize)> = j.triplets().map(|(i, j, _)| (i, j)).collect();
    // The second function keeps a place for x[1] out, since a sign has no slope.
    assert_eq!(places, [(0, 1), (1, 0), (2, 2)]);
    assert_eq!(Function::record(f, 3).sparse_jacobian(&[0.5, 1.5, 2.5]).colors(), 1);
}
