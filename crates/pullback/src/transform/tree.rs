//! Structures of tensors: what functions take and return.

use crate::Tensor;
use std::fmt::Write;

/// A value made of tensors: a tensor, a tuple, an array, a `Vec`, an `Option` or a structure of these.
///
/// Transforms take and return trees; the gradient with respect to a tree is a tree of the same type.
///
/// ```
/// use pullback::prelude::*;
/// let x = (Tensor::scalar(1.0), vec![Tensor::scalar(2.0), Tensor::scalar(3.0)]);
/// assert_eq!(x.names(), ["0", "1.0", "1.1"]);
/// let g = grad(|(a, b): &(Tensor, Vec<Tensor>)| a * &b[0] * &b[1])(&x);
/// assert_eq!(g.1[1].item(), 2.0);
/// ```
pub trait Tree: Sized {
    /// Calls `f` with every tensor and its path, in a fixed order.
    fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor));

    /// The same structure with every tensor replaced, in the order of [`visit`](Tree::visit).
    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self;

    /// The tensors.
    fn leaves(&self) -> Vec<&Tensor> {
        let mut out = Vec::new();
        self.visit(&mut Path::default(), &mut |_, t| out.push(t));
        out
    }

    /// The paths of the tensors: field names and positions, joined by dots.
    fn names(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.visit(&mut Path::default(), &mut |p, _| out.push(p.to_string()));
        out
    }
}

/// Where a tensor is in a tree, such as `layers.0.weight`.
#[derive(Default)]
pub struct Path(String);

impl Path {
    /// Runs `f` with one more segment.
    pub fn at<T>(&mut self, segment: impl std::fmt::Display, f: impl FnOnce(&mut Path) -> T) -> T {
        let n = self.0.len();
        let dot = if n == 0 { "" } else { "." };
        // Writing to a string does not fail.
        let _ = write!(self.0, "{dot}{segment}");
        let out = f(self);
        self.0.truncate(n);
        out
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The structure of `like` with these tensors as its leaves.
pub(crate) fn from_leaves<X: Tree>(like: &X, leaves: impl IntoIterator<Item = Tensor>) -> X {
    let mut leaves = leaves.into_iter();
    like.map(&mut |_| leaves.next().expect("one tensor for each leaf"))
}

impl Tree for Tensor {
    fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor)) {
        f(path, self);
    }

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        f(self)
    }
}

impl Tree for () {
    fn visit<'a>(&'a self, _: &mut Path, _: &mut dyn FnMut(&Path, &'a Tensor)) {}

    fn map(&self, _: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {}
}

impl<T: Tree> Tree for Vec<T> {
    fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor)) {
        self.iter().enumerate().for_each(|(k, t)| path.at(k, |p| t.visit(p, f)));
    }

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        self.iter().map(|t| t.map(f)).collect()
    }
}

impl<T: Tree, const N: usize> Tree for [T; N] {
    fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor)) {
        self.iter().enumerate().for_each(|(k, t)| path.at(k, |p| t.visit(p, f)));
    }

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        std::array::from_fn(|k| self[k].map(f))
    }
}

impl<T: Tree> Tree for Option<T> {
    fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor)) {
        self.iter().for_each(|t| t.visit(path, f));
    }

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        self.as_ref().map(|t| t.map(f))
    }
}

impl<T: Tree> Tree for Box<T> {
    fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor)) {
        (**self).visit(path, f);
    }

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        Box::new((**self).map(f))
    }
}

macro_rules! tuples {
    ($(($($T:ident $k:tt),+))*) => {$(
        impl<$($T: Tree),+> Tree for ($($T,)+) {
            fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor)) {
                $(path.at($k, |p| self.$k.visit(p, f));)+
            }

            fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
                ($(self.$k.map(f),)+)
            }
        }
    )*};
}
tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}
