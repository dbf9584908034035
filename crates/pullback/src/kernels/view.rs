//! A strided, read-only window on a buffer.

/// Elements of `data`, seen as an array of the given shape.
///
/// The element at index `i` is `data[offset + Σ i[k] * strides[k]]`. Strides may be zero (broadcast) or
/// negative (flipped). [`View::new`] checks once that every index is in bounds, so kernels need not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a, T> {
    pub data: &'a [T],
    pub offset: usize,
    pub shape: &'a [usize],
    pub strides: &'a [isize],
}

impl<'a, T> View<'a, T> {
    /// A view whose every element lies inside `data`; panics otherwise.
    pub fn new(data: &'a [T], offset: usize, shape: &'a [usize], strides: &'a [isize]) -> Self {
        assert_eq!(shape.len(), strides.len(), "a view needs one stride for each axis");
        if shape.iter().all(|&n| n > 0) {
            let (mut low, mut high) = (offset as isize, offset as isize);
            for (&n, &s) in shape.iter().zip(strides) {
                let reach = (n as isize - 1) * s;
                if reach < 0 { low += reach } else { high += reach }
            }
            assert!(low >= 0 && (high as usize) < data.len(), "view reaches outside its buffer");
        }
        View { data, offset, shape, strides }
    }

    /// One element, as a view without axes.
    pub fn of(one: &'a [T; 1]) -> Self {
        View { data: one, offset: 0, shape: &[], strides: &[] }
    }

    /// The last two axes, from an element on.
    pub fn matrix(self, first: usize) -> Self {
        let leading = self.shape.len() - 2;
        View::new(self.data, first, &self.shape[leading..], &self.strides[leading..])
    }

    /// The number of elements seen.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// The elements as a slice, if they lie in row-major order without gaps.
    pub fn as_slice(&self) -> Option<&'a [T]> {
        let mut expected = 1isize;
        for (&n, &s) in self.shape.iter().zip(self.strides).rev() {
            if n != 1 && s != expected {
                return None;
            }
            expected *= n as isize;
        }
        let n = self.len();
        Some(if n == 0 { &[] } else { &self.data[self.offset..self.offset + n] })
    }
}
