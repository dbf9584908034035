//! Picking and adding by integer positions. Negative positions count from the end.

use super::*;
use crate::dtype::{with_bits, with_stored};
use crate::error::{Error, err};
use crate::kernels::compute::Compute;
use crate::kernels::movement::{self, index as at};
use smallvec::smallvec;

/// Copies the first operand to the output and adds to it with the right element type. Halves are added in single precision, and
/// rounded once: 2048 + 1 is 2048 in f16.
macro_rules! add_at {
    ($x:ident, $out:ident, |$o:ident, $src:ident, $widen:ident| $add:expr) => {
        match $x[0].dtype {
            DType::F16 => add_at!(@halves half::f16, $x, $out, |$o, $src, $widen| $add),
            DType::BF16 => add_at!(@halves half::bf16, $x, $out, |$o, $src, $widen| $add),
            dtype => with_stored!(dtype, T => {
                let $o = $out.fill::<T>();
                movement::copy::<T>($x[0].view(), $o);
                let ($src, $widen) = ($x[2].view::<T>(), |x: T| x);
                $add
            }),
        }
    };
    (@halves $T:ty, $x:ident, $out:ident, |$o:ident, $src:ident, $widen:ident| $add:expr) => {{
        let out = $out.fill::<$T>();
        movement::copy::<$T>($x[0].view(), out);
        let mut sums = vec![0.0; out.len()];
        <$T>::widen_all(out, &mut sums);
        let ($o, $src, $widen) = (&mut sums[..], $x[2].view::<$T>(), <$T>::widen);
        let added = $add;
        <$T>::narrow_all(&sums, out);
        added
    }};
}

pub(super) fn out_of_range(e: at::OutOfRange, n: usize) -> Error {
    err!(Index, "index {} (at position {}) is out of range for an axis of length {n}", e.value, e.position)
}

pub(super) fn check_index(index: Arg) -> Result<()> {
    match index.dtype {
        DType::I64 => Ok(()),
        other => Err(err!(DType, "indices must be i64, got {other}; use .cast(DType::I64)")),
    }
}

/// The index array lies inside the array it picks from, but for the axis.
fn check_inside(x: Arg, index: Arg, axis: usize) -> Result<()> {
    let inside = |k: usize| k == axis || index.shape[k] <= x.shape[k];
    if axis < x.shape.len() && index.shape.len() == x.shape.len() && (0..x.shape.len()).all(inside) {
        return Ok(());
    }
    Err(err!(
        Shape,
        "an index of shape {:?} does not fit shape {:?} along axis {axis}: ranks must be equal, and no other axis longer",
        index.shape,
        x.shape
    ))
}

/// The shape of whole slices picked along an axis by a 1-d index.
pub(super) fn check_slices(x: Arg, index: Arg, axis: usize) -> Result<Shape> {
    if axis >= x.shape.len() || index.shape.len() != 1 {
        return Err(err!(
            Shape,
            "takes an index of one axis and an axis of the tensor; got index {:?}, axis {axis}, tensor {:?}",
            index.shape,
            x.shape
        ));
    }
    Ok((0..x.shape.len()).map(|k| if k == axis { index.shape[0] } else { x.shape[k] }).collect())
}

/// `[n, .., len, ..]` as `[.., n * len, ..]`: the lanes one after the other along what is axis `axis` of each.
pub(super) fn lanes_into_axis(t: &Tensor, axis: usize) -> Tensor {
    let order = (1..=axis).chain([0]).chain(axis + 1..t.rank()).collect();
    let mut shape = t.node().shape.without(&[0]).to_vec();
    shape[axis] *= t.shape()[0];
    t.permuted(order).reshape_to(&shape.into())
}

/// `[.., n * len, ..]` as `[n, .., len, ..]`: the inverse of [`lanes_into_axis`].
pub(super) fn lanes_from_axis(t: &Tensor, axis: usize, n: usize, len: usize) -> Tensor {
    let mut shape = t.node().shape.inserted(axis, n).to_vec();
    shape[axis + 1] = len;
    let order = std::iter::once(axis).chain((0..shape.len()).filter(|&k| k != axis)).collect();
    t.reshape_to(&shape.into()).permuted(order)
}

/// The index `[n, len]` of whole slices along an axis of arrays like `shape`, repeated for each of their elements, which
/// copies nothing. Offsets into one axis of all lanes would do too, but let an index reach into another lane.
fn one_for_each(index: &Tensor, axis: usize, shape: &Shape) -> Tensor {
    let (n, len) = (index.shape()[0], index.shape()[1]);
    let along = |other: &dyn Fn(usize) -> usize| -> Shape {
        let axes = (0..shape.len()).map(|k| if k == axis { len } else { other(k) });
        std::iter::once(n).chain(axes).collect()
    };
    index.reshape_to(&along(&|_| 1)).broadcast_to(along(&|k| shape[k]))
}

/// Positions `[n, m]` in each of `n` lanes, on an axis of length `len`, as positions on the axes of all lanes one after the other. Every one of
/// them is checked against its own lane.
pub(super) fn in_lanes(index: &Tensor, len: usize) -> Result<Tensor> {
    let (n, m) = (index.shape()[0], index.shape()[1]);
    let lanes = Tensor::arange(0, n as i64, 1).beside(index)?.reshape([n, 1]).broadcast_to([n, m]);
    let flat = bind(FlatIndex { shape: [n, len].into() }, &[&lanes, index])?;
    Ok(flat.reshape_to(&(n * m).into()))
}

/// `y[.., j, ..] = x[.., index[.., j, ..], ..]` along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gather {
    pub axis: usize,
}

impl Primitive for Gather {
    const NAME: &'static str = "gather";
    const ARITY: Option<usize> = Some(2);

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        check_index(x[1])?;
        check_inside(x[0], x[1], self.axis)?;
        Ok(Aval { dtype: x[0].dtype, shape: x[1].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let n = x[0].shape[self.axis];
        with_bits!(x[0].dtype, T => at::gather::<T>(x[0].view(), self.axis, x[1].view(), out.fill()))
            .map_err(|e| out_of_range(e, n))
    }

    /// `g` added to zeros at the index.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let zeros = Tensor::zeros_of(at.dtype(0), at.shape(0));
        smallvec![Some(zeros.scatter_add(self.axis as isize, at.x(1), g)), None]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([1])
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        let [from, index] = x else { unreachable!("gather has two inputs") };
        if from.mapped {
            return Some(Batched::bind_all(Gather { axis: self.axis + 1 }, x, n));
        }
        // The lanes of the index follow each other along the axis, so that the pullback adds to one array, not to n.
        let (joined, len) = (lanes_into_axis(&index.value, self.axis), index.value.shape()[self.axis + 1]);
        Some(bind(*self, &[&from.value, &joined]).map(|y| lanes_from_axis(&y, self.axis, n, len)))
    }

    fn samples() -> Vec<Sample> {
        let of = |axis, s: &[usize], i: &[usize]| {
            Sample::new(Gather { axis }, [Draw::new(Domain::any, s), Draw::Index(s[axis], i.into())])
        };
        vec![of(0, &[4], &[6]), of(1, &[2, 3], &[2, 4]), of(0, &[3, 3], &[2, 2])]
    }
}

/// `y = x`, then `y[.., index[.., j, ..], ..] += src[.., j, ..]` along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScatterAdd {
    pub axis: usize,
}

impl Primitive for ScatterAdd {
    const NAME: &'static str = "scatter_add";
    const ARITY: Option<usize> = Some(3);

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        check_index(x[1])?;
        check_inside(x[0], x[1], self.axis)?;
        check_source(x, x[1].shape)
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let (axis, shape) = (self.axis, x[0].shape);
        add_at!(x, out, |out, src, widen| at::scatter_add(out, shape, axis, x[1].view(), src, widen))
            .map_err(|e| out_of_range(e, shape[axis]))
    }

    /// `g`, and its elements at the index.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let axis = self.axis as isize;
        smallvec![at.needs(0).then(|| g.clone()), None, at.needs(2).then(|| g.gather(axis, at.x(1)))]
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        if needs[2] { Uses::inputs([1]) } else { Uses::NOTHING }
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(ScatterAdd { axis: self.axis + 1 }, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of = |axis, s: &[usize], i: &[usize]| {
            let draws =
                [Draw::new(Domain::any, s), Draw::Index(s[axis], i.into()), Draw::new(Domain::any, i)];
            Sample::new(ScatterAdd { axis }, draws)
        };
        vec![of(0, &[4], &[6]), of(1, &[2, 3], &[2, 4])]
    }
}

fn check_source(x: &[Arg], expected: &Shape) -> Result<Aval> {
    if x[0].dtype == DType::Bool {
        return Err(err!(DType, "truth values are not added; cast them to numbers first"));
    }
    if x[2].shape != expected || x[2].dtype != x[0].dtype {
        return Err(err!(
            Shape,
            "what is added must be {} {expected:?}, got {} {:?}",
            x[0].dtype,
            x[2].dtype,
            x[2].shape
        ));
    }
    Ok(Aval { dtype: x[0].dtype, shape: x[0].shape.clone() })
}

/// Whole slices along an axis, in the order of a 1-d index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct IndexSelect {
    pub axis: usize,
}

impl Primitive for IndexSelect {
    const NAME: &'static str = "index_select";
    const ARITY: Option<usize> = Some(2);

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        check_index(x[1])?;
        let shape = check_slices(x[0], x[1], self.axis)?;
        shape.checked_len()?;
        Ok(Aval { dtype: x[0].dtype, shape })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let n = x[0].shape[self.axis];
        with_bits!(x[0].dtype, T => at::index_select::<T>(x[0].view(), self.axis, x[1].view(), out.fill()))
            .map_err(|e| out_of_range(e, n))
    }

    /// The slices of `g` added to zeros at the index.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let zeros = Tensor::zeros_of(at.dtype(0), at.shape(0));
        smallvec![Some(zeros.index_add(self.axis as isize, at.x(1), g)), None]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([1])
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        let [from, index] = x else { unreachable!("index_select has two inputs") };
        Some(match (from.mapped, index.mapped) {
            (true, false) => bind(IndexSelect { axis: self.axis + 1 }, &[&from.value, &index.value]),
            (false, _) => bind(*self, &[&from.value, &index.value.flatten()])
                .map(|y| lanes_from_axis(&y, self.axis, n, index.value.shape()[1])),
            // Whole rows are moved.
            (true, true) if self.axis == 0 => {
                let (len, m) = (from.value.shape()[1], index.value.shape()[1]);
                let rows = in_lanes(&index.value, len)
                    .and_then(|flat| bind(*self, &[&lanes_into_axis(&from.value, 0), &flat]));
                rows.map(|y| lanes_from_axis(&y, 0, n, m))
            }
            (true, true) => {
                let like = from.value.node().shape.without(&[0]);
                let index = one_for_each(&index.value, self.axis, &like);
                bind(Gather { axis: self.axis + 1 }, &[&from.value, &index])
            }
        })
    }

    fn samples() -> Vec<Sample> {
        let of = |axis, s: &[usize], n: usize| {
            Sample::new(IndexSelect { axis }, [Draw::new(Domain::any, s), Draw::Index(s[axis], n.into())])
        };
        vec![of(0, &[4, 2], 5), of(1, &[2, 3], 4)]
    }
}

/// `y = x`, then slice `index[j]` of `y` along the axis gets slice `j` of `src` added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct IndexAdd {
    pub axis: usize,
}

impl Primitive for IndexAdd {
    const NAME: &'static str = "index_add";
    const ARITY: Option<usize> = Some(3);

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        check_index(x[1])?;
        let expected = check_slices(x[0], x[1], self.axis)?;
        check_source(x, &expected)
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let (axis, shape) = (self.axis, x[0].shape);
        add_at!(x, out, |out, src, widen| at::index_add(out, shape, axis, x[1].view(), src, widen))
            .map_err(|e| out_of_range(e, shape[axis]))
    }

    /// `g`, and its slices at the index.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let axis = self.axis as isize;
        smallvec![at.needs(0).then(|| g.clone()), None, at.needs(2).then(|| g.index_select(axis, at.x(1)))]
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        if needs[2] { Uses::inputs([1]) } else { Uses::NOTHING }
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        let add = |to: Tensor, src: Tensor| {
            let (index, axis) = (&x[1], self.axis + 1);
            if !index.mapped {
                return bind(IndexAdd { axis }, &[&to, &index.value, &src]);
            }
            if self.axis == 0 {
                let (len, flat) = (to.shape()[1], in_lanes(&index.value, to.shape()[1])?);
                let [to, src] = [&to, &src].map(|t| lanes_into_axis(t, 0));
                return bind(*self, &[&to, &flat, &src]).map(|y| lanes_from_axis(&y, 0, n, len));
            }
            let index = one_for_each(&index.value, self.axis, &to.node().shape.without(&[0]));
            bind(ScatterAdd { axis }, &[&to, &index, &src])
        };
        Some(x[0].spread(n).and_then(|to| add(to, x[2].spread(n)?)))
    }

    fn samples() -> Vec<Sample> {
        let of = |axis: usize, s: &[usize], src: &[usize]| {
            let index = Draw::Index(s[axis], src[axis].into());
            Sample::new(IndexAdd { axis }, [Draw::new(Domain::any, s), index, Draw::new(Domain::any, src)])
        };
        vec![of(0, &[3, 2], &[4, 2]), of(1, &[2, 3], &[2, 4])]
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    /// Halves are added in single precision and rounded once, wherever the sum is made.
    #[test]
    fn sums_of_halves_at_an_index_round_once() {
        for dtype in [DType::F16, DType::BF16] {
            for n in [1000usize, 3000] {
                let index = Tensor::zeros([n]).cast(DType::I64);
                let ones = Tensor::ones([n, 4]).cast(dtype);
                let exact = Tensor::scalar(n as f64).cast(dtype).cast(DType::F64).item();
                let all = |t: Tensor| t.cast(DType::F64).to_vec::<f64>();
                let x = Tensor::zeros([2, 4]).cast(dtype);
                assert_eq!(all(x.index_add(0, &index, &ones))[..4], [exact; 4], "index_add {dtype}");
                // Along the last axis, and by one index for each element.
                let (t, ones_t) = (Tensor::zeros([4, 2]).cast(dtype), Tensor::ones([4, n]).cast(dtype));
                assert_eq!(all(t.index_add(1, &index, &ones_t)).iter().step_by(2).sum::<f64>(), 4.0 * exact);
                let each = Tensor::zeros([4, n]).cast(DType::I64);
                assert_eq!(all(t.scatter_add(1, &each, &ones_t)).iter().step_by(2).sum::<f64>(), 4.0 * exact);
                let g = grad(|x: &Tensor| x.index_select(0, &index).sum())(&x);
                assert_eq!(all(g)[..4], [exact; 4], "the gradient of index_select {dtype}");
            }
        }
    }
}
