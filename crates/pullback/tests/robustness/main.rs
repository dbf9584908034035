//! Whatever goes wrong is an error that says what, where and what to do.

mod bad_input;
mod error_lines;
mod mutated_files;
mod never_panics;
