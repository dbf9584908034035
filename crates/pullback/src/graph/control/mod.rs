//! Loops and choices made of graphs, as operations.

mod cond;
mod reversal;
mod rows;
mod scan;
mod scan_pullback;

#[cfg(test)]
mod tests;

pub(crate) use cond::Cond;
pub(crate) use rows::{Slices, empty_slices, stack};
pub(crate) use scan::{GraphStep, Loop, LoopStep};

use crate::DType;
use crate::error::{Result, err};
use crate::tensor::{Data, Tensor};

/// What can be known of a truth value now.
pub(crate) enum Known {
    /// One value.
    One(bool),
    /// One for each lane of a `vmap`; whether any is true.
    Lanes { any: bool },
    /// A placeholder.
    Nothing,
}

pub(crate) fn known(truth: &Tensor) -> Result<Known> {
    if truth.dtype() != DType::Bool || truth.numel() != 1 || truth.rank() != 0 {
        return Err(err!(
            DType,
            "the condition must be a scalar of bool, but is {} {:?}",
            truth.dtype(),
            truth.shape()
        ));
    }
    let mut value = truth.clone();
    let mut lanes = false;
    loop {
        value = match value.data() {
            Data::Dual(d) => d.primal.clone(),
            Data::Mapped(m) => {
                lanes = true;
                m.value.clone()
            }
            Data::Traced(_) => return Ok(Known::Nothing),
            _ if lanes => return Ok(Known::Lanes { any: value.to_vec::<bool>().contains(&true) }),
            _ => return Ok(Known::One(value.to_vec::<bool>()[0])),
        }
    }
}

/// Whether a value, below what other transforms wrap it in, is not known because it is traced.
pub(crate) fn is_placeholder(t: &Tensor) -> bool {
    match t.data() {
        Data::Dual(d) => is_placeholder(&d.primal),
        Data::Mapped(m) => is_placeholder(&m.value),
        Data::Traced(_) => true,
        _ => false,
    }
}

/// Whether a graph is being traced of which one of these values is a part.
pub(crate) fn in_trace(leaves: &[&Tensor]) -> bool {
    let frame = leaves.iter().map(|t| t.data().frame()).max().unwrap_or(0);
    leaves.iter().any(|t| t.data().frame() == frame && matches!(t.data(), Data::Traced(_)))
}
