//! Any bytes as a safetensors file, into a tree.
//! `cargo +nightly fuzz run safetensors`

#![no_main]

use libfuzzer_sys::fuzz_target;
use pullback::prelude::*;
use pullback::save;

fuzz_target!(|bytes: &[u8]| {
    let like = (Tensor::full([2], 0f32), vec![Tensor::scalar(0i64), Tensor::full([1, 2], false)]);
    if let Ok(tree) = save::from_bytes(&like, bytes) {
        let written = save::to_bytes(&tree).unwrap();
        assert_eq!(save::to_bytes(&save::from_bytes(&like, &written).unwrap()).unwrap(), written);
    }
});
