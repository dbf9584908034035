//! Extremes of segments. Their sums are `index_add`.

use super::elementwise::check_ordered;
use super::*;
use crate::dtype::with_real;
use crate::error::err;
use crate::kernels::{reduce, segment};
use smallvec::smallvec;

/// The largest or smallest element of each segment, which says for each slice of the first operand where it belongs; equal ones share the
/// derivative. A segment of nothing has the lowest or highest value there is.
///
/// Ids `[.., n]` of slices `[.., n, ..]`, where the first axes are those of both, give `[.., segments, ..]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SegmentExtreme {
    pub segments: usize,
    pub largest: bool,
}

/// Integer ids spread over the slices they belong to.
fn spread(ids: &Tensor, like: &Shape) -> Tensor {
    let ones = std::iter::repeat_n(1, like.len() - ids.rank());
    let shape: Shape = ids.shape().iter().copied().chain(ones).collect();
    ids.reshape_to(&shape).broadcast_to(like)
}

/// For each slice that of its segment.
fn of_segments(y: &Tensor, ids: &Tensor, like: &Shape) -> Tensor {
    match ids.rank() {
        1 => y.index_select(0, ids),
        rank => y.gather(rank as isize - 1, &spread(ids, like)),
    }
}

/// The sum over each segment.
fn summed(x: &Tensor, ids: &Tensor, like: &Shape) -> Tensor {
    let zeros = Tensor::zeros_of(x.dtype(), like);
    match ids.rank() {
        1 => zeros.index_add(0, ids, x),
        rank => zeros.scatter_add(rank as isize - 1, &spread(ids, &x.node().shape), x),
    }
}

impl SegmentExtreme {
    /// 1 for each winner and 0 for the others, and how many have won in each segment, at least 1.
    fn winners(&self, at: &At) -> (Tensor, Tensor) {
        let (x, y) = (at.x(0).detach(), at.y().detach());
        let best = of_segments(&y, at.x(1), at.shape(0));
        // NaN wins over numbers, and does not equal itself.
        let won = x.eq(&best).or(x.ne(&x)).cast(x.dtype());
        let count = summed(&won, at.x(1), &y.node().shape).maximum(1.0);
        (won, count)
    }
}

impl Primitive for SegmentExtreme {
    const NAME: &'static str = "segment_extreme";
    const ARITY: Option<usize> = Some(2);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let [x, ids] = x else { unreachable!("segment_extreme has two inputs") };
        if ids.dtype != DType::I64 {
            return Err(err!(DType, "segment ids must be i64, got {}; use .cast(DType::I64)", ids.dtype));
        }
        if ids.shape.is_empty() || !x.shape.starts_with(ids.shape) {
            return Err(err!(
                Shape,
                "segment ids of shape {:?} do not fit slices of shape {:?}: there is one id for each slice",
                ids.shape,
                x.shape
            ));
        }
        if x.dtype == DType::Bool {
            return Err(err!(DType, "takes numbers, got bool; use .cast(DType::U8)"));
        }
        check_ordered(x.dtype)?;
        let mut shape = x.shape.to_vec();
        shape[ids.shape.len() - 1] = self.segments;
        let shape: Shape = shape.into();
        shape.checked_len()?;
        Ok(Aval { dtype: x.dtype, shape })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let n = self.segments;
        with_real!(x[0].dtype, T => match self.largest {
            true => segment::extreme::<T, reduce::Max>(x[0].view(), x[1].view(), n, out.fill()),
            false => segment::extreme::<T, reduce::Min>(x[0].view(), x[1].view(), n, out.fill()),
        })
        .map_err(|e| {
            err!(Index, "segment {} (at position {}) is not one of {n}, numbered from 0", e.value, e.position)
        })
    }

    /// `g` at the winners of its segment, in equal shares, 0 elsewhere.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let (won, count) = self.winners(at);
        smallvec![Some(of_segments(&(g / count), at.x(1), at.shape(0)).gate(won)), None]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([0, 1]).and(Uses::OUTPUT)
    }

    fn pushforward(&self, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> {
        let t = t[0].as_ref().expect("a pushforward has at least one tangent");
        let (won, count) = self.winners(at);
        Ok(summed(&t.gate(won), at.x(1), &at.y().node().shape) / count)
    }

    fn samples() -> Vec<Sample> {
        let of = |segments, largest, s: &[usize], ids: &[usize]| {
            let draws = [Draw::new(Domain::any, s), Draw::Index(segments, ids.into())];
            Sample::new(SegmentExtreme { segments, largest }, draws)
        };
        vec![
            of(3, true, &[5], &[5]),
            // So many that no segment is empty, which would be infinite.
            of(2, false, &[9, 2], &[9]),
            of(2, true, &[2, 3, 2], &[2, 3]),
            of(1, false, &[1], &[1]),
            of(2, true, &[3, 0], &[3]),
        ]
    }
}
