//! The part of a tree that is not tensors, as something to compare.

use super::Tree;
use std::fmt::{Debug, Write};

/// What a tree holds besides tensors, written down: see [`Tree::statics`].
///
/// ```
/// use pullback::{Statics, prelude::*};
/// let short = vec![Tensor::scalar(1.0)];
/// let long = vec![Tensor::scalar(1.0), Tensor::scalar(1.0)];
/// assert_ne!(Statics::of(&short), Statics::of(&long));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statics {
    text: String,
    /// A field of which nothing can be said.
    hidden: Option<&'static str>,
}

impl Statics {
    /// What a tree holds besides tensors.
    pub fn of<X: Tree>(x: &X) -> Statics {
        let mut out = Statics::default();
        x.statics(&mut out);
        out
    }

    /// Adds a value, as `Debug` writes it: two values that are written alike are taken to be equal.
    ///
    /// ```
    /// let mut statics = pullback::Statics::default();
    /// statics.note(&0.1);
    /// ```
    pub fn note(&mut self, value: &dyn Debug) {
        // Writing to a string does not fail.
        let _ = write!(self.text, "{value:?};");
    }

    /// Says that there is a value which cannot be compared.
    ///
    /// ```
    /// let mut statics = pullback::Statics::default();
    /// statics.hide("callback");
    /// ```
    pub fn hide(&mut self, field: &'static str) {
        self.hidden.get_or_insert(field);
    }

    /// The first field of which nothing can be said.
    pub(crate) fn hidden(&self) -> Option<&'static str> {
        self.hidden
    }
}

/// A skipped field of a derived tree, to be noted if its type has `Debug`: by [`Shown`], or else, one reference further, by [`NotShown`].
#[doc(hidden)]
pub struct Probe<'a, T>(pub &'a T);

/// How a [`Probe`] is noted whose type has `Debug`.
#[doc(hidden)]
pub trait Shown {
    fn note(&self, field: &'static str, out: &mut Statics);
}

impl<T: Debug> Shown for Probe<'_, T> {
    fn note(&self, _: &'static str, out: &mut Statics) {
        out.note(self.0);
    }
}

/// How any other [`Probe`] is noted.
#[doc(hidden)]
pub trait NotShown {
    fn note(&self, field: &'static str, out: &mut Statics);
}

impl<T> NotShown for &Probe<'_, T> {
    fn note(&self, field: &'static str, out: &mut Statics) {
        out.hide(field);
    }
}
