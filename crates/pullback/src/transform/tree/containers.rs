//! The trees of the standard library's types.

use super::{Path, Statics, Tree};
use crate::{Key, Sparse, Tensor};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::sync::Arc;

impl Tree for Tensor {
    fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor)) {
        f(path, self);
    }

    fn visit_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Tensor)) {
        f(self);
    }

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        f(self)
    }

    fn statics(&self, _: &mut Statics) {}
}

/// A key is data: its words are a tensor.
impl Tree for Key {
    fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor)) {
        f(path, &self.words);
    }

    fn visit_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Tensor)) {
        f(&mut self.words);
    }

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        Key { words: f(&self.words) }
    }

    fn statics(&self, _: &mut Statics) {}
}

/// The values are the leaf; the places are structure.
impl Tree for Sparse {
    fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor)) {
        path.at("values", |path| f(path, self.values()));
    }

    fn visit_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Tensor)) {
        f(self.values_mut());
    }

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        self.carrying(f(self.values()))
    }

    fn statics(&self, out: &mut Statics) {
        out.at("places", |out| out.note(&self.structure()));
    }
}

/// Static parts: they have no leaves, and are cloned.
macro_rules! without_leaves {
    ($($t:ty),+) => {$(
        impl Tree for $t {
            fn visit<'a>(&'a self, _: &mut Path, _: &mut dyn FnMut(&Path, &'a Tensor)) {}

            fn visit_mut<'a>(&'a mut self, _: &mut dyn FnMut(&'a mut Tensor)) {}

            fn map(&self, _: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
                self.clone()
            }

            fn statics(&self, out: &mut Statics) {
                out.note(self);
            }
        }
    )+};
}
without_leaves!((), bool, u8, u32, u64, usize, i32, i64, f32, f64, String, &str);

impl<T: ?Sized> Tree for PhantomData<T> {
    fn visit<'a>(&'a self, _: &mut Path, _: &mut dyn FnMut(&Path, &'a Tensor)) {}

    fn visit_mut<'a>(&'a mut self, _: &mut dyn FnMut(&'a mut Tensor)) {}

    fn map(&self, _: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        PhantomData
    }

    fn statics(&self, _: &mut Statics) {}
}

impl<T: Tree> Tree for Vec<T> {
    fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor)) {
        self.iter().enumerate().for_each(|(k, t)| path.at(k, |p| t.visit(p, f)));
    }

    fn visit_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Tensor)) {
        self.iter_mut().for_each(|t| t.visit_mut(f));
    }

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        self.iter().map(|t| t.map(f)).collect()
    }

    fn statics(&self, out: &mut Statics) {
        out.at("len()", |out| out.note(&self.len()));
        self.iter().enumerate().for_each(|(k, t)| out.at(k, |out| t.statics(out)));
    }
}

impl<T: Tree, const N: usize> Tree for [T; N] {
    fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor)) {
        self.iter().enumerate().for_each(|(k, t)| path.at(k, |p| t.visit(p, f)));
    }

    fn visit_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Tensor)) {
        self.iter_mut().for_each(|t| t.visit_mut(f));
    }

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        std::array::from_fn(|k| self[k].map(f))
    }

    fn statics(&self, out: &mut Statics) {
        self.iter().enumerate().for_each(|(k, t)| out.at(k, |out| t.statics(out)));
    }
}

impl<T: Tree> Tree for Option<T> {
    fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor)) {
        self.iter().for_each(|t| t.visit(path, f));
    }

    fn visit_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Tensor)) {
        self.iter_mut().for_each(|t| t.visit_mut(f));
    }

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        self.as_ref().map(|t| t.map(f))
    }

    fn statics(&self, out: &mut Statics) {
        out.at("is_some()", |out| out.note(&self.is_some()));
        self.iter().for_each(|t| t.statics(out));
    }
}

impl<T: Tree> Tree for Box<T> {
    fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor)) {
        (**self).visit(path, f);
    }

    fn visit_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Tensor)) {
        (**self).visit_mut(f);
    }

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        Box::new((**self).map(f))
    }

    fn statics(&self, out: &mut Statics) {
        (**self).statics(out);
    }
}

/// What several share, such as a large table of numbers. Each place in a tree has leaves of its own: two holders of one `Arc` have two gradients, and
/// what is mapped or written to is not shared any more.
impl<T: Tree> Tree for Arc<T> {
    fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor)) {
        (**self).visit(path, f);
    }

    fn visit_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Tensor)) {
        if Arc::get_mut(self).is_none() {
            *self = Arc::new((**self).map(&mut Tensor::clone));
        }
        Arc::get_mut(self).expect("nobody else holds a new one").visit_mut(f);
    }

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        Arc::new((**self).map(f))
    }

    fn statics(&self, out: &mut Statics) {
        (**self).statics(out);
    }
}

impl<K: Display + Ord + Clone, V: Tree> Tree for BTreeMap<K, V> {
    fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor)) {
        self.iter().for_each(|(k, t)| path.at(k, |p| t.visit(p, f)));
    }

    fn visit_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Tensor)) {
        self.values_mut().for_each(|t| t.visit_mut(f));
    }

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        self.iter().map(|(k, t)| (k.clone(), t.map(f))).collect()
    }

    fn statics(&self, out: &mut Statics) {
        out.at("len()", |out| out.note(&self.len()));
        for (k, t) in self {
            out.note(&k.to_string());
            out.at(k, |out| t.statics(out));
        }
    }
}

/// In the order of the keys, so that the order of the leaves does not depend on the hasher.
impl<K: Display + Ord + Hash + Clone, V: Tree, S: BuildHasher + Clone> Tree for HashMap<K, V, S> {
    fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor)) {
        sorted(self).into_iter().for_each(|(k, t)| path.at(k, |p| t.visit(p, f)));
    }

    fn visit_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Tensor)) {
        let mut entries: Vec<(&K, &mut V)> = self.iter_mut().collect();
        entries.sort_unstable_by_key(|(k, _)| *k);
        entries.into_iter().for_each(|(_, t)| t.visit_mut(f));
    }

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        let mut out = HashMap::with_capacity_and_hasher(self.len(), self.hasher().clone());
        out.extend(sorted(self).into_iter().map(|(k, t)| (k.clone(), t.map(f))));
        out
    }

    fn statics(&self, out: &mut Statics) {
        out.at("len()", |out| out.note(&self.len()));
        for (k, t) in sorted(self) {
            out.note(&k.to_string());
            out.at(k, |out| t.statics(out));
        }
    }
}

fn sorted<K: Ord, V, S>(map: &HashMap<K, V, S>) -> Vec<(&K, &V)> {
    let mut entries: Vec<(&K, &V)> = map.iter().collect();
    entries.sort_unstable_by_key(|&(k, _)| k);
    entries
}

macro_rules! tuples {
    ($(($($T:ident $k:tt),+))*) => {$(
        impl<$($T: Tree),+> Tree for ($($T,)+) {
            fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor)) {
                $(path.at($k, |p| self.$k.visit(p, f));)+
            }

            fn visit_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Tensor)) {
                $(self.$k.visit_mut(f);)+
            }

            fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
                ($(self.$k.map(f),)+)
            }

            fn statics(&self, out: &mut Statics) {
                $(out.at($k, |out| self.$k.statics(out));)+
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
