//! `#[derive(Tree)]`, which `pullback` re-exports beside the trait.

mod attribute;
mod bounds;
mod tree;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct or an enum a `Tree`: its leaves are those of its fields, in the order in which they are written.
///
/// The path of a leaf starts with the name of its field, or with the field's position in a tuple struct. An
/// enum has the leaves of its active variant; the variant itself is static, and not part of the path.
///
/// A field marked `#[tree(skip)]` is static too: it has no leaves, and is cloned. Numbers, truth values and strings are
/// trees without leaves, and need no mark.
///
/// ```
/// use pullback::prelude::*;
///
/// #[derive(Clone)]
/// enum Activation {
///     Tanh,
///     Relu,
/// }
///
/// #[derive(Tree)]
/// struct Dense {
///     weight: Tensor,
///     bias: Option<Tensor>,
///     dropout: f64,
///     #[tree(skip)]
///     activation: Activation,
/// }
///
/// let layer = Dense {
///     weight: Tensor::ones([2, 2]),
///     bias: Some(Tensor::zeros([2])),
///     dropout: 0.1,
///     activation: Activation::Tanh,
/// };
/// assert_eq!(layer.names(), ["weight", "bias"]);
///
/// let x = Tensor::from([1.0, -1.0]);
/// let loss = |l: &Dense| {
///     let y = x.matmul(&l.weight) + l.bias.as_ref().unwrap();
///     match l.activation {
///         Activation::Tanh => y.tanh(),
///         Activation::Relu => y.relu(),
///     }
///     .sum()
/// };
/// let g: Dense = grad(loss)(&layer);
/// assert_eq!(g.weight.shape(), [2, 2]);
/// # let _ = Activation::Relu;
/// # assert_eq!(g.dropout, 0.1);
/// ```
///
/// In a generic type, every type parameter of a field with leaves has to be a `Tree`, and every one of a skipped field
/// has to be `Clone`.
#[proc_macro_derive(Tree, attributes(tree))]
pub fn derive_tree(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    tree::derive(input).unwrap_or_else(syn::Error::into_compile_error).into()
}
