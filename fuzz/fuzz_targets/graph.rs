//! Any bytes as a graph file, in both forms. What is read is well formed, and printed so that it reads as the same.
//! `cargo +nightly fuzz run graph`

#![no_main]

use libfuzzer_sys::fuzz_target;
use pullback::Graph;

fuzz_target!(|bytes: &[u8]| {
    let _ = Graph::from_bytes(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(graph) = text.parse::<Graph>() {
        graph.verify().unwrap();
        let printed = graph.to_string();
        assert_eq!(printed.parse::<Graph>().unwrap().to_string(), printed);
    }
});
