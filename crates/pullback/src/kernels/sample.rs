//! Arrays for the tests of kernels: the same numbers in many layouts.

use super::view::View;
pub(super) use pullback_testing::Dice;

/// The numbers of random cases. Miri, which takes some thousand times as long, runs a few of them.
pub(super) fn cases(n: usize) -> std::ops::Range<usize> {
    0..if cfg!(miri) { n / 25 } else { n }
}

/// An owned array with any strides.
#[derive(Debug)]
pub(super) struct Strided<T> {
    pub data: Vec<T>,
    pub offset: usize,
    pub shape: Vec<usize>,
    pub strides: Vec<isize>,
}

impl<T: Copy> Strided<T> {
    pub fn view(&self) -> View<'_, T> {
        View::new(&self.data, self.offset, &self.shape, &self.strides)
    }

    /// A contiguous array.
    pub fn contiguous(data: Vec<T>, shape: &[usize]) -> Self {
        let strides = super::strided::row_major(shape).to_vec();
        Strided { data, offset: 0, shape: shape.to_vec(), strides }
    }

    /// The same layout with other elements.
    pub fn cast<U>(&self, f: impl Fn(T) -> U) -> Strided<U> {
        let data = self.data.iter().map(|&x| f(x)).collect();
        Strided { data, offset: self.offset, shape: self.shape.clone(), strides: self.strides.clone() }
    }

    /// The element at an index.
    pub fn at(&self, index: &[usize]) -> T {
        let at: isize = index.iter().zip(&self.strides).map(|(&i, &s)| i as isize * s).sum();
        self.data[(self.offset as isize + at) as usize]
    }

    /// An array of this shape with a random layout: permuted, flipped, spaced out and broadcast axes.
    pub fn random(r: &mut Dice, shape: &[usize], mut element: impl FnMut(&mut Dice) -> T) -> Self {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        if r.roll(2) == 0 {
            for k in (1..order.len()).rev() {
                order.swap(k, r.roll(k + 1));
            }
        }
        let (mut strides, mut step, mut offset) = (vec![0isize; shape.len()], 1usize, 0usize);
        for &k in order.iter().rev() {
            match r.roll(8) {
                0 => continue,
                1 => {
                    strides[k] = -(step as isize);
                    offset += shape[k].saturating_sub(1) * step;
                    step *= shape[k].max(1);
                }
                2 => {
                    strides[k] = step as isize;
                    step *= shape[k].max(1) + 3;
                }
                _ => {
                    strides[k] = step as isize;
                    step *= shape[k].max(1);
                }
            }
        }
        Strided { data: (0..step).map(|_| element(r)).collect(), offset, shape: shape.to_vec(), strides }
    }
}

/// Calls `f` with every index of the shape, in row-major order.
pub(super) fn indices(shape: &[usize], mut f: impl FnMut(&[usize])) {
    let mut index = vec![0; shape.len()];
    for _ in 0..shape.iter().product() {
        f(&index);
        for k in (0..shape.len()).rev() {
            index[k] += 1;
            if index[k] < shape[k] {
                break;
            }
            index[k] = 0;
        }
    }
}

/// A random shape of the given rank with lengths up to `longest`.
pub(super) fn shape(r: &mut Dice, rank: usize, longest: usize) -> Vec<usize> {
    (0..rank).map(|_| 1 + r.roll(longest)).collect()
}
