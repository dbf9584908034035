//! The part of a tree that is not tensors, as something to compare.

use super::{Path, Tree};
use std::fmt::{Debug, Display, Write};

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
    /// The path of each value, where somebody wants to know.
    paths: Option<Paths>,
}

/// Where the walk through a tree is, and where it noted values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Paths {
    here: Path,
    of_values: Vec<String>,
}

/// What stands after a value: `Debug` escapes it in texts.
const END: char = '\u{1f}';

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
        let _ = write!(self.text, "{value:?}{END}");
        if let Some(paths) = &mut self.paths {
            paths.of_values.push(paths.here.to_string());
        }
    }

    /// Runs `f` for the part of a tree that a name or position leads to, so that a value which has changed can be found.
    ///
    /// ```
    /// let mut statics = pullback::Statics::default();
    /// statics.at("rate", |s| s.note(&0.1));
    /// ```
    pub fn at(&mut self, segment: impl Display, f: impl FnOnce(&mut Statics)) {
        let before = self.paths.as_mut().map(|paths| paths.here.enter(segment));
        f(self);
        if let (Some(paths), Some(before)) = (&mut self.paths, before) {
            paths.here.leave(before);
        }
    }

    /// The first value in which these statics, of the tree `x`, differ from earlier ones: its path, what it was and what it is.
    pub(crate) fn change<X: Tree>(&self, before: &Statics, x: &X) -> Option<(String, String, String)> {
        let (was, is) = (before.text.split(END), self.text.split(END));
        let (k, (was, is)) = was.zip(is).enumerate().find(|(_, (was, is))| was != is)?;
        let mut walk = Statics { paths: Some(Paths::default()), ..Statics::default() };
        x.statics(&mut walk);
        let path = walk.paths?.of_values.into_iter().nth(k)?;
        Some((path, was.into(), is.into()))
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
    fn note(&self, field: &'static str, out: &mut Statics) {
        out.at(field, |out| out.note(self.0));
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
