//! Any bytes as a graph, in both forms: as text, and as a file of the text up to the first zero and the constants after it. What is read is well formed, and
//! written so that it reads as the same.
//! `cargo +nightly fuzz run graph`

#![no_main]

use libfuzzer_sys::fuzz_target;
use pullback::Graph;

/// The file of a text and of constants, with the checksum that it has to have: no fuzzer finds that by itself.
fn sealed(text: &[u8], constants: &[u8]) -> Vec<u8> {
    let rest = [&(text.len() as u64).to_le_bytes(), text, constants].concat();
    let step = |h: u64, word: u64| (h ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    let words = rest.chunks(8).map(|c| c.iter().rev().fold(0, |w, &b| w << 8 | u64::from(b)));
    let sum: u64 = words.fold(0xcbf2_9ce4_8422_2325 ^ rest.len() as u64, step);
    [&b"pullback graph 1\n"[..], &sum.to_le_bytes(), &rest].concat()
}

fuzz_target!(|bytes: &[u8]| {
    let _ = Graph::from_bytes(bytes);
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    let (text, constants) = bytes.split_at(end);
    if let Ok(graph) = Graph::from_bytes(&sealed(text, constants.get(1..).unwrap_or(&[]))) {
        graph.verify().unwrap();
        let written = graph.to_bytes().unwrap();
        assert_eq!(Graph::from_bytes(&written).unwrap().to_bytes().unwrap(), written);
    }
    let Ok(text) = std::str::from_utf8(text) else { return };
    if let Ok(graph) = text.parse::<Graph>() {
        graph.verify().unwrap();
        let printed = graph.to_string();
        assert_eq!(printed.parse::<Graph>().unwrap().to_string(), printed);
    }
});
