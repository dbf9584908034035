//! Any text as JSON; what is read is written, and read again as the same.
//! `cargo +nightly fuzz run json`

#![no_main]

use libfuzzer_sys::fuzz_target;
use pullback_expr::json::read;

fuzz_target!(|text: &str| {
    if let Ok(value) = read(text) {
        let written = value.to_string();
        assert_eq!(read(&written).map(|v| v.to_string()), Ok(written));
    }
});
