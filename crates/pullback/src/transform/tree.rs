//! Structures of tensors: what functions take and return.

mod containers;
mod statics;

pub use statics::{NotShown, Probe, Shown, Statics};

use crate::Tensor;
use crate::error::{Error, Result, err, or_panic};
use std::fmt::{self, Display, Write};
use std::panic::Location;

/// A value made of tensors: a tensor, a [`Key`](crate::Key), a tuple, an array, a `Vec`, an `Option`, a `Box`, an `Arc`, a map, or a struct or
/// enum of these by `#[derive(Tree)]`.
///
/// Transforms take and return trees; the gradient with respect to a tree is a tree of the same type. The tensors are
/// the *leaves*, and each has a path, such as `layers.0.weight`, which is its name. All else is *static structure*, and is
/// copied: the lengths of lists, the keys of maps, whether an `Option` holds something, the variant of an enum, and
/// numbers, truth values and strings. To differentiate with respect to a number, put it into a tensor.
///
/// ```
/// use pullback::prelude::*;
///
/// #[derive(Tree)]
/// struct Line {
///     slope: Tensor,
///     offsets: Vec<Tensor>,
/// }
///
/// let line = Line { slope: Tensor::scalar(2.0), offsets: vec![Tensor::scalar(3.0), Tensor::scalar(4.0)] };
/// assert_eq!(line.names(), ["slope", "offsets.0", "offsets.1"]);
///
/// let g: Line = grad(|l: &Line| &l.slope * &l.offsets[0] * &l.offsets[1])(&line);
/// assert_eq!(g.offsets[1].item(), 6.0);
/// ```
#[diagnostic::on_unimplemented(
    label = "not a tree of tensors",
    note = "put `#[derive(Tree)]` on the type, or `#[tree(skip)]` on a field of this type that is static"
)]
pub trait Tree: Sized {
    /// Calls `f` with every tensor and its path, in a fixed order.
    fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor));

    /// Calls `f` with every tensor, in the order of [`visit`](Tree::visit), to be changed.
    fn visit_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Tensor));

    /// The same structure with every tensor replaced, in the order of [`visit`](Tree::visit).
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = (Tensor::scalar(1.0), vec![Tensor::scalar(2.0)]);
    /// assert_eq!(x.map(&mut |t| t * 10.0).1[0].item(), 20.0);
    /// ```
    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self;

    /// Writes down everything that is not a tensor: lengths, keys, variants, numbers. A function that was compiled for a tree is traced anew
    /// for one that differs in this. `derive` does it; by hand, write whatever [`map`](Tree::map) copies.
    ///
    /// ```
    /// use pullback::{Statics, prelude::*};
    /// let of = |x: &(Tensor, f64)| Statics::of(x);
    /// assert_ne!(of(&(Tensor::scalar(1.0), 0.1)), of(&(Tensor::scalar(1.0), 0.2)));
    /// assert_eq!(of(&(Tensor::scalar(1.0), 0.1)), of(&(Tensor::scalar(2.0), 0.1)));
    /// ```
    fn statics(&self, out: &mut Statics);

    /// The tensors.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = (Tensor::zeros([2]), [Tensor::zeros([3]), Tensor::zeros([4])]);
    /// assert_eq!(x.leaves().iter().map(|t| t.numel()).sum::<usize>(), 9);
    /// ```
    fn leaves(&self) -> Vec<&Tensor> {
        let mut out = Vec::new();
        self.visit(&mut Path::default(), &mut |_, t| out.push(t));
        out
    }

    /// The tensors, to be changed.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let mut x = (Tensor::scalar(1.0), vec![Tensor::scalar(2.0)]);
    /// for t in x.leaves_mut() {
    ///     *t *= 10.0;
    /// }
    /// assert_eq!((x.0.item(), x.1[0].item()), (10.0, 20.0));
    /// ```
    fn leaves_mut(&mut self) -> Vec<&mut Tensor> {
        let mut out = Vec::new();
        self.visit_mut(&mut |t| out.push(t));
        out
    }

    /// The paths of the tensors: field names, keys and positions, joined by dots. A tensor alone has the empty path.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = (Tensor::zeros([2]), [Tensor::zeros([3]), Tensor::zeros([4])]);
    /// assert_eq!(x.names(), ["0", "1.0", "1.1"]);
    /// ```
    fn names(&self) -> Vec<String> {
        self.named().into_iter().map(|(name, _)| name).collect()
    }

    /// The tensors with their paths.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = vec![Tensor::zeros([2, 3]), Tensor::zeros([3])];
    /// let lines: Vec<String> = x.named().iter().map(|(name, t)| format!("{name}: {:?}", t.shape())).collect();
    /// assert_eq!(lines, ["0: [2, 3]", "1: [3]"]);
    /// ```
    fn named(&self) -> Vec<(String, &Tensor)> {
        let mut out = Vec::new();
        self.visit(&mut Path::default(), &mut |p, t| out.push((p.to_string(), t)));
        out
    }

    /// The tensors, as a list of their own. [`unflatten`](Tree::unflatten) puts such a list back into the structure.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = (Tensor::scalar(1.0), Some(Tensor::scalar(2.0)));
    /// let doubled = x.flatten().iter().map(|t| t * 2.0).collect();
    /// assert_eq!(x.unflatten(doubled)?.1.unwrap().item(), 4.0);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    fn flatten(&self) -> Vec<Tensor> {
        self.leaves().into_iter().cloned().collect()
    }

    /// This structure with the given tensors as its leaves, of whatever shapes and types; an error if there are too many
    /// or too few of them.
    #[track_caller]
    fn unflatten(&self, leaves: Vec<Tensor>) -> Result<Self> {
        let n = self.leaves().len();
        if n != leaves.len() {
            let e = err!(Structure, "the tree has {n} leaves, but {} tensors were given", leaves.len());
            return Err(e.in_op("unflatten").at(Location::caller()));
        }
        Ok(from_leaves(self, leaves))
    }

    /// Combines two trees of the same structure leaf by leaf. Static parts are those of `self`.
    ///
    /// Panics if the trees do not have the [`same_structure`](Tree::same_structure).
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = (Tensor::scalar(1.0), Tensor::scalar(2.0));
    /// let g = (Tensor::scalar(10.0), Tensor::scalar(20.0));
    /// let next = x.zip(&g, |x, g| x - 0.1 * g);
    /// assert_eq!((next.0.item(), next.1.item()), (0.0, 0.0));
    /// ```
    #[track_caller]
    fn zip(&self, other: &Self, f: impl FnMut(&Tensor, &Tensor) -> Tensor) -> Self {
        or_panic(self.try_zip(other, f))
    }

    /// [`zip`](Tree::zip), with an error if the structures differ.
    #[track_caller]
    fn try_zip(&self, other: &Self, mut f: impl FnMut(&Tensor, &Tensor) -> Tensor) -> Result<Self> {
        if let Some(e) = difference(self, other) {
            return Err(e.in_op("zip").at(Location::caller())); // not in a closure, which would hide the caller
        }
        let mut others = other.leaves().into_iter();
        Ok(self.map(&mut |x| f(x, others.next().expect("as many leaves as names"))))
    }

    /// Combines any number of trees of the same structure leaf by leaf. Static parts are those of `self`.
    ///
    /// Panics if the trees do not have the [`same_structure`](Tree::same_structure).
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let [x, m, v] = [1.0, 2.0, 4.0].map(|t| (Tensor::scalar(t), Tensor::scalar(-t)));
    /// let next = x.map_with(&[&m, &v], |x, rest| x - 0.5 * rest[0] / rest[1].abs().sqrt());
    /// assert_eq!((next.0.item(), next.1.item()), (0.5, -0.5));
    /// ```
    #[track_caller]
    #[doc(alias = "tree_map")]
    fn map_with(&self, others: &[&Self], f: impl FnMut(&Tensor, &[&Tensor]) -> Tensor) -> Self {
        or_panic(self.try_map_with(others, f))
    }

    /// [`map_with`](Tree::map_with), with an error if the structures differ.
    #[track_caller]
    fn try_map_with(
        &self,
        others: &[&Self],
        mut f: impl FnMut(&Tensor, &[&Tensor]) -> Tensor,
    ) -> Result<Self> {
        for (k, other) in others.iter().enumerate() {
            if let Some(e) = difference(self, *other) {
                let place = format!("the tree and number {k} of the others");
                return Err(e.within(place).in_op("map_with").at(Location::caller()));
            }
        }
        let leaves: Vec<Vec<&Tensor>> = others.iter().map(|t| t.leaves()).collect();
        let mut k = 0;
        Ok(self.map(&mut |x| {
            let rest: Vec<&Tensor> = leaves.iter().map(|l| l[k]).collect();
            k += 1;
            f(x, &rest)
        }))
    }

    /// An error that names the first difference, unless both trees have leaves of the same names in the same order.
    /// Shapes, element types and static parts are not compared.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let (a, b) = (Tensor::zeros([2]), Tensor::zeros([3]));
    /// assert!((a.clone(), b.clone()).same_structure(&[a.clone(), b.clone()]).is_ok());
    /// let e = vec![a.clone()].same_structure(&vec![a, b]).unwrap_err();
    /// assert!(e.to_string().contains("only the second tree has the leaf `1`"));
    /// ```
    #[track_caller]
    fn same_structure(&self, other: &impl Tree) -> Result<()> {
        match difference(self, other) {
            Some(e) => Err(e.in_op("same_structure").at(Location::caller())),
            None => Ok(()),
        }
    }
}

/// The first difference in structure.
fn difference(a: &impl Tree, b: &impl Tree) -> Option<Error> {
    let (a, b) = (a.names(), b.names());
    let k = a.iter().zip(&b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
    match (a.get(k), b.get(k)) {
        (None, None) => None,
        (Some(a), Some(b)) => {
            Some(err!(Structure, "leaf {k} is `{a}` in the first tree and `{b}` in the second"))
        }
        (Some(a), None) => Some(err!(Structure, "only the first tree has the leaf `{a}`")),
        (None, Some(b)) => Some(err!(Structure, "only the second tree has the leaf `{b}`")),
    }
}

/// Where a tensor is in a tree, such as `layers.0.weight`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    /// Runs `f` with one more segment.
    ///
    /// ```
    /// use pullback::Path;
    /// let name = Path::default().at("layers", |p| p.at(0, |p| p.to_string()));
    /// assert_eq!(name, "layers.0");
    /// ```
    pub fn at<T>(&mut self, segment: impl Display, f: impl FnOnce(&mut Path) -> T) -> T {
        let before = self.enter(segment);
        let out = f(self);
        self.leave(before);
        out
    }

    /// Adds a segment; [`leave`](Path::leave) with what this returns takes it away.
    fn enter(&mut self, segment: impl Display) -> usize {
        let n = self.0.len();
        let dot = if n == 0 { "" } else { "." };
        // Writing to a string does not fail.
        let _ = write!(self.0, "{dot}{segment}");
        n
    }

    fn leave(&mut self, before: usize) {
        self.0.truncate(before);
    }
}

impl Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The structure of `like` with these tensors as its leaves.
pub(crate) fn from_leaves<X: Tree>(like: &X, leaves: impl IntoIterator<Item = Tensor>) -> X {
    let mut leaves = leaves.into_iter();
    like.map(&mut |_| leaves.next().expect("one tensor for each leaf"))
}

#[cfg(test)]
mod tests {
    use crate::{Tensor, Tree};

    #[test]
    fn the_derive_works_inside_of_this_crate() {
        #[derive(Tree)]
        struct Point(Tensor, Tensor);
        assert_eq!(Point(Tensor::scalar(1.0), Tensor::scalar(2.0)).names(), ["0", "1"]);
    }
}
