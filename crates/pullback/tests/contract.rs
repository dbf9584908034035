//! The library as its users write it. The files in `contract/` are kept word for word.

#[allow(clippy::assign_op_pattern, clippy::needless_borrows_for_generic_args, reason = "kept word for word")]
#[path = "contract/core.rs"]
#[rustfmt::skip]
mod tensors_and_gradients;

#[allow(clippy::needless_borrows_for_generic_args, reason = "kept word for word")]
#[path = "contract/transforms.rs"]
#[rustfmt::skip]
mod composable_transforms;

// But for one number: `branchy` never comes to 10 from (0.7, 0.1).
#[path = "contract/scalar.rs"]
#[rustfmt::skip]
mod functions_on_numbers;

#[path = "contract/compile.rs"]
#[rustfmt::skip]
mod static_graphs;

// Compiled with the features that it needs.
#[cfg(all(feature = "linalg", feature = "fft"))]
#[path = "contract/vocabulary.rs"]
#[rustfmt::skip]
mod the_whole_vocabulary;
