//! Orders as integers: the permutation that sorts, the places of the largest, where values belong. What they order is gathered by them, so that
//! derivatives are those of `gather`.

use super::elementwise::check_ordered;
use super::scan::check_axis;
use super::*;
use crate::dtype::with_real;
use crate::error::err;
use crate::kernels::order;

/// The places of the elements along an axis in rising or falling order, equal ones in their own; i64. NaN is larger than every number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ArgSort {
    pub axis: usize,
    pub descending: bool,
}

impl Primitive for ArgSort {
    const NAME: &'static str = "argsort";

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        check_axis(self.axis, x[0])?;
        check_ordered(x[0].dtype)?;
        Ok(Aval { dtype: DType::I64, shape: x[0].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_real!(x[0].dtype, T => order::argsort::<T>(x[0].view(), self.axis, self.descending, out.fill()));
        Ok(())
    }

    fn flops(&self, x: &[&[usize]], y: &[usize]) -> u64 {
        let n = x[0][self.axis].max(2);
        y.iter().product::<usize>() as u64 * n.ilog2() as u64
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(ArgSort { axis: self.axis + 1, ..*self }, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of = |axis, descending, s: &[usize]| {
            Sample::new(ArgSort { axis, descending }, [Draw::new(Domain::any, s)])
        };
        vec![
            of(0, false, &[5]),
            of(1, true, &[2, 4]),
            of(0, false, &[3, 3]),
            of(1, false, &[2, 3, 2]),
            of(0, true, &[1]),
            of(1, false, &[2, 0]),
        ]
    }
}

/// The places of the `k` largest (or smallest) elements along an axis, the most extreme first, of equal ones the first; i64. NaN is larger than
/// every number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TopK {
    pub axis: usize,
    pub k: usize,
    pub largest: bool,
}

impl Primitive for TopK {
    const NAME: &'static str = "topk";

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        check_axis(self.axis, x[0])?;
        check_ordered(x[0].dtype)?;
        let n = x[0].shape[self.axis];
        if self.k > n {
            return Err(err!(
                Shape,
                "cannot take {} elements along axis {} of shape {:?}, which has {n}",
                self.k,
                self.axis,
                x[0].shape
            ));
        }
        let mut shape = x[0].shape.to_vec();
        shape[self.axis] = self.k;
        Ok(Aval { dtype: DType::I64, shape: shape.into() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_real!(x[0].dtype, T => order::select::<T>(x[0].view(), self.axis, self.k, self.largest, out.fill()));
        Ok(())
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(TopK { axis: self.axis + 1, ..*self }, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of = |axis, k, largest, s: &[usize]| {
            Sample::new(TopK { axis, k, largest }, [Draw::new(Domain::any, s)])
        };
        vec![of(0, 2, true, &[5]), of(1, 3, false, &[2, 4]), of(0, 1, true, &[3, 3]), of(1, 0, true, &[2, 3])]
    }
}

/// How many elements of a sorted lane are less than a value, or less or equal if `right`; i64.
///
/// The first operand has its lanes along the last axis; its other axes are the first ones of the second, each value of which is looked up
/// in its lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SearchSorted {
    pub right: bool,
}

impl Primitive for SearchSorted {
    const NAME: &'static str = "searchsorted";
    const ARITY: Option<usize> = Some(2);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let [sorted, values] = x else { unreachable!("searchsorted has two inputs") };
        let fits = sorted.shape.split_last().is_some_and(|(_, lanes)| values.shape.starts_with(lanes));
        if !fits {
            return Err(err!(
                Shape,
                "values of shape {:?} cannot be looked up in {:?}: all axes of that but the last must be the first ones of the values",
                values.shape,
                sorted.shape
            ));
        }
        if sorted.dtype != values.dtype {
            return Err(err!(DType, "values of {} cannot be looked up among {}", values.dtype, sorted.dtype));
        }
        check_ordered(values.dtype)?;
        Ok(Aval { dtype: DType::I64, shape: values.shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_real!(x[0].dtype, T => order::search::<T>(x[0].view(), x[1].view(), self.right, out.fill()));
        Ok(())
    }

    fn samples() -> Vec<Sample> {
        let of = |right, sorted: &[usize], values: &[usize]| {
            let both = [Draw::new(Domain::any, sorted), Draw::new(Domain::any, values)];
            Sample::new(SearchSorted { right }, both)
        };
        vec![of(false, &[5], &[]), of(true, &[3], &[2, 2]), of(false, &[2, 4], &[2, 3]), of(true, &[0], &[2])]
    }
}
