//! Any text as a table. What is read is printed so that it reads as the same.
//! `cargo +nightly fuzz run csv`

#![no_main]

use libfuzzer_sys::fuzz_target;
use pullback::csv::Csv;

fuzz_target!(|text: &str| {
    for separator in [',', ';', '\t', ' '] {
        let csv = Csv::new().separator(separator);
        if let Ok(table) = csv.parse(text) {
            let printed = csv.print(&table.values, &[]).unwrap();
            let again = csv.parse(&printed).unwrap();
            assert_eq!(csv.print(&again.values, &[]).unwrap(), printed);
        }
        let _ = csv.header().parse(text);
    }
});
