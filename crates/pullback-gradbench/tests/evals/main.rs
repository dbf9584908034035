//! Drives the program over its protocol at small sizes, and compares with references written here on plain numbers: values with
//! other formulas, derivatives with differences.

mod hand;
mod mixture;
mod network;
mod observations;
mod optimisers;
mod protocol;
mod tool;
mod vectors;
