//! Tensors as containers: making, reading, typing, slicing, printing and moving them.

use proptest::prelude::*;
use pullback::{AxisRange, NewAxis, prelude::*};

mod creation;
mod indexing;
mod layout;
mod printing;
mod random;
mod slices;
mod types;

fn ints(n: i64) -> Tensor {
    Tensor::arange(0, n, 1)
}
