//! Where the largest element of each window is.

use super::elementwise::needs_float;
use super::*;
use crate::dtype::with_float;
use crate::error::err;
use crate::kernels::conv::Span;
use crate::kernels::pool;

/// The position of the largest element of each window over the last axes, counted row-major over these axes; i64. The first of equal ones, and NaN
/// before all numbers. What lies outside of the input is not looked at.
///
/// Max pooling picks by it, so that its derivatives of any order are those of [`Gather`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PoolArgMax {
    pub size: Shape,
    pub window: Window,
}

impl PoolArgMax {
    fn spans(&self, x: &[usize]) -> Result<SmallVec<[Span; 3]>> {
        let axes = self.size.len();
        if !(1..=3).contains(&axes) || x.len() < axes {
            return Err(err!(Shape, "takes one to three axes of windows, {axes} here, got shape {x:?}"));
        }
        self.window.spans(&x[x.len() - axes..], &self.size)
    }
}

impl Primitive for PoolArgMax {
    const NAME: &'static str = "pool_argmax";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        if !x[0].dtype.is_float() {
            return Err(needs_float(x[0].dtype));
        }
        let spans = self.spans(x[0].shape)?;
        for s in &spans {
            let seen = |i: usize| {
                (0..s.k).any(|t| (i * s.stride + t * s.dilation).checked_sub(s.low).is_some_and(|p| p < s.x))
            };
            // Where no element is left out within a window, the first and the last have the least to see.
            let all = match s.dilation {
                1 => s.low < s.k && (s.y - 1) * s.stride < s.x + s.low,
                _ => (0..s.y).all(seen),
            };
            if s.x == 0 || !all {
                return Err(err!(
                    Shape,
                    "a window of {:?} over shape {:?} has nothing but padding to choose from: pad less than a window is long",
                    self.size,
                    x[0].shape
                ));
            }
        }
        let leading = x[0].shape.len() - spans.len();
        if spans.iter().map(|s| s.x).product::<usize>() > i32::MAX as usize {
            return Err(err!(Shape, "the windows lie over too many elements: {:?}", x[0].shape));
        }
        let shape: Shape = x[0].shape[..leading].iter().copied().chain(spans.iter().map(|s| s.y)).collect();
        shape.checked_len()?;
        Ok(Aval { dtype: DType::I64, shape })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let spans = self.spans(x[0].shape)?;
        let mut all = [Span::NONE; 3];
        all[3 - spans.len()..].copy_from_slice(&spans);
        with_float!(x[0].dtype, T => pool::arg_max::<T>(x[0].view(), &all, out.fill()));
        Ok(())
    }

    fn flops(&self, _: &[&[usize]], y: &[usize]) -> u64 {
        y.iter().chain(self.size.iter()).product::<usize>() as u64
    }

    fn samples() -> Vec<Sample> {
        let of = |size: &[usize], window: Window, x: &[usize]| {
            Sample::new(PoolArgMax { size: size.into(), window }, [Draw::new(Domain::any, x)])
        };
        let window = |stride: &[usize], low: &[usize], high: &[usize], dilation: &[usize]| Window {
            stride: stride.into(),
            low: low.into(),
            high: high.into(),
            dilation: dilation.into(),
        };
        vec![
            of(&[2], Window::dense(1), &[5]),
            of(&[2, 2], window(&[2, 2], &[0, 0], &[0, 0], &[1, 1]), &[2, 4, 6]),
            of(&[3, 2], window(&[2, 1], &[1, 1], &[1, 0], &[1, 2]), &[5, 4]),
            of(&[1, 2, 2], Window::dense(3), &[1, 2, 3, 2]),
            of(&[2], Window::dense(1), &[0, 3]),
        ]
    }
}
