//! Loops and branches: values, derivatives in both modes and of second order, batched, traced, and their errors.

use pullback::check::close;
use pullback::prelude::*;

fn near(a: &Tensor, b: &Tensor) {
    assert_eq!(a.shape(), b.shape());
    let d = (a - b).abs().max().item();
    assert!(d < 1e-12, "{a:?} and {b:?} differ by {d}");
}
