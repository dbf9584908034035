//! Attention takes memory for queries and keys, not for their pairs.

use pullback::{Attention, attention, memory, prelude::*};
use pullback_testing::alone;

#[test]
fn the_memory_of_attention_is_linear() {
    let _turn = alone();
    memory::set_pool_limit(0);
    let taken = |n: usize| {
        let x = [1, 2, 3].map(|k| Tensor::randn(Key::new(k), [n, 8], DType::F32).requires_grad());
        let before = memory::live_bytes();
        memory::reset_peak();
        attention(&x[0], &x[1], &x[2], Attention::new()).sum().backward();
        memory::peak_bytes() - before
    };
    let (short, long) = (taken(256), taken(1024));
    assert!(long <= 5 * short, "{short} bytes for 256 queries and keys, {long} for 1024");
    assert!(long < 1024 * 1024 * 4, "{long} bytes hold all scores");
    memory::set_pool_limit(1 << 30);
}
