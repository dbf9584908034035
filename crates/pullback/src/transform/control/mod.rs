//! Loops and branches as functions: `scan`, `fori`, `map_over`, `associative_scan`, `cond`, `switch`, `while_loop`.
//!
//! On values that are known they simply run, so every transform sees ordinary operations. What they add: stacked inputs and
//! outputs, choices that work on mapped and on traced values, loops that stand in a graph as one operation, and loops of which
//! only some states are kept ([`scan_with`], [`while_loop_with`]).

mod associative;
mod choice;
mod counted;
mod scan;
mod scan_with;
mod steps;
mod while_loop;
mod while_with;

pub use associative::associative_scan;
pub use choice::{cond, switch};
pub use counted::{fori, map_over};
pub use scan::scan;
pub use scan_with::{ScanOptions, scan_with};
pub use steps::Steps;
pub use while_loop::while_loop;
pub use while_with::{Bound, WhileOptions, while_loop_with};

use super::Tree;
use crate::Tensor;
use crate::error::{Error, Result, err};

/// An error unless the state after a step is of the same structure, shapes and types as before it.
fn same_carry<C: Tree>(before: &C, after: &C) -> Result<()> {
    let (old, new) = (before.leaves(), after.leaves());
    if old.len() != new.len() {
        before.same_structure(after).map_err(changed)?;
    }
    match first_misfit(before, after) {
        None => Ok(()),
        Some((place, old, new)) => Err(mismatch(&place, old, new)),
    }
}

/// The first two tensors of trees with as many leaves that differ in shape or type, and the name to say after a noun, which is
/// looked for only then: loops ask at every step.
pub(crate) fn first_misfit<'a, T: Tree>(a: &'a T, b: &'a T) -> Option<(String, &'a Tensor, &'a Tensor)> {
    let mut pairs = a.leaves().into_iter().zip(b.leaves()).enumerate();
    let (k, (x, y)) = pairs.find(|(_, (x, y))| x.shape() != y.shape() || x.dtype() != y.dtype())?;
    Some((place(&a.names()[k]), x, y))
}

fn place(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" `{name}`") }
}

fn changed(e: Error) -> Error {
    err!(Structure, "the body changed the structure of the carried state: {e}")
}

fn mismatch(place: &str, old: &Tensor, new: &Tensor) -> Error {
    err!(
        Shape,
        "the carried state{place} is {} {:?} before a step of the body and {} {:?} after it; it must keep its shape and type",
        old.dtype(),
        old.shape(),
        new.dtype(),
        new.shape()
    )
}

/// `a` where the condition holds, `b` elsewhere, for every tensor of the trees.
fn select<Y: Tree>(truth: &Tensor, a: &Y, b: &Y) -> Result<Y> {
    same_outputs(a, b)?;
    a.try_zip(b, |a, b| Tensor::where_(truth, a, b))
}

/// An error unless two branches return the same structure, shapes and types.
fn same_outputs<Y: Tree>(a: &Y, b: &Y) -> Result<()> {
    a.same_structure(b).map_err(|e| err!(Structure, "the branches return different structures: {e}"))?;
    for ((a, b), name) in a.leaves().iter().zip(b.leaves()).zip(a.names()) {
        if a.shape() != b.shape() || a.dtype() != b.dtype() {
            let what = if name.is_empty() { "a result".into() } else { format!("`{name}`") };
            return Err(err!(
                Shape,
                "the branches return {what} of {} {:?} and of {} {:?}; they must agree",
                a.dtype(),
                a.shape(),
                b.dtype(),
                b.shape()
            ));
        }
    }
    Ok(())
}
