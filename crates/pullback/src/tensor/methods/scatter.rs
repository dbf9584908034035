//! Lookups and updates by tensors of positions or truth values.

use super::arrange::composed;
use super::index::positions;
use super::methods;
use crate::dtype::DType;
use crate::error::{Result, Within, err, or_panic};
use crate::kernels::movement::put::PutRule;
use crate::ops::*;
use crate::shape::{Shape, axis};
use crate::tensor::operand::check_dtypes;
use crate::tensor::{Operand, Tensor, bind};

methods! { $ scatter_methods;
    /// Slices along an axis by positions of any shape, whose axes take the place of that axis.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// let y = x.take(1, &Tensor::from([[0, 2], [-1, 1]]));
    /// assert_eq!(y.shape(), [2, 2, 2]);
    /// assert_eq!(y.get(0).to_vec::<f64>(), [1.0, 3.0, 3.0, 2.0]);
    /// ```
    take try_take(&self, at: isize, index: &Tensor) -> Tensor {
        let k = axis(at, self.rank()).within("take")?;
        composed("take", || {
            let index = positions(index)?;
            let s = self.shape();
            let shape: Shape = s[..k].iter().chain(index.shape()).chain(&s[k + 1..]).copied().collect();
            bind(IndexSelect { axis: k }, &[self, &index.try_flatten()?])?.try_reshape(shape)
        })
    }

    /// The rows of this table by their numbers: `take(0, ids)`. The gradient adds up the cotangents of each row.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let table = Tensor::from([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
    /// let ids = Tensor::from([[0, 2], [2, 1]]);
    /// assert_eq!(table.embedding(&ids).shape(), [2, 2, 2]);
    /// let g = grad(|t: &Tensor| t.embedding(&ids).sum())(&table);
    /// assert_eq!(g.to_vec::<f64>(), [1.0, 1.0, 1.0, 1.0, 2.0, 2.0]);
    /// ```
    embedding try_embedding(&self, ids: &Tensor) -> Tensor {
        self.try_take(0, ids).map_err(|e| e.renamed("embedding"))
    }

    /// For each element of `index`, the element of this at that position along the axis, the other positions being equal: [`gather`](Tensor::gather),
    /// with all other axes broadcast.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]]);
    /// let largest = x.argmax(-1).unsqueeze(-1);
    /// assert_eq!(x.take_along_axis(-1, &largest).to_vec::<f64>(), [3.0, 6.0]);
    /// ```
    #[doc(alias = "take_along_dim")]
    take_along_axis try_take_along_axis(&self, at: isize, index: &Tensor) -> Tensor {
        let k = axis(at, self.rank()).within("take_along_axis")?;
        composed("take_along_axis", || {
            if index.rank() != self.rank() {
                return Err(err!(Shape, "ranks must be equal: got an index of shape {:?} for shape {:?}", index.shape(), self.shape()));
            }
            let one = |t: &Tensor| t.node().shape.with_ones(&[k]);
            let common = Shape::broadcast(&one(self), &one(index))?;
            let with = |n: usize| (0..common.len()).map(|a| if a == k { n } else { common[a] }).collect::<Shape>();
            let (n, m) = (self.shape()[k], index.shape()[k]);
            let index = positions(index)?.try_broadcast_to(with(m))?;
            bind(Gather { axis: k }, &[&self.try_broadcast_to(with(n))?, &index])
        })
    }

    /// This with each element of `src` at the position along the axis that `index` says. Where positions repeat, the last one in row-major
    /// order stays, and it alone has a gradient. `src` is a number, or broadcasts to the shape of `index`.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let y = Tensor::zeros([4]).scatter(0, &Tensor::from([2, 2, 0]), &Tensor::from([1.0, 2.0, 5.0]));
    /// assert_eq!(y.to_vec::<f64>(), [5.0, 0.0, 2.0, 0.0]);
    /// ```
    #[doc(alias = "put_along_axis")]
    scatter try_scatter<'a>(&self, at: isize, index: &Tensor, src: impl Into<Operand<'a>>) -> Tensor {
        scattered("scatter", PutRule::Set, self, at, index, src.into())
    }

    /// This with each element of `src` multiplied to the position along the axis that `index` says. Derivatives are exact where factors are zero.
    #[doc(alias = "scatter_reduce")]
    scatter_mul try_scatter_mul<'a>(&self, at: isize, index: &Tensor, src: impl Into<Operand<'a>>) -> Tensor {
        scattered("scatter_mul", PutRule::Mul, self, at, index, src.into())
    }

    /// This with the largest of each element and those of `src` whose position along the axis it is. Equal ones share the gradient; NaN wins.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let y = Tensor::zeros([3]).scatter_max(0, &Tensor::from([0, 0, 1]), &Tensor::from([1.0, 3.0, -1.0]));
    /// assert_eq!(y.to_vec::<f64>(), [3.0, 0.0, 0.0]);
    /// ```
    #[doc(alias = "scatter_reduce")]
    scatter_max try_scatter_max<'a>(&self, at: isize, index: &Tensor, src: impl Into<Operand<'a>>) -> Tensor {
        scattered("scatter_max", PutRule::Max, self, at, index, src.into())
    }

    /// This with the smallest of each element and those of `src` whose position along the axis it is. Equal ones share the gradient; NaN wins.
    #[doc(alias = "scatter_reduce")]
    scatter_min try_scatter_min<'a>(&self, at: isize, index: &Tensor, src: impl Into<Operand<'a>>) -> Tensor {
        scattered("scatter_min", PutRule::Min, self, at, index, src.into())
    }

    /// This with `values` at the positions of the flattened tensor that `index` names; the last one stays where they repeat. They broadcast to the
    /// shape of `index`.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let y = Tensor::zeros([2, 2]).put(&Tensor::from([3, 0]), 7.0);
    /// assert_eq!(y.to_vec::<f64>(), [7.0, 0.0, 0.0, 7.0]);
    /// ```
    put try_put<'a>(&self, index: &Tensor, values: impl Into<Operand<'a>>) -> Tensor {
        let values = values.into();
        composed("put", || {
            let index = positions(index)?;
            let values = update_like(self, values, &index.node().shape)?;
            let op = IndexPut { axis: 0, rule: PutRule::Set };
            bind(op, &[&self.try_flatten()?, &index.try_flatten()?, &values.try_flatten()?])?.try_reshape(&self.node().shape)
        })
    }

    /// The elements where `mask` is true, along one axis; both broadcast. How many there are depends on the values of the mask, so that these must be
    /// known: not inside of `compile` or `vmap`, where [`masked_fill`](Tensor::masked_fill) and [`where_`](Tensor::where_) keep the shape.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1.0, -2.0], [-3.0, 4.0]]);
    /// assert_eq!(x.masked_select(&x.gt(0.0)).to_vec::<f64>(), [1.0, 4.0]);
    /// ```
    masked_select try_masked_select(&self, mask: &Tensor) -> Tensor {
        composed("masked_select", || {
            let shape = Shape::broadcast(self.shape(), mask.shape())?;
            let index = mask_positions(&mask.try_broadcast_to(&shape)?)?;
            bind(IndexSelect { axis: 0 }, &[&self.try_broadcast_to(&shape)?.try_flatten()?, &index])
        })
    }

    /// The slices along an axis where a mask of one axis is true. As for [`masked_select`](Tensor::masked_select), the mask must be known.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1, 2], [3, 4], [5, 6]]);
    /// assert_eq!(x.compress(0, &Tensor::from([true, false, true])).to_vec::<i32>(), [1, 2, 5, 6]);
    /// ```
    compress try_compress(&self, at: isize, mask: &Tensor) -> Tensor {
        let k = axis(at, self.rank()).within("compress")?;
        composed("compress", || {
            if *mask.shape() != [self.shape()[k]] {
                return Err(err!(Shape, "a mask of shape {:?} does not fit axis {at} of shape {:?}", mask.shape(), self.shape()));
            }
            bind(IndexSelect { axis: k }, &[self, &mask_positions(mask)?])
        })
    }

    /// Where the elements are that are not zero: one row of positions for each of them, in row-major order; i64. The values must be known, as for
    /// [`masked_select`](Tensor::masked_select).
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[0.0, 2.0], [3.0, 0.0]]);
    /// assert_eq!(x.nonzero().to_vec::<i64>(), [0, 1, 1, 0]);
    /// ```
    #[doc(alias("argwhere", "flatnonzero"))]
    nonzero try_nonzero(&self) -> Tensor {
        composed("nonzero", || {
            let mask = if self.dtype() == DType::Bool { self.clone() } else { self.try_cast(DType::Bool)? };
            let flat = mask_positions(&mask)?.to_vec::<i64>();
            let (rank, strides) = (self.rank(), self.node().shape.strides());
            let digit = |place: i64, k: usize| place / strides[k] as i64 % self.shape()[k] as i64;
            let places: Vec<i64> = flat.iter().flat_map(|&place| (0..rank).map(move |k| (place, k))).map(|(p, k)| digit(p, k)).collect();
            Tensor::try_from_slice(&places, [flat.len(), rank])?.beside(self)
        })
    }

    /// For each number `k` of these integers a row of `n` zeros with a one at place `k`, along a new last axis. Numbers from -1 to `-n` count from the
    /// end.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let rows = Tensor::from([2, 0]).one_hot(3, DType::F32);
    /// assert_eq!(rows.to_vec::<f32>(), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    /// ```
    one_hot try_one_hot(&self, n: usize, dtype: DType) -> Tensor {
        composed("one_hot", || {
            let place = bind(FlatIndex { shape: n.into() }, &[&*positions(self)?])?;
            place.try_unsqueeze(-1)?.try_eq(&Tensor::try_arange(0, n as i64, 1)?.beside(self)?)?.try_cast(dtype)
        })
    }
}

/// What is put into a tensor, in its type and in the given shape.
#[track_caller]
pub(in crate::tensor) fn update_like(x: &Tensor, values: Operand, shape: &Shape) -> Result<Tensor> {
    let values = match values {
        Operand::Number(v) => {
            let scalar = Tensor::zeros_of(x.dtype(), Shape::default());
            Operand::Number(v).tensor_like(&scalar)?
        }
        other => other.into_tensor(),
    };
    check_dtypes(x, &values, x.dtype())?;
    values.try_cast(x.dtype())?.try_broadcast_to(shape)
}

/// The positions along the flattened mask where it is true.
pub(in crate::tensor) fn mask_positions(mask: &Tensor) -> Result<Tensor> {
    if mask.dtype() != DType::Bool {
        return Err(err!(DType, "a mask has truth values, got {}; compare it with something", mask.dtype()));
    }
    if !mask.is_known() {
        return Err(err!(
            Value,
            "the shape of the result depends on the values of a mask, which are not known while a function is traced or mapped; \
             where_ and masked_fill keep the shape"
        ));
    }
    let all = mask.try_to_vec::<bool>()?;
    let places: Vec<i64> = (0..).zip(&all).filter(|(_, is)| **is).map(|(place, _)| place).collect();
    Tensor::try_from_slice(&places, places.len())?.beside(mask)
}

#[track_caller]
fn scattered(
    op: &'static str,
    rule: PutRule,
    x: &Tensor,
    at: isize,
    index: &Tensor,
    src: Operand,
) -> Result<Tensor> {
    let k = axis(at, x.rank()).within(op)?;
    composed(op, || {
        let index = positions(index)?;
        let arg = |t: &Tensor| Aval { dtype: t.dtype(), shape: t.node().shape.clone() };
        let (of, by) = (arg(x), arg(&index));
        let [of, by] = [&of, &by].map(|a| Arg { dtype: a.dtype, shape: &a.shape });
        let shape = Gather { axis: k }.infer(&[of, by])?.shape;
        let src = update_like(x, src, &shape)?;
        // Every element by its place in the flattened tensor.
        let along = |a: usize| {
            let lengths: Shape = (0..shape.len()).map(|b| if a == b { shape[a] } else { 1 }).collect();
            Tensor::try_arange(0, shape[a] as i64, 1)?
                .beside(&index)?
                .try_reshape(&lengths)?
                .try_broadcast_to(&shape)
        };
        let places = (0..x.rank()).map(|a| if a == k { Ok(index.clone().into_owned()) } else { along(a) });
        let places = places.collect::<Result<Vec<Tensor>>>()?;
        let flat = bind(FlatIndex { shape: x.node().shape.clone() }, &places.iter().collect::<Vec<_>>())?;
        let put = IndexPut { axis: 0, rule };
        bind(put, &[&x.try_flatten()?, &flat.try_flatten()?, &src.try_flatten()?])?
            .try_reshape(&x.node().shape)
    })
}
