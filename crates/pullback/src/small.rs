//! A list of a few numbers, copied without a loop: shapes and strides are cloned with every operation.

use std::ops::{Deref, DerefMut};

/// Up to four items in place, more on the heap. The length is fixed when it is made.
#[derive(Clone, Debug)]
pub(crate) enum Small<T> {
    Here(u8, [T; 4]),
    Heap(Box<[T]>),
}

impl<T: Copy + Default> Small<T> {
    pub fn from_slice(items: &[T]) -> Self {
        if items.len() > 4 {
            return Small::Heap(items.into());
        }
        let mut here = [T::default(); 4];
        here[..items.len()].copy_from_slice(items);
        Small::Here(items.len() as u8, here)
    }

    pub fn filled(item: T, n: usize) -> Self {
        std::iter::repeat_n(item, n).collect()
    }
}

impl<T: Default + Copy> Default for Small<T> {
    fn default() -> Self {
        Small::Here(0, [T::default(); 4])
    }
}

impl<T> Deref for Small<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Small::Here(n, items) => &items[..*n as usize],
            Small::Heap(items) => items,
        }
    }
}

impl<T> DerefMut for Small<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Small::Here(n, items) => &mut items[..*n as usize],
            Small::Heap(items) => items,
        }
    }
}

impl<T: PartialEq> PartialEq for Small<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            // Places that are not used hold the default, so they are compared without looking at the length first.
            (Small::Here(n, a), Small::Here(m, b)) => n == m && a == b,
            _ => self[..] == other[..],
        }
    }
}

impl<T: Eq> Eq for Small<T> {}

impl<T: std::hash::Hash> std::hash::Hash for Small<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<T: Copy + Default> FromIterator<T> for Small<T> {
    fn from_iter<I: IntoIterator<Item = T>>(iter: I) -> Self {
        let mut here = [T::default(); 4];
        let mut iter = iter.into_iter();
        let mut n = 0;
        while let Some(item) = iter.next() {
            if n == 4 {
                return Small::Heap(here.into_iter().chain([item]).chain(iter).collect());
            }
            here[n] = item;
            n += 1;
        }
        Small::Here(n as u8, here)
    }
}

#[cfg(test)]
mod tests {
    use super::Small;

    #[test]
    fn any_length() {
        for n in 0..9 {
            let all: Vec<usize> = (0..n).collect();
            let small: Small<usize> = all.iter().copied().collect();
            assert_eq!(small[..], all);
            assert_eq!(small, Small::from_slice(&all));
            assert_eq!(small.clone()[..], all);
            assert_eq!(Small::filled(7, n)[..], vec![7; n]);
        }
    }
}
