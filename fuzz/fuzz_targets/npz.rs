//! Any bytes as a `.npz` file. What is read is written so that it reads as the same, compressed or not.
//! `cargo +nightly fuzz run npz`

#![no_main]

use libfuzzer_sys::fuzz_target;
use pullback::{npy, npz};

fuzz_target!(|bytes: &[u8]| {
    let Ok(all) = npz::from_bytes(bytes) else { return };
    let named: Vec<_> = all.iter().map(|(name, x)| (name, x.clone())).collect();
    for written in [npz::to_bytes(&named).unwrap(), npz::to_compressed_bytes(&named).unwrap()] {
        let again = npz::from_bytes(&written).unwrap();
        assert!(again.keys().eq(all.keys()));
        for (x, y) in all.values().zip(again.values()) {
            assert_eq!(npy::to_bytes(x).unwrap(), npy::to_bytes(y).unwrap());
        }
    }
});
