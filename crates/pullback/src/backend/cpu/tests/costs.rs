//! What is counted and measured.

use super::graph;
use crate::backend::cpu::Plan;
use crate::fori;
use crate::prelude::*;

#[test]
fn statistics_count_what_runs() {
    let x = [Tensor::ones([10, 20]), Tensor::ones([20])];
    let g = graph(&x, |x| vec![(x[0].matmul(&x[0].t()).exp() + x[1].narrow(0, 0, 10)).sum_axes(0)]);
    let s = Plan::new(&g, &[]).unwrap().statistics();
    // A transpose, a slice and a broadcast are views, and the exponential follows the product.
    assert_eq!((s.operations, s.kernels), (7, 3));
    assert_eq!(s.flops, 2 * 10 * 10 * 20 + 15 * 100 + 100 + 100);
    assert_eq!(s.bytes_read, 8 * (200 + 200 + 100 + 10 + 100));
    assert_eq!(s.bytes_written, 8 * (100 + 100 + 10));
    // The exponential is overwritten, the output is apart; both are rounded up to a power of two.
    assert_eq!(s.peak_bytes, 1024 + 128);
    // Operation by operation two matrices are alive at once.
    assert_eq!(g.statistics().peak_bytes, 2048);
    assert_eq!(g.statistics().flops, s.flops);
}

#[test]
fn a_loop_counts_each_step_and_a_choice_the_dearer_branch() {
    let x = [Tensor::ones([10])];
    let g = graph(&x, |x| vec![fori(7, |_, h: &Tensor| h * 2.0 + 1.0, &x[0])]);
    let s = g.statistics();
    assert_eq!((s.kernels, s.flops), (14, 140));
    let g = graph(&x, |x| vec![cond(&x[0].sum().gt(0.0), |x: &Tensor| x.exp(), |x: &Tensor| -x, &x[0])]);
    assert_eq!(g.statistics().flops, 10 + 1 + 150);
}

#[test]
fn a_profile_has_a_row_for_each_kind_and_line() {
    let x = [Tensor::ones([10, 10])];
    let g = graph(&x, |x| {
        let y = (0..4).fold(x[0].clone(), |y, _| y.matmul(&x[0]));
        vec![y.exp()]
    });
    let profile = Plan::new(&g, &[]).unwrap().profile(&x).unwrap();
    let mut rows: Vec<_> = profile.rows.iter().map(|r| (r.kernel, r.count, r.flops, r.bytes)).collect();
    rows.sort_unstable();
    assert_eq!(rows, [("matmul", 3, 6000, 7200), ("matmul+fused", 1, 3500, 2400)]);
    let text = profile.to_string();
    assert!(text.contains("matmul") && text.contains("costs.rs:"), "{text}");
    let widths: Vec<usize> = text
        .lines()
        .take(3)
        .map(|l| l.find("kernel").or(l.find("matmul")).or(l.find("exp")).unwrap())
        .collect();
    assert!(widths.iter().all(|w| *w == widths[0]), "{text}");
    let json = profile.to_json();
    assert!(json.starts_with("{\"nanoseconds\":") && json.ends_with("]}"), "{json}");
    assert!(json.contains("\"kernel\":\"matmul\",\"location\":\""), "{json}");
    assert!(json.contains("\"count\":3,"), "{json}");
}
