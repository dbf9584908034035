//! Updates in place take no memory.

use pullback::{memory, prelude::*};
use pullback_testing::alone;

#[test]
fn buffers_that_nobody_else_sees_are_reused() {
    let _turn = alone();
    let mut x = Tensor::arange(0.0, 1e5, 1.0);
    memory::reset_peak();
    let before = memory::live_bytes();
    let view = x.slice(..3);
    drop(view);
    for k in 0..10 {
        x += 1.0;
        x.slice_assign(k, 0.0);
    }
    assert_eq!(x.item_at([0]), 9.0);
    assert!(memory::peak_bytes() < before + 400_000);
}
