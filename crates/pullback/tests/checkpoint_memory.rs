//! Peak memory of loops with checkpoints; a file of its own, because the count is of the whole process.

use pullback::memory;
use pullback::prelude::*;

#[test]
fn memory_stays_within_the_slots() {
    const N: usize = 1000; // elements of a state
    let x = Tensor::linspace(0.0, 1.0, N);
    let states = |schedule: Option<Schedule>, steps: usize| {
        let step = |x: &Tensor, _: &()| (x.sin(), ());
        let f = |x: &Tensor| match schedule {
            Some(s) => scan_checkpointed(step, x, steps, s).0.sum(),
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
