//! Regular parts of a tensor: taken out, and replaced.

use super::layout::{eval_view, mapped};
use super::*;
use crate::dtype::with_bits;
use crate::error::err;
use crate::kernels::movement;
use crate::shape::Strides;
use smallvec::smallvec;

/// A regular selection of positions along each axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SliceSpec {
    /// Where each axis starts, the step (negative to run backward), and how many.
    pub axes: Box<[(usize, isize, usize)]>,
}

impl SliceSpec {
    fn check(&self, shape: &Shape) -> Result<()> {
        let inside = |(&(start, step, n), &len): (&(usize, isize, usize), &usize)| {
            let last = n.checked_sub(1).map(|k| start as i128 + step as i128 * k as i128);
            step != 0 && last.is_none_or(|last| start < len && last >= 0 && last < len as i128)
        };
        if self.axes.len() == shape.len() && self.axes.iter().zip(shape.iter()).all(inside) {
            return Ok(());
        }
        Err(err!(Index, "the region {:?} reaches outside of shape {shape:?}", self.axes))
    }

    fn shape(&self) -> Shape {
        self.axes.iter().map(|a| a.2).collect()
    }

    /// The region in each of `n` lanes.
    fn of_lanes(&self, n: usize) -> SliceSpec {
        SliceSpec { axes: std::iter::once((0, 1, n)).chain(self.axes.iter().copied()).collect() }
    }

    /// Where the region lies in an array with these strides.
    pub fn locate(&self, offset: usize, strides: &[isize]) -> (usize, Strides) {
        let maps = self.axes.iter().enumerate().map(|(k, &part)| AxisMap::sliced(k, part));
        let Layout { offset, strides } = seen_through(maps, offset, strides);
        (offset, strides)
    }
}

/// The elements of a region.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slice {
    pub region: SliceSpec,
}

impl Primitive for Slice {
    const NAME: &'static str = "slice";
    const VIEW: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        self.region.check(x[0].shape)?;
        Ok(Aval { dtype: x[0].dtype, shape: self.region.shape() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        eval_view(self, &x[0], out);
        Ok(())
    }

    fn axis_map(&self, _: &[&[usize]], _: usize, axis: usize) -> Option<AxisMap> {
        Some(AxisMap::sliced(axis, self.region.axes[axis]))
    }

    fn view(&self, shape: &[usize], offset: usize, strides: &[isize]) -> Option<Layout> {
        mapped(self, self.region.axes.len(), shape, offset, strides)
    }

    /// `g` in its region of zeros.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let zeros = Tensor::zeros_of(at.dtype(0), at.shape(0));
        smallvec![Some(zeros.with_region(&self.region, g))]
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(Slice { region: self.region.of_lanes(n) }, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of = |axes: &[(usize, isize, usize)], s: &[usize]| {
            Sample::new(Slice { region: SliceSpec { axes: axes.into() } }, [Draw::new(Domain::any, s)])
        };
        vec![
            of(&[(1, 1, 2), (0, 2, 2)], &[4, 3]),
            of(&[(3, -1, 4)], &[4]),
            of(&[(4, -2, 2), (1, 1, 1)], &[5, 2]),
        ]
    }
}

/// The first input with a region replaced by the second.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SliceAssign {
    pub region: SliceSpec,
}

impl Primitive for SliceAssign {
    const NAME: &'static str = "slice_assign";
    const ARITY: Option<usize> = Some(2);

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        self.region.check(x[0].shape)?;
        if x[0].dtype != x[1].dtype || *x[1].shape != self.region.shape() {
            return Err(err!(
                Shape,
                "a region of {} {:?} cannot be replaced by {} {:?}",
                x[0].dtype,
                self.region.shape(),
                x[1].dtype,
                x[1].shape
            ));
        }
        Ok(Aval { dtype: x[0].dtype, shape: x[0].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let shape: Shape = x[0].shape.into();
        let (offset, strides) = self.region.locate(0, &shape.strides());
        with_bits!(x[0].dtype, T => if let Some((_, own)) = out.overwritten::<T>() {
            movement::copy_into::<T>(x[1].view(), own, offset, &strides);
        } else {
            let out = out.fill::<T>();
            movement::copy::<T>(x[0].view(), out);
            movement::copy_into::<T>(x[1].view(), out, offset, &strides);
        });
        Ok(())
    }

    fn overwrites(&self, input: usize, _: DType) -> bool {
        input == 0
    }

    fn movement(&self) -> Option<Movement> {
        Some(Movement::Over)
    }

    fn axis_map(&self, x: &[&[usize]], k: usize, axis: usize) -> Option<AxisMap> {
        let (start, step, n) = self.region.axes[axis];
        (k == 1 && (step == 1 || n == 1)).then(|| AxisMap::placed(axis, n, start, x[0][axis]))
    }

    /// `g` with zeros in the region, and the region of `g`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let zeros = || Tensor::zeros_of(at.dtype(1), at.shape(1));
        smallvec![
            at.needs(0).then(|| g.with_region(&self.region, &zeros())),
            at.needs(1).then(|| g.region(&self.region)),
        ]
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(SliceAssign { region: self.region.of_lanes(n) }, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of = |axes: &[(usize, isize, usize)], s: &[usize]| {
            let region = SliceSpec { axes: axes.into() };
            let part = region.shape();
            Sample::new(SliceAssign { region }, [Draw::new(Domain::any, s), Draw::new(Domain::any, &part)])
        };
        vec![of(&[(1, 1, 2), (0, 2, 2)], &[4, 3]), of(&[(3, -1, 3)], &[4])]
    }
}
