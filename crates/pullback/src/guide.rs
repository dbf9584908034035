//! Guides, with examples that run as tests.
//!
//! Begin with the [`tour`], or with [`pytorch`] or [`jax`] if you know one of them. If you want to know how reverse mode works, read [`tiny`],
//! which builds one in a page. The others are for when you need them.

#[doc = include_str!("../guide/compiled.md")]
pub mod compiled {}
#[doc = include_str!("../guide/extending.md")]
pub mod extending {}
#[doc = include_str!("../guide/graphs.md")]
pub mod graphs {}
#[doc = include_str!("../guide/jax.md")]
pub mod jax {}
#[doc = include_str!("../guide/pytorch.md")]
pub mod pytorch {}
#[doc = include_str!("../guide/scalar.md")]
pub mod scalar {}
#[doc = include_str!("../guide/semantics.md")]
pub mod semantics {}
#[doc = include_str!("../guide/tiny.md")]
pub mod tiny {}
#[doc = include_str!("../guide/tour.md")]
pub mod tour {}
