//! Putting slices to integer positions, and integers about positions. Negative positions count from the end.

use super::*;
use crate::dtype::{Scalar, with_bits};
use crate::error::err;
use crate::kernels::compute::Compute;
use crate::kernels::movement::put::{self, PutRule};
use crate::kernels::movement::{self, index as at};
use bytemuck::Pod;
use smallvec::smallvec;
use std::borrow::Cow;

/// `y = x`, then slice `index[j]` of `y` along the axis meets slice `j` of `src`: it becomes that slice (of several for one place the last
/// one stays), or their product, or the larger or smaller elements of both.
///
/// Cotangents go to what is seen in the result: to the slice that has stayed, to every factor, and in equal parts to all that equal the
/// extreme, `x` among them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct IndexPut {
    pub axis: usize,
    pub rule: PutRule,
}

impl Primitive for IndexPut {
    const NAME: &'static str = "index_put";
    const ARITY: Option<usize> = Some(3);

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        check_index(x[1])?;
        let expected = check_slices(x[0], x[1], self.axis)?;
        if x[2].dtype != x[0].dtype || *x[2].shape != expected {
            return Err(err!(
                Shape,
                "what is put there must be {} {expected:?}, got {} {:?}",
                x[0].dtype,
                x[2].dtype,
                x[2].shape
            ));
        }
        let dtype = x[0].dtype;
        let real = dtype.is_int() || matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64);
        if self.rule != PutRule::Set && !real {
            return Err(err!(DType, "takes real numbers, got {dtype}"));
        }
        Ok(Aval { dtype, shape: x[0].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        match (self.rule, x[0].dtype) {
            (PutRule::Set, dtype) => {
                with_bits!(dtype, T => self.put::<T>(x, out, |to, from| to.copy_from_slice(from)))
            }
            (rule, DType::F16) => self.put_halves::<half::f16>(rule, x, out),
            (rule, DType::BF16) => self.put_halves::<half::bf16>(rule, x, out),
            (rule, DType::F32) => self.put::<f32>(x, out, |to, from| put::combine(rule, to, from)),
            (rule, DType::F64) => self.put::<f64>(x, out, |to, from| put::combine(rule, to, from)),
            (rule, DType::U8) => self.put::<u8>(x, out, |to, from| put::combine(rule, to, from)),
            (rule, DType::I32) => self.put::<i32>(x, out, |to, from| put::combine(rule, to, from)),
            (rule, DType::I64) => self.put::<i64>(x, out, |to, from| put::combine(rule, to, from)),
            (_, other) => unreachable!("`infer` should have refused {other}"),
        }
        .map_err(|e| out_of_range(e, x[0].shape[self.axis]))
    }

    /// `g` where `x` stays and 0 elsewhere, and `g` at the index for what has stayed; a product and an extreme as their partials say.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let axis = self.axis as isize;
        let index = at.x(1);
        let (to_x, to_src) = match self.rule {
            PutRule::Set => {
                let zeros = || Tensor::zeros_of(at.dtype(2), at.shape(2));
                let stays = || {
                    let won = along(&winners(index, at.shape(0)[self.axis]), self.axis, at.shape(2));
                    Tensor::where_(&won, g.index_select(axis, index), zeros())
                };
                (at.needs(0).then(|| g.index_put(*self, index, &zeros())), at.needs(2).then(stays))
            }
            PutRule::Mul => {
                let factors = || Tensor::ones_of(at.dtype(0), at.shape(0)).index_put(*self, index, at.x(2));
                let others = || {
                    let before = products_before(at.x(2), index, self.axis, at.shape(0)[self.axis]);
                    let (src, turned) = (at.x(2).flip(axis), index.flip(0));
                    let after = products_before(&src, &turned, self.axis, at.shape(0)[self.axis]).flip(axis);
                    at.x(0).index_select(axis, index) * before * after
                };
                (
                    at.needs(0).then(|| g.gate(factors())),
                    at.needs(2).then(|| g.index_select(axis, index).gate(others())),
                )
            }
            PutRule::Max | PutRule::Min => {
                let [y, x, src] = [at.y(), at.x(0), at.x(2)].map(Tensor::detach);
                // Winners equal the extreme; NaN wins over numbers, and does not equal itself.
                let equal = |a: &Tensor, b: &Tensor| a.eq(b).or(a.ne(a)).cast(a.dtype());
                let (of_x, of_src) = (equal(&x, &y), equal(&src, &y.index_select(axis, index)));
                let share = g / of_x.index_add(axis, index, &of_src);
                (
                    at.needs(0).then(|| share.gate(of_x)),
                    at.needs(2).then(|| share.index_select(axis, index).gate(of_src)),
                )
            }
        };
        smallvec![to_x, None, to_src]
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        match self.rule {
            PutRule::Set => Uses::inputs([1]),
            PutRule::Mul if needs[2] => Uses::inputs([0, 1, 2]),
            PutRule::Mul => Uses::inputs([1, 2]),
            PutRule::Max | PutRule::Min => Uses::inputs([0, 1, 2]).and(Uses::OUTPUT),
        }
    }

    fn linearity(&self) -> Linearity {
        if self.rule == PutRule::Set { Linearity::Linear } else { Linearity::Nonlinear }
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        let put = |to: Tensor, src: Tensor| {
            let (index, op) = (&x[1], IndexPut { axis: self.axis + 1, ..*self });
            if !index.mapped {
                return bind(op, &[&to, &index.value, &src]);
            }
            // The lanes follow each other along the axis.
            let (len, flat) = (to.shape()[self.axis + 1], in_lanes(&index.value, to.shape()[self.axis + 1])?);
            let [to, src] = [&to, &src].map(|t| lanes_into_axis(t, self.axis));
            let put = bind(*self, &[&to, &flat, &src])?;
            Ok(lanes_from_axis(&put, self.axis, n, len))
        };
        Some(x[0].spread(n).and_then(|to| put(to, x[2].spread(n)?)))
    }

    fn samples() -> Vec<Sample> {
        let of = |rule, axis: usize, s: &[usize], src: &[usize]| {
            let index = Draw::Index(s[axis], src[axis].into());
            let (to, src) = match rule {
                PutRule::Max | PutRule::Min => (Draw::new(Domain::fractional, s), Draw::Distinct(src.into())),
                _ => (Draw::new(Domain::any, s), Draw::new(Domain::any, src)),
            };
            Sample::new(IndexPut { axis, rule }, [to, index, src])
        };
        let rules = [PutRule::Set, PutRule::Mul, PutRule::Max, PutRule::Min];
        let all =
            |rule| [of(rule, 0, &[3], &[5]), of(rule, 1, &[2, 3], &[2, 4]), of(rule, 0, &[4, 2], &[1, 2])];
        let mut samples: Vec<Sample> = rules.into_iter().flat_map(all).collect();
        samples.push(of(PutRule::Set, 1, &[2, 3, 2], &[2, 4, 2]));
        samples.push(of(PutRule::Mul, 0, &[2, 2], &[0, 2]));
        samples
    }
}

impl IndexPut {
    fn put<T: Pod + Send + Sync>(
        &self,
        x: &[Value],
        out: &mut Output,
        meet: impl Fn(&mut [T], &[T]) + Sync,
    ) -> std::result::Result<(), at::OutOfRange> {
        let out = out.fill::<T>();
        movement::copy::<T>(x[0].view(), out);
        put::index_put(out, x[0].shape, self.axis, x[1].view(), &contiguous::<T>(&x[2]), meet)
    }

    /// Halves meet in single precision, and are rounded once.
    fn put_halves<T: Pod + Compute<Wide = f32>>(
        &self,
        rule: PutRule,
        x: &[Value],
        out: &mut Output,
    ) -> std::result::Result<(), at::OutOfRange> {
        let out = out.fill::<T>();
        movement::copy::<T>(x[0].view(), out);
        let src = contiguous::<T>(&x[2]);
        let (mut to, mut from) = (vec![0f32; out.len()], vec![0f32; src.len()]);
        T::widen_all(out, &mut to);
        T::widen_all(&src, &mut from);
        let meet = |to: &mut [f32], from: &[f32]| put::combine(rule, to, from);
        let done = put::index_put(&mut to, x[0].shape, self.axis, x[1].view(), &from, meet);
        T::narrow_all(&to, out);
        done
    }
}

/// The elements in row-major order, copied if they do not lie so.
fn contiguous<'a, T: Pod + Send + Sync>(x: &Value<'a>) -> Cow<'a, [T]> {
    match x.view::<T>().as_slice() {
        Some(slice) => Cow::Borrowed(slice),
        None => {
            let mut copy = vec![T::zeroed(); x.shape.iter().product()];
            movement::copy(x.view(), &mut copy);
            Cow::Owned(copy)
        }
    }
}

/// Numbers or truth values along one axis of a shape, repeated over the others.
fn along(one: &Tensor, axis: usize, shape: &Shape) -> Tensor {
    let apart: Shape = (0..shape.len()).map(|k| if k == axis { shape[k] } else { 1 }).collect();
    one.reshape_to(&apart).broadcast_to(shape)
}

/// Of each position whether it is the last that names its place on an axis of length `n`.
fn winners(index: &Tensor, n: usize) -> Tensor {
    earlier(&index.flip(0), n).flip(0).eq(-1)
}

/// For each slice the product of those before it that have the same place on an axis of length `n`: without divisions, so that derivatives
/// of every order are exact where factors are zero.
///
/// Of slice `j` the product of the last `2^k` with its place is that of the last `2^(k-1)`, times the same of the slice that many before.
fn products_before(src: &Tensor, index: &Tensor, axis: usize, n: usize) -> Tensor {
    let (m, at) = (index.shape()[0], axis as isize);
    let earlier = earlier(index, n);
    // The last position, which -1 names, has what stands for no slice at all.
    let mut one: Vec<usize> = src.shape().to_vec();
    one[axis] = 1;
    let ones = Tensor::ones_of(src.dtype(), one);
    let none = Tensor::full_of(Scalar::I64(-1), DType::I64, 1.into());
    let picked = |of: &Tensor, by: &Tensor| Tensor::concat(&[of, &ones], at).index_select(at, by);
    let (mut product, mut reach) = (src.clone(), earlier.clone());
    for _ in 0..doublings(&earlier, m) {
        product = &product * picked(&product, &reach);
        reach = Tensor::concat(&[&reach, &none], 0).index_select(0, &reach);
    }
    picked(&product, &earlier)
}

fn earlier(index: &Tensor, n: usize) -> Tensor {
    bind(Earlier { n }, &[index]).expect("the forward pass has checked the index")
}

/// How often the number of slices that a product covers has to be doubled: for the most that have one place, or for all where the places
/// are not known.
fn doublings(earlier: &Tensor, m: usize) -> u32 {
    let most = match earlier.is_known().then(|| earlier.try_to_vec::<i64>()) {
        Some(Ok(earlier)) => {
            let mut before: Vec<usize> = Vec::with_capacity(m);
            earlier.iter().for_each(|&e| before.push(usize::try_from(e).map_or(0, |e| before[e] + 1)));
            before.into_iter().max().unwrap_or(0)
        }
        _ => m.saturating_sub(1),
    };
    most.next_power_of_two().trailing_zeros()
}

/// The position in an array of the given shape, flattened, of one index for each of its axes; i64.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FlatIndex {
    pub shape: Shape,
}

impl Primitive for FlatIndex {
    const NAME: &'static str = "flat_index";
    const ARITY: Option<usize> = None;
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        self.shape.checked_len()?;
        x.iter().try_for_each(|i| check_index(*i))?;
        let Some(first) = x.first().filter(|_| x.len() == self.shape.len()) else {
            return Err(err!(
                Shape,
                "takes one index for each axis of shape {:?}, got {}",
                self.shape,
                x.len()
            ));
        };
        match x.iter().find(|i| i.shape != first.shape) {
            Some(i) => {
                Err(err!(Shape, "indices must have one shape, got {:?} and {:?}", first.shape, i.shape))
            }
            None => Ok(Aval { dtype: DType::I64, shape: first.shape.clone() }),
        }
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let views: Vec<_> = x.iter().map(|i| i.view::<i64>()).collect();
        put::flat_index(&self.shape, &views, out.fill())
            .map_err(|(axis, e)| out_of_range(e, self.shape[axis]))
    }

    fn samples() -> Vec<Sample> {
        let of = |shape: &[usize], index: &[usize]| {
            // Below the shortest, so that they are inside in any order.
            let shortest = shape.iter().copied().min().unwrap_or(1);
            let draws: Vec<Draw> = shape.iter().map(|_| Draw::Index(shortest, index.into())).collect();
            Sample::new(FlatIndex { shape: shape.into() }, draws)
        };
        vec![of(&[3, 4], &[5]), of(&[2, 3, 2], &[2, 2]), of(&[4], &[]), of(&[2, 5], &[0])]
    }
}

/// Along the last axis, for each position on an axis of length `n`, where the last one before it stands that names the same place; -1 if there
/// is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Earlier {
    pub n: usize,
}

impl Primitive for Earlier {
    const NAME: &'static str = "earlier";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        check_index(x[0])?;
        match x[0].shape.is_empty() {
            true => Err(err!(Shape, "takes positions along an axis, got a scalar")),
            false => Ok(Aval { dtype: DType::I64, shape: x[0].shape.clone() }),
        }
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let row = x[0].shape[x[0].shape.len() - 1];
        put::earlier(&contiguous::<i64>(&x[0]), row, self.n, out.fill()).map_err(|e| out_of_range(e, self.n))
    }

    fn samples() -> Vec<Sample> {
        let of = |n, shape: &[usize]| Sample::new(Earlier { n }, [Draw::Index(n, shape.into())]);
        vec![of(3, &[6]), of(2, &[2, 4]), of(1, &[0])]
    }
}
