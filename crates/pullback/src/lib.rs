//! Reverse-mode automatic differentiation: exact derivatives of ordinary Rust over numbers and tensors.
//!
//! ```
//! use pullback::prelude::*;
//!
//! // A loss over tensors, in plain Rust ..
//! let x = Tensor::from([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
//! let target = Tensor::from([1.0, 2.0, 3.0]);
//! let loss = |w: &Tensor| (x.matmul(w) - &target).square().mean();
//!
//! // .. and its exact gradient, as a function.
//! let w = Tensor::from([0.5, -0.5]);
//! let (value, g) = value_and_grad(loss)(&w);
//! assert_eq!(g.shape(), [2]);
//!
//! // Or the way PyTorch has it.
//! let w = w.requires_grad();
//! loss(&w).backward();
//! assert_eq!(w.grad().unwrap().to_vec::<f64>(), g.to_vec::<f64>());
//! # let _ = value;
//! ```
//!
//! Start with the [tour](guide::tour), or with the guides for those who come from [PyTorch](guide::pytorch) or [JAX](guide::jax); the other
//! [guides](guide) explain the semantics of the hard cases, compiled functions, functions of numbers, and how reverse mode works.
//!
//! The [`prelude`] has what most programs need. All of it, by what it is for:
//!
//! | | |
//! |---|---|
//! | values | [`Tensor`], its element types [`DType`], structures of tensors ([`Tree`]), sparse matrices ([`Sparse`]), random numbers ([`Key`]), files ([`save()`], [`load`], [`npy`], [`csv`]) |
//! | gradients as PyTorch has them | [`Tensor::backward`], [`grad_of`], [`no_grad`], [`enable_grad`], [`detect_anomaly`] |
//! | transforms of functions | [`grad`], [`value_and_grad`], [`value_and_grad_aux`], [`vjp`], [`jvp`], [`vmap`], [`vmap_axes`], [`linearize`], [`transpose`], [`stop_gradient`] |
//! | matrices of derivatives, higher orders | [`jacobian`], [`jacfwd`], [`jacrev`], [`hessian`], [`hvp`], [`gauss_newton_vp`], [`taylor`] |
//! | loops and branches | [`scan`], [`scan_with`], [`while_loop`], [`while_loop_with`], [`fori`], [`map_over`], [`associative_scan`], [`cond`], [`switch`] |
//! | less memory | [`checkpoint`], [`checkpoint_with`], [`Policy`], [`Schedule`], [`memory`] |
//! | compiled functions | [`compile`], [`trace`], [`Graph`], [`Executable`], [`opt`] |
//! | derivatives of your own | [`custom_rule`], [`custom_op`], [`implicit`], and [`check`] to test them |
//! | numbers instead of tensors | [`scalar`] |
//! | differential equations | [`ode`] |
//! | linear algebra, Fourier transforms | `linalg`, `fft`, behind the features of these names |
//! | errors instead of panics | [`Fallible`], [`Error`] |

// The code that `#[derive(Tree)]` writes says `::pullback`, inside of this crate too.
extern crate self as pullback;

mod algebra;
mod allocation;
mod backend;
pub mod check;
mod dtype;
mod error;
mod graph;
pub mod guide;
mod kernels;
mod location;
pub mod memory;
pub mod ode;
mod ops;
pub mod opt;
mod replace;
pub mod save;
pub mod scalar;
mod schedule;
mod shape;
mod small;
mod tape;
mod temporary;
mod tensor;
mod transform;

pub use backend::{Profile, ProfileRow};
pub use dtype::{DType, Element, Scalar};
pub use error::{Error, ErrorKind, Result};
pub use graph::{Graph, Place, Statistics, StepView};
pub use num_complex::Complex;
pub use pullback_macros::Tree;
#[cfg(feature = "npz")]
pub use save::npz;
pub use save::{csv, load, npy, save};
pub use schedule::Schedule;
pub use shape::Shape;
pub use tape::{Hook, detect_anomaly, enable_grad, no_grad, strict, strict_dtypes};
#[cfg(feature = "fft")]
pub use tensor::fft;
#[cfg(feature = "linalg")]
pub use tensor::linalg;
pub use tensor::{
    Attention, AxisList, AxisRange, Between, Conv, CrossEntropy, Device, Ellipsis, Fallible, IndexItem,
    Interpolation, IntoIndex, IntoRanges, Key, Lengths, NewAxis, Norm, Operand, PadMode, Padding, PerAxis,
    Pool, Selected, Sparse, Tensor, attention, einsum, grad_of, try_attention, try_einsum, try_grad_of,
    with_device,
};
pub use transform::{
    Axes, Bound, CheckpointOptions, Compiled, CustomOp, CustomRule, Executable, Explanation, Keep, Path,
    Policy, Rerun, ScanOptions, Statics, Steps, Tree, WhileOptions, associative_scan, checkpoint,
    checkpoint_with, compile, cond, custom_op, custom_rule, fori, gauss_newton_vp, grad, hessian, hvp,
    implicit, jacfwd, jacobian, jacrev, jvp, linearize, map_over, name, scan, scan_with, stop_gradient,
    switch, taylor, trace, transpose, try_custom_op, try_trace, value_and_grad, value_and_grad_aux, vjp,
    vmap, vmap_axes, while_loop, while_loop_with,
};
#[doc(hidden)]
pub use transform::{NotShown, Probe, Shown};

/// Sets how many threads the kernels use: all cores, unless this or `PULLBACK_NUM_THREADS` says otherwise. Results do not depend on it.
pub fn set_num_threads(n: usize) {
    kernels::parallel::set_num_threads(n);
}

/// What most programs need. The rest is at the root of the crate, and in its modules.
pub mod prelude {
    pub use crate::Fallible as _;
    pub use crate::{
        DType, Graph, Key, Tensor, Tree, checkpoint, compile, cond, detect_anomaly, grad, grad_of, hessian,
        hvp, implicit, jacfwd, jacobian, jacrev, jvp, no_grad, scan, stop_gradient, trace, value_and_grad,
        vjp, vmap, while_loop,
    };
}

/// The pages of the repository, so that their examples run.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    struct Readme;

    /// What returns a new value is of no use without it, and the compiler says so.
    ///
    /// ```compile_fail
    /// #![deny(unused_must_use)]
    /// pullback::Tensor::scalar(1.0).requires_grad();
    /// ```
    /// ```compile_fail
    /// #![deny(unused_must_use)]
    /// pullback::Tensor::scalar(1.0).exp();
    /// ```
    /// ```compile_fail
    /// #![deny(unused_must_use)]
    /// pullback::grad(|x: &pullback::Tensor| x.square());
    /// ```
    /// ```
    /// #![deny(unused_must_use)]
    /// let x = pullback::Tensor::scalar(1.0).requires_grad();
    /// let _ = (x.exp(), pullback::grad(|x: &pullback::Tensor| x.square()));
    /// ```
    struct MustUse;
}
