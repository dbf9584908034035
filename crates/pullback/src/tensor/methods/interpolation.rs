//! Other resolutions of the last axes, axis by axis.

use super::methods;
use super::pooling::check_lengths;
use crate::error::{Result, err, or_panic};
use crate::location::{caller, with_caller};
use crate::ops::needs_float;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// How [`interpolate`](Tensor::interpolate) finds what lies between elements.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Interpolation {
    kind: Kind,
    corners: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Nearest,
    Linear,
    Cubic,
}

impl Interpolation {
    /// The element at `⌊i n / m⌋` for place `i` of `m`, of `n` elements.
    pub fn nearest() -> Interpolation {
        Interpolation { kind: Kind::Nearest, corners: false }
    }

    /// Straight lines between the two neighbours.
    #[doc(alias = "bilinear")]
    #[doc(alias = "trilinear")]
    pub fn linear() -> Interpolation {
        Interpolation { kind: Kind::Linear, corners: false }
    }

    /// Cubic polynomials through the four neighbours, by Keys' convolution with a = -3/4; those beyond the ends are the ends.
    #[doc(alias = "bicubic")]
    pub fn cubic() -> Interpolation {
        Interpolation { kind: Kind::Cubic, corners: false }
    }

    /// The first and last elements stay where they are. Otherwise elements are intervals whose ends stay: the centre of place `i` lies at
    /// `(i + 1/2) n / m - 1/2`. The nearest element does not depend on it.
    pub fn align_corners(mut self) -> Interpolation {
        self.corners = true;
        self
    }

    /// For each tap, what place `i` of `m` reads of `n` elements, and its weight.
    fn taps(&self, n: usize, m: usize) -> Vec<(Vec<i64>, Vec<f64>)> {
        let place = |i: usize| match (self.kind, self.corners) {
            (Kind::Nearest, _) => (i * n / m) as f64,
            (_, true) if m == 1 => 0.0,
            (_, true) => i as f64 * (n - 1) as f64 / (m - 1) as f64,
            (Kind::Linear, false) => ((i as f64 + 0.5) * n as f64 / m as f64 - 0.5).max(0.0),
            (Kind::Cubic, false) => (i as f64 + 0.5) * n as f64 / m as f64 - 0.5,
        };
        let weights: fn(f64) -> Vec<(i64, f64)> = match self.kind {
            Kind::Nearest => |_| vec![(0, 1.0)],
            Kind::Linear => |t| vec![(0, 1.0 - t), (1, t)],
            Kind::Cubic => {
                |t| vec![(-1, keys(1.0 + t)), (0, keys(t)), (1, keys(1.0 - t)), (2, keys(2.0 - t))]
            }
        };
        let at = |i: usize| {
            let p = place(i);
            let tap = move |(k, w): (i64, f64)| ((p.floor() as i64 + k).clamp(0, n as i64 - 1), w);
            weights(p - p.floor()).into_iter().map(tap).collect::<Vec<_>>()
        };
        let all: Vec<Vec<(i64, f64)>> = (0..m).map(at).collect();
        let count = all.first().map_or(0, Vec::len);
        (0..count).map(|k| all.iter().map(|taps| taps[k]).unzip()).collect()
    }
}

/// The convolution kernel of R. Keys, "Cubic convolution interpolation for digital image processing" (1981), with a = -3/4.
fn keys(x: f64) -> f64 {
    const A: f64 = -0.75;
    if x <= 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else {
        ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A
    }
}

/// One axis in another resolution: a sum of slices with weights. A matrix would mix zeros with infinities of elements that are not read.
fn along(x: &Tensor, axis: usize, m: usize, how: Interpolation) -> Result<Tensor> {
    let n = x.shape()[axis];
    if n == m && (how.kind == Kind::Nearest || how.corners || n == 1) {
        return Ok(x.clone());
    }
    let weighted: Shape = (0..x.rank()).map(|k| if k == axis { m } else { 1 }).collect();
    let mut sum: Option<Tensor> = None;
    for (places, weights) in how.taps(n, m) {
        let part = x.try_index_select(axis as isize, &Tensor::from(&places[..]))?;
        let part = match how.kind {
            Kind::Nearest => part,
            _ => part.try_mul(&Tensor::from(&weights[..]).try_cast(x.dtype())?.try_reshape(&weighted)?)?,
        };
        sum = Some(match sum {
            Some(s) => s.try_add(&part)?,
            None => part,
        });
    }
    sum.ok_or_else(|| err!(Shape, "nothing to interpolate"))
}

fn interpolate(x: &Tensor, to: &Shape, how: Interpolation) -> Result<Tensor> {
    if !x.dtype().is_float() {
        return Err(needs_float(x.dtype()));
    }
    let Some(leading) = x.rank().checked_sub(to.len()) else {
        return Err(err!(
            Shape,
            "the lengths {to:?} are those of the last axes, of which {:?} has fewer",
            x.shape()
        ));
    };
    check_lengths(x, &x.shape()[leading..], to)?;
    to.iter().enumerate().try_fold(x.clone(), |y, (a, &m)| along(&y, leading + a, m, how))
}

methods! { $ interpolation_methods;
    /// The last axes, as many as lengths are given, in another resolution; the axes of images and channels in front of them stay.
    ///
    /// ```
    /// use pullback::{Interpolation, prelude::*};
    /// let x = Tensor::from([[0.0, 1.0, 4.0]]);
    /// assert_eq!(x.interpolate([6], Interpolation::nearest()).to_vec::<f64>(), [0.0, 0.0, 1.0, 1.0, 4.0, 4.0]);
    /// let fine = x.interpolate([5], Interpolation::linear().align_corners());
    /// assert_eq!(fine.to_vec::<f64>(), [0.0, 0.5, 1.0, 2.5, 4.0]);
    /// ```
    #[doc(alias = "resize")]
    #[doc(alias = "upsample")]
    interpolate try_interpolate(&self, to: impl Into<Shape>, how: Interpolation) -> Tensor {
        let to = to.into();
        with_caller(caller(), || interpolate(self, &to, how)).map_err(|e| e.renamed("interpolate"))
    }
}
