//! Peak memory of loops with checkpoints.

use pullback::memory;
use pullback::prelude::*;
use pullback::{Bound, Policy, Schedule, checkpoint_with, scan_with, while_loop_with};
use pullback_testing::alone;

#[test]
fn memory_stays_within_the_slots() {
    let _turn = alone();
    const N: usize = 128; // elements of a state
    let x = Tensor::linspace(0.0, 1.0, N);
    let states = |schedule: Option<Schedule>, steps: usize| {
        let step = |x: &Tensor, _: &()| (x.sin(), ());
        let f = |x: &Tensor| match schedule {
            Some(s) => scan_with(s, step, x, steps).0.sum(),
            None => scan(step, x, steps).0.sum(),
        };
        let before = memory::live_bytes();
        memory::reset_peak();
        grad(f)(&x);
        (memory::peak_bytes() - before) / (8 * N)
    };
    // A few more than the slots: the state and the residuals of the step at work, cotangents, temporaries.
    assert!(states(None, 400) >= 400);
    assert!(states(Some(Schedule::Binomial { slots: 5 }), 400) <= 5 + 6);
    assert!(states(Some(Schedule::Online { slots: 5 }), 400) <= 5 + 6);
    assert!(states(Some(Schedule::Recursive), 400) <= 10 + 6);
    assert!(states(Some(Schedule::Sqrt), 400) <= 20 + 20 + 6);
}

#[test]
fn a_while_loop_stays_within_its_slots() {
    let _turn = alone();
    const N: usize = 128;
    let states = |checkpointed: bool| {
        let x = Tensor::linspace(1.0, 2.0, N);
        let (go_on, step) = (|x: &Tensor| x.sum().gt(N as f64 * 0.1), |x: &Tensor| x.sin());
        let f = |x: &Tensor| match checkpointed {
            true => while_loop_with(
                Bound::at_most(10_000).schedule(Schedule::Online { slots: 5 }),
                go_on,
                step,
                x,
            )
            .sum(),
            false => while_loop(go_on, step, x).sum(),
        };
        let before = memory::live_bytes();
        memory::reset_peak();
        grad(f)(&x);
        (memory::peak_bytes() - before) / (8 * N)
    };
    let all = states(false);
    assert!(all > 250, "{all}: as many as there are steps");
    // A few more than the slots: the state and the residuals of the step at work, cotangents, temporaries.
    assert!(states(true) <= 5 + 6);
}

#[test]
fn what_is_offloaded_is_not_in_memory() {
    let _turn = alone();
    const N: usize = 128; // elements of a layer
    let layer = |x: &Tensor| x.sin().exp().tanh();
    /// The buffers of a layer's size after twenty layers, and at the peak of their gradient.
    fn buffers(layer: impl Fn(&Tensor) -> Tensor) -> (usize, usize) {
        let x = Tensor::linspace(0.0, 1.0, N).requires_grad();
        let before = memory::live_bytes();
        memory::reset_peak();
        let y = (0..20).fold(x.clone(), |x, _| layer(&x)).sum();
        let kept = memory::live_bytes() - before;
        y.into_backward();
        (kept / (8 * N), (memory::peak_bytes() - before) / (8 * N))
    }
    let dir = std::env::temp_dir();
    let (kept, peak) = buffers(layer);
    assert!(kept >= 39 && peak >= kept, "{kept}, {peak}: the results of exp and tanh in every layer");
    // What one layer needs, whatever the number of layers.
    for policy in [Policy::Everything, Policy::Nothing] {
        let (kept, peak) = buffers(checkpoint_with(policy.offload(&dir), layer));
        assert!(kept == 0 && peak <= 8, "{policy:?}: {kept}, {peak}");
    }
    let (kept, peak) = buffers(checkpoint_with(Policy::rerun().offload(&dir), layer));
    assert!(kept == 0 && peak <= 8, "{kept}, {peak}");
    assert!(buffers(checkpoint(layer)).0 >= 19, "the inputs of the layers, without a file for them");
}
