//! The transforms: each by itself, inside of each other, and as blocks that other transforms see as one operation.

use pullback::prelude::*;
use pullback_testing::assert_close;

mod blocks;
mod checkpoint;
mod compile;
mod composition;
mod custom_rules;
mod derivatives;
mod implicit;
mod loops_and_branches;
mod ode;
mod offload;
mod random;
mod vmap;
mod while_checkpointed;

/// Fails unless the two are of one shape and type, with elements that are close.
#[track_caller]
fn close(found: &Tensor, expected: &Tensor, tolerance: f64) {
    assert_eq!((found.shape(), found.dtype()), (expected.shape(), expected.dtype()));
    assert_close(&found.to_vec::<f64>(), &expected.to_vec::<f64>(), tolerance);
}

/// Equal but for the rounding of a few operations in f64.
#[track_caller]
fn near(found: &Tensor, expected: &Tensor) {
    close(found, expected, 1e-12);
}
