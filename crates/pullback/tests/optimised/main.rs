//! What only optimised code can show. CI runs it by `cargo test --release -p pullback --test optimised`.

mod long_tapes;
mod long_vectors;
