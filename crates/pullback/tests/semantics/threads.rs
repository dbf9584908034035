//! Graphs and leaves across threads.

use super::*;

#[test]
fn many_threads_add_to_one_gradient() {
    let w = leaf(1.0);
    std::thread::scope(|s| {
        for k in 0..8 {
            let w = &w;
            s.spawn(move || (0..100).for_each(|_| (w * k as f64).backward()));
        }
    });
    assert_eq!(w.grad().unwrap().item(), 100.0 * 28.0);
}

#[test]
fn a_graph_made_in_one_thread_is_walked_and_dropped_in_another() {
    let x = Tensor::arange(0.0, 5000.0, 1.0).requires_grad();
    let loss = x.square().exp().sum() * 0.0 + x.sum();
    let loss = std::thread::spawn(move || {
        loss.backward();
        loss
    })
    .join()
    .unwrap();
    drop(loss);
    assert!(x.grad().is_some());
}
