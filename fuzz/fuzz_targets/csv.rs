//! Any text as a table. What is read is printed so that it reads as the same.
//! `cargo +nightly fuzz run csv`

#![no_main]

use libfuzzer_sys::fuzz_target;
use pullback::csv::Csv;

fuzz_target!(|text: &str| {
    for separator in [',', ';', '\t', ' '] {
        for csv in [Csv::new().separator(separator), Csv::new().separator(separator).header()] {
            let Ok(table) = csv.parse(text) else { continue };
            let names: Vec<&str> = table.names.iter().map(|n| &n[..]).collect();
            // A text of no lines has no names, with a header too.
            let Ok(printed) = csv.print(&table.values, &names) else { continue };
            let again = csv.parse(&printed).unwrap();
            assert_eq!(again.names, table.names, "{printed:?}");
            assert_eq!(again.values.shape(), table.values.shape(), "{printed:?}");
            let bits =
                |t: &pullback::Tensor| t.to_vec::<f64>().into_iter().map(f64::to_bits).collect::<Vec<_>>();
            let equal = bits(&again.values).into_iter().zip(bits(&table.values));
            equal.for_each(|(a, b)| {
                assert!(a == b || f64::from_bits(a).is_nan() && f64::from_bits(b).is_nan())
            });
        }
    }
});
