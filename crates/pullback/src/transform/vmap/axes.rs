//! Which axis of each tensor of an input has the examples.

use crate::error::{Result, err};
use crate::transform::Path;
use std::collections::BTreeMap;
use std::fmt::Display;

/// The axis of the examples in each tensor of an input, for [`vmap_axes`](crate::vmap_axes), as a tree like the input itself:
///
/// - a number is that axis, negative ones counting from the end, and `None` says that all examples share the tensor. Either holds for everything
///   below its place in the input;
/// - tuples, arrays, `Vec`s and maps say it for the parts of such an input;
/// - pairs of a name and the axes there say it for the fields of a struct, by name or by path;
/// - a slice says it for all tensors in the order of the leaves, whatever the structure; a slice of one entry for all of them.
///
/// ```
/// use pullback::{prelude::*, vmap_axes};
///
/// #[derive(Tree, Clone)]
/// struct Layer {
///     weight: Tensor,
///     bias: Tensor,
/// }
///
/// let layer = Layer { weight: Tensor::ones([3, 2]), bias: Tensor::zeros([5, 3]) };
/// let f = |(l, x): &(Layer, Tensor)| l.weight.matmul(x) + &l.bias;
/// // One weight and input for all examples, a bias for each.
/// let y = vmap_axes(f, ([("weight", None), ("bias", Some(0))], None), 0)(&(layer, Tensor::ones([2])));
/// assert_eq!(y.shape(), [5, 3]);
/// ```
pub trait Axes {
    /// Calls `f` with each axis and the path of the part of the input that it holds for.
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Option<isize>));

    /// The axes in the order of the leaves, if that is what they are.
    #[doc(hidden)]
    fn in_order(&self) -> Option<&[Option<isize>]> {
        None
    }
}

impl Axes for isize {
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Option<isize>)) {
        f(path, Some(*self));
    }
}

impl Axes for Option<isize> {
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Option<isize>)) {
        f(path, *self);
    }
}

impl<A: Axes> Axes for Vec<A> {
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Option<isize>)) {
        self.iter().enumerate().for_each(|(k, a)| path.at(k, |p| a.visit(p, f)));
    }
}

impl<A: Axes, const N: usize> Axes for [A; N] {
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Option<isize>)) {
        self.iter().enumerate().for_each(|(k, a)| path.at(k, |p| a.visit(p, f)));
    }
}

impl<A: Axes, const N: usize> Axes for [(&str, A); N] {
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Option<isize>)) {
        self.iter().for_each(|(name, a)| path.at(name, |p| a.visit(p, f)));
    }
}

impl<K: Display, A: Axes> Axes for BTreeMap<K, A> {
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Option<isize>)) {
        self.iter().for_each(|(k, a)| path.at(k, |p| a.visit(p, f)));
    }
}

impl Axes for &[Option<isize>] {
    fn visit(&self, _: &mut Path, _: &mut dyn FnMut(&Path, Option<isize>)) {}

    fn in_order(&self) -> Option<&[Option<isize>]> {
        Some(self)
    }
}

impl<const N: usize> Axes for &[Option<isize>; N] {
    fn visit(&self, _: &mut Path, _: &mut dyn FnMut(&Path, Option<isize>)) {}

    fn in_order(&self) -> Option<&[Option<isize>]> {
        Some(*self)
    }
}

impl Axes for &Vec<Option<isize>> {
    fn visit(&self, _: &mut Path, _: &mut dyn FnMut(&Path, Option<isize>)) {}

    fn in_order(&self) -> Option<&[Option<isize>]> {
        Some(self)
    }
}

macro_rules! tuples {
    ($(($($A:ident $k:tt),+))*) => {$(
        impl<$($A: Axes),+> Axes for ($($A,)+) {
            fn visit(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Option<isize>)) {
                $(path.at($k, |p| self.$k.visit(p, f));)+
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

/// The axes that were given, written down.
pub(super) enum Given {
    ByPath(Vec<(String, Option<isize>)>),
    InOrder(Vec<Option<isize>>),
}

impl Given {
    pub fn new(axes: &impl Axes) -> Given {
        if let Some(list) = axes.in_order() {
            return Given::InOrder(list.to_vec());
        }
        let mut all = Vec::new();
        axes.visit(&mut Path::default(), &mut |path, axis| all.push((path.to_string(), axis)));
        Given::ByPath(all)
    }

    /// The axis of each leaf of an input whose leaves have these names.
    pub fn of(&self, names: &[String]) -> Result<Vec<Option<isize>>> {
        let given = match self {
            Given::InOrder(list) if list.len() == 1 => return Ok(vec![list[0]; names.len()]),
            Given::InOrder(list) if list.len() == names.len() => return Ok(list.clone()),
            Given::InOrder(list) => {
                return Err(err!(
                    Axis,
                    "{} axes were given for an input of {} tensors",
                    list.len(),
                    names.len()
                ));
            }
            Given::ByPath(given) => given,
        };
        let mut used = vec![false; given.len()];
        let axis = |name: &String| {
            let Some(k) = given.iter().position(|(path, _)| holds(path, name)) else {
                return Err(err!(
                    Axis,
                    "no axis was given for input `{name}`; None says that all examples share it"
                ));
            };
            used[k] = true;
            Ok(given[k].1)
        };
        let axes = names.iter().map(axis).collect::<Result<_>>()?;
        // A part by position may have no tensors, as an empty list has none; a name that leads to none is misspelt.
        let by_position =
            |path: &str| path.rsplit('.').next().is_some_and(|s| s.bytes().all(|b| b.is_ascii_digit()));
        match (0..given.len()).find(|&k| !used[k] && !by_position(&given[k].0)) {
            Some(k) => {
                Err(err!(Axis, "an axis was given for `{}`, and the input has no tensor there", given[k].0))
            }
            None => Ok(axes),
        }
    }
}

/// Whether a leaf is the part of a tree at this path, or below it.
fn holds(path: &str, leaf: &str) -> bool {
    path.is_empty() || leaf.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
