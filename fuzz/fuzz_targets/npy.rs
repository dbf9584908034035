//! Any bytes as a `.npy` file. What is read is written so that it reads as the same.
//! `cargo +nightly fuzz run npy`

#![no_main]

use libfuzzer_sys::fuzz_target;
use pullback::npy;

fuzz_target!(|bytes: &[u8]| {
    let Ok(x) = npy::from_bytes(bytes) else { return };
    let written = npy::to_bytes(&x).unwrap();
    let again = npy::from_bytes(&written).unwrap();
    assert_eq!((x.shape(), x.dtype()), (again.shape(), again.dtype()));
    assert_eq!(npy::to_bytes(&again).unwrap(), written);
});
