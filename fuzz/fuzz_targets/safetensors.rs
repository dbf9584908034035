//! Any bytes as a safetensors file: as a map of names, and into a tree with a leaf of each type.
//! `cargo +nightly fuzz run safetensors`

#![no_main]

use libfuzzer_sys::fuzz_target;
use pullback::prelude::*;
use pullback::save::{self, Archive, Loading};
use std::collections::BTreeMap;

fuzz_target!(|bytes: &[u8]| {
    use DType::*;
    let types = [Bool, U8, I32, I64, F16, BF16, F32, F64, C64];
    let like: BTreeMap<String, Tensor> =
        types.into_iter().map(|t| (t.to_string(), Tensor::full([1, 2], false).cast(t))).collect();
    let exact = save::from_bytes(&like, bytes);
    let Ok(archive) = Archive::from_bytes(bytes.to_vec()) else {
        assert!(exact.is_err());
        return;
    };
    let different = archive.differences(&like).unwrap();
    let fits = different == save::Differences::default();
    match archive.read_all() {
        Ok(all) => {
            let written = save::to_bytes(&all).unwrap();
            let again = Archive::from_bytes(written.clone()).unwrap().read_all().unwrap();
            assert_eq!(save::to_bytes(&again).unwrap(), written);
            assert_eq!(exact.is_ok(), fits);
            if let Ok(exact) = exact {
                assert_eq!(save::to_bytes(&exact).unwrap(), written);
            }
        }
        Err(_) => assert!(exact.is_err()),
    }
    let _ = Loading::new().keep_missing().ignore_extra().convert_floats().load_from(&like, &archive);
});
