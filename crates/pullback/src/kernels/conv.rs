//! Convolutions over one to three axes, and the two gradients of each.
//!
//! All are sums `Σ x[lane + step] v[step]` of numbers times vectors, at places that two small tables name: see [`tile`]. The first factor is
//! read where it lies, or from a copy with zeros around it; nothing is unfolded. Every element is one chain of multiply-adds in an order that the
//! shapes decide, so neither threads nor the way the work is cut change its bits.

mod channels;
mod dots;
mod pack;
mod rows;
mod tile;
mod weights;
mod windows;

use super::compute::Compute;
use super::matmul::Fused;
use super::movement;
use super::scratch::filled;
use super::strided::row_major;
use super::view::View;
use half::{bf16, f16};

/// Multiply-adds a thread should have before another one is worth waking.
const GRAIN: usize = 1 << 19;

/// One axis: `y[i] = Σ k[t] x[i stride + t dilation - low]`, over the `x` that exist.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub x: usize,
    pub k: usize,
    pub y: usize,
    pub stride: usize,
    pub dilation: usize,
    pub low: usize,
}

impl Span {
    /// An axis that is not there.
    pub const NONE: Span = Span { x: 1, k: 1, y: 1, stride: 1, dilation: 1, low: 0 };
}

/// The lengths of a convolution of `[images, groups inputs, ..x]` by `[groups outputs, inputs, ..k]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub images: usize,
    pub groups: usize,
    /// Channels of a group, on the side of `x`.
    pub inputs: usize,
    /// Channels of a group, on the side of `y`.
    pub outputs: usize,
    /// The last axis is always there.
    pub spans: [Span; 3],
}

impl Geometry {
    fn extents(&self, of: impl Fn(&Span) -> usize) -> [usize; 3] {
        self.spans.each_ref().map(of)
    }
}

/// A strided array of two axes (images and channels, or channels of both sides) and three more.
#[derive(Clone, Copy)]
struct Array<T> {
    first: *const T,
    outer: [isize; 2],
    inner: [isize; 3],
}

// SAFETY: an array is only read.
unsafe impl<T: Sync> Sync for Array<T> {}

impl<T> Array<T> {
    fn new(x: View<T>) -> Self {
        let (rank, strides) = (x.shape.len(), x.strides);
        assert!((3..=5).contains(&rank), "a convolution has one to three axes besides images and channels");
        let mut inner = [0; 3];
        inner[5 - rank..].copy_from_slice(&strides[2..]);
        let first = if x.len() == 0 { x.data.as_ptr() } else { &raw const x.data[x.offset] };
        Array { first, outer: [strides[0], strides[1]], inner }
    }

    /// A pointer to the first element of an entry of the outer axes.
    ///
    /// # Safety
    /// The array has that entry.
    unsafe fn at(&self, i: usize, j: usize) -> *const T {
        // SAFETY: the caller's promise.
        unsafe { self.first.offset(i as isize * self.outer[0] + j as isize * self.outer[1]) }
    }
}

/// Which of the three factors of `Σ x k y` is summed up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Face {
    /// From `x` and `k`: the convolution.
    Output,
    /// From `y` and `k`: the gradient of the input, or the transposed convolution.
    Input,
    /// From `x` and `y`: the gradient of the kernel.
    Kernel,
}

/// A float that convolutions are computed in or by.
pub(crate) trait Convolved: Sized {
    /// Computes one face from the other two, in the order of [`Face`].
    fn convolve(face: Face, g: &Geometry, a: View<Self>, b: View<Self>, out: &mut [Self]);
}

/// Computes one face from the other two, in floats that processors multiply.
fn native<T: Fused + Into<f64>>(face: Face, g: &Geometry, a: View<T>, b: View<T>, out: &mut [T]) {
    let shape = |outer: [usize; 2], of: fn(&Span) -> usize| (outer, g.extents(of));
    let x = shape([g.images, g.groups * g.inputs], |s| s.x);
    let k = shape([g.groups * g.outputs, g.inputs], |s| s.k);
    let y = shape([g.images, g.groups * g.outputs], |s| s.y);
    let (first, second, result) = match face {
        Face::Output => (x, k, y),
        Face::Input => (y, k, x),
        Face::Kernel => (x, y, k),
    };
    let len = |(outer, inner): ([usize; 2], [usize; 3])| outer.iter().chain(&inner).product::<usize>();
    let fits = |v: &View<T>, (outer, inner): ([usize; 2], [usize; 3])| {
        let axes = v.shape.len() - 2;
        v.shape[..2] == outer
            && v.shape[2..] == inner[3 - axes..]
            && inner[..3 - axes].iter().all(|&n| n == 1)
    };
    assert!(
        fits(&a, first) && fits(&b, second) && out.len() == len(result),
        "conv: the shapes belong together"
    );
    if out.is_empty() {
        return;
    }
    if a.len() == 0 || b.len() == 0 {
        return out.fill(T::default());
    }
    let (a, b) = (Array::new(a), Array::new(b));
    match face {
        Face::Output => windows::Windows::of_output(g).run(a, b, out),
        Face::Input => windows::Windows::of_input(g).run(a, b, out),
        Face::Kernel => weights::run(g, a, b, out),
    }
}

macro_rules! floats {
    ($($T:ty)*) => {$(
        impl Convolved for $T {
            fn convolve(face: Face, g: &Geometry, a: View<$T>, b: View<$T>, out: &mut [$T]) {
                native(face, g, a, b, out);
            }
        }
    )*};
}
floats!(f32 f64);

macro_rules! halves {
    ($($T:ty)*) => {$(
        impl Convolved for $T {
            fn convolve(face: Face, g: &Geometry, a: View<$T>, b: View<$T>, out: &mut [$T]) {
                let wide = |x: View<$T>| {
                    let mut packed = filled(<$T>::default(), x.len());
                    movement::copy(x, &mut packed);
                    let mut wide = filled(0f32, x.len());
                    <$T>::widen_all(&packed, &mut wide);
                    wide
                };
                let (p, q, mut y) = (wide(a), wide(b), filled(0f32, out.len()));
                let view = |data, shape, strides| View::new(data, 0, shape, strides);
                native(face, g, view(&p, a.shape, &row_major(a.shape)), view(&q, b.shape, &row_major(b.shape)), &mut y);
                <$T>::narrow_all(&y, out);
            }
        }
    )*};
}
halves!(f16 bf16);

#[cfg(test)]
mod tests;
