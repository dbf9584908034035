//! Windows that slide along an axis.

use super::layout::eval_view;
use super::*;
use crate::error::err;
use smallvec::smallvec;

/// `y[.., w, .., k] = x[.., w step + k, ..]`: the windows of `size` elements that begin at every `step`-th place of an axis. The places
/// within a window are a new last axis. Windows overlap where the step is smaller than they are, and copy nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Windows {
    pub axis: usize,
    pub size: usize,
    pub step: usize,
}

impl Primitive for Windows {
    const NAME: &'static str = "unfold";
    const VIEW: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let shape = x[0].shape;
        let Some(&n) = shape.get(self.axis) else {
            return Err(err!(Axis, "axis {} is out of range for shape {shape:?}", self.axis));
        };
        let Windows { axis, size, step } = *self;
        if size == 0 || step == 0 || size > n {
            return Err(err!(
                Shape,
                "windows of {size} elements at steps of {step} do not fit axis {axis} of shape {shape:?}: the window is not longer \
                 than the axis, and neither number is 0"
            ));
        }
        let count = (n - size) / step + 1;
        let lengths = (0..shape.len()).map(|k| if k == axis { count } else { shape[k] });
        let shape: Shape = lengths.chain([size]).collect();
        shape.checked_len()?;
        Ok(Aval { dtype: x[0].dtype, shape })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        eval_view(self, &x[0], out);
        Ok(())
    }

    fn view(&self, shape: &[usize], offset: usize, strides: &[isize]) -> Option<Layout> {
        // A step past the end is never taken, and may be any number.
        let step = if shape[self.axis] - self.size < self.step { 1 } else { self.step as isize };
        let stride = |k: usize| if k == self.axis { strides[k] * step } else { strides[k] };
        Some(Layout { offset, strides: (0..shape.len()).map(stride).chain([strides[self.axis]]).collect() })
    }

    /// Two axes step along one of the operand's, which no map of one axis says.
    fn movement(&self) -> Option<Movement> {
        None
    }

    /// The windows of `g` added where they lie.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        smallvec![Some(g.fold(self.axis as isize, self.step, at.shape(0)[self.axis]))]
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(Windows { axis: self.axis + 1, ..*self }, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of = |axis, size, step, s: &[usize]| {
            Sample::new(Windows { axis, size, step }, [Draw::new(Domain::any, s)])
        };
        vec![
            of(0, 3, 1, &[5]),
            of(0, 2, 2, &[5]),
            of(0, 2, 3, &[6]),
            of(1, 2, 1, &[2, 4]),
            of(0, 2, 1, &[3, 3]),
            of(1, 3, 1, &[2, 3, 2]),
            of(0, 1, 9, &[1, 0]),
        ]
    }
}
