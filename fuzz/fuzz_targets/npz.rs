//! Any bytes as a `.npz` file.
//! `cargo +nightly fuzz run npz`

#![no_main]

use libfuzzer_sys::fuzz_target;
use pullback::npz;

fuzz_target!(|bytes: &[u8]| {
    let Ok(all) = npz::from_bytes(bytes) else { return };
    let named: Vec<_> = all.into_iter().collect();
    assert_eq!(npz::from_bytes(&npz::to_bytes(&named).unwrap()).unwrap().len(), named.len());
});
