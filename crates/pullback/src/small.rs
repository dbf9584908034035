//! A list of a few numbers, copied without a loop: shapes and strides are cloned with every operation.

use std::ops::{Deref, DerefMut};

/// Up to four items in place, more on the heap. The length is fixed when it is made.
#[derive(Debug)]
pub(crate) enum Small<T> {
    Here(Here<T>),
    Heap(Box<[T]>),
}

/// Places that are not used hold the default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Here<T> {
    len: Length,
    items: [T; 4],
}

/// A whole word, with room for the tag of [`Small`]: lists are copied in words, and reading a word that was just written
/// in bytes stalls the processor for longer than a small operation takes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(usize)]
enum Length {
    Zero,
    One,
    Two,
    Three,
    Four,
}

impl<T> Here<T> {
    fn new(len: usize, items: [T; 4]) -> Self {
        let len = match len {
            0 => Length::Zero,
            1 => Length::One,
            2 => Length::Two,
            3 => Length::Three,
            4 => Length::Four,
            _ => unreachable!("there are four places"),
        };
        Here { len, items }
    }
}

impl<T: Copy + Default> Small<T> {
    pub fn from_slice(items: &[T]) -> Self {
        if items.len() > 4 {
            return Small::Heap(items.into());
        }
        let mut here = [T::default(); 4];
        here[..items.len()].copy_from_slice(items);
        Small::Here(Here::new(items.len(), here))
    }

    /// The first `n` of these, of which the others are the default.
    #[inline(always)]
    pub fn here(n: usize, items: [T; 4]) -> Self {
        Small::Here(Here::new(n, items))
    }

    pub fn filled(item: T, n: usize) -> Self {
        std::iter::repeat_n(item, n).collect()
    }
}

impl<T: Copy> Clone for Small<T> {
    #[inline]
    fn clone(&self) -> Self {
        match self {
            Small::Here(here) => Small::Here(*here),
            Small::Heap(items) => Small::Heap(items.clone()),
        }
    }
}

impl<T: Default + Copy> Default for Small<T> {
    fn default() -> Self {
        Small::Here(Here::new(0, [T::default(); 4]))
    }
}

impl<T> Deref for Small<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Small::Here(here) => &here.items[..here.len as usize],
            Small::Heap(items) => items,
        }
    }
}

impl<T> DerefMut for Small<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Small::Here(here) => &mut here.items[..here.len as usize],
            Small::Heap(items) => items,
        }
    }
}

impl<T: PartialEq> PartialEq for Small<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Small::Here(a), Small::Here(b)) => a == b,
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
        Small::Here(Here::new(n, here))
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

    #[test]
    fn the_tag_needs_no_room() {
        assert_eq!(size_of::<Small<usize>>(), 5 * size_of::<usize>());
    }
}
