//! The order of kernels: that of the graph, or one that needs less memory.

use super::work::{Kernel, Program};
use crate::graph::liveness::{Liveness, sizes};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The registers that a kernel reads, once each.
fn distinct(kernel: &Kernel) -> SmallVec<[usize; 4]> {
    let mut out: SmallVec<[usize; 4]> = kernel.reads().collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// The better of the order of the graph and the greedy one, by the bytes alive at once.
pub(super) fn choose(program: &Program) -> Vec<usize> {
    let traced: Vec<usize> = (0..program.kernels.len()).collect();
    let greedy = greedy(program);
    let peak = |order: &[usize]| Liveness::new(program, order).peak;
    if peak(&greedy) < peak(&traced) { greedy } else { traced }
}

/// List scheduling: of the kernels that can run, the one that frees most bytes more than it makes; of equals, the first.
fn greedy(program: &Program) -> Vec<usize> {
    let bytes = sizes(program);
    let escaping = program.escaping();
    let n = program.kernels.len();
    // The kernels that read each register, once each.
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); bytes.len()];
    let mut waits = vec![0usize; n];
    for (k, kernel) in program.kernels.iter().enumerate() {
        for r in distinct(kernel) {
            readers[r].push(k);
            waits[k] += usize::from(r >= program.donated.len());
        }
    }
    let mut left: Vec<usize> = readers.iter().map(Vec::len).collect();
    let mut done = vec![false; n];
    let gain = |k: usize, left: &[usize]| {
        let made: usize = program.kernels[k].results.clone().map(|r| bytes[r]).sum();
        let dies = |r: &usize| left[*r] == 1 && !escaping[*r];
        let freed: usize = distinct(&program.kernels[k]).into_iter().filter(dies).map(|r| bytes[r]).sum();
        freed as isize - made as isize
    };
    // A gain only grows while a kernel waits, and is pushed again when it does: the first entry found is the largest.
    let mut ready = BinaryHeap::new();
    (0..n).filter(|&k| waits[k] == 0).for_each(|k| ready.push((gain(k, &left), Reverse(k))));
    let mut order = Vec::with_capacity(n);
    while let Some((_, Reverse(k))) = ready.pop() {
        if std::mem::replace(&mut done[k], true) {
            continue;
        }
        order.push(k);
        for r in distinct(&program.kernels[k]) {
            left[r] -= 1;
            if left[r] == 1 {
                let waiting = readers[r].iter().filter(|&&j| !done[j] && waits[j] == 0);
                waiting.for_each(|&j| ready.push((gain(j, &left), Reverse(j))));
            }
        }
        for r in program.kernels[k].results.clone() {
            for &j in &readers[r] {
                waits[j] -= 1;
                if waits[j] == 0 {
                    ready.push((gain(j, &left), Reverse(j)));
                }
            }
        }
    }
    debug_assert_eq!(order.len(), n);
    order
}
