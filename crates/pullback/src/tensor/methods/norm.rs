//! Normalisation: of rows, of groups of channels, over a batch.

use super::methods;
use crate::DType;
use crate::error::{Result, Within, err, or_panic};
use crate::location::{caller, with_caller};
use crate::ops::{LayerNorm, needs_float};
use crate::shape::{Axes, Shape};
use crate::tensor::operand::check_dtypes;
use crate::tensor::{Tensor, bind};

/// What a normalisation multiplies with and adds in the end, and what it adds to the variance.
///
/// ```
/// use pullback::{Norm, prelude::*};
/// let x = Tensor::from([[1.0, 3.0], [5.0, 5.0]]);
/// let norm = Norm::new().weight(&Tensor::from([1.0, 2.0])).bias(&Tensor::from([0.0, 1.0])).eps(0.0);
/// assert_eq!(x.slice((0..1,)).layer_norm(norm).to_vec::<f64>(), [-1.0, 3.0]);
/// assert_eq!(x.layer_norm(Norm::new()).slice((1..2,)).to_vec::<f64>(), [0.0, 0.0]);
/// ```
#[derive(Clone, Debug)]
pub struct Norm {
    weight: Option<Tensor>,
    bias: Option<Tensor>,
    eps: f64,
    axes: Option<usize>,
}

impl Default for Norm {
    fn default() -> Self {
        Norm { weight: None, bias: None, eps: 1e-5, axes: None }
    }
}

impl Norm {
    /// Neither weight nor bias, and an `eps` of 1e-5.
    pub fn new() -> Norm {
        Norm::default()
    }

    /// The result is multiplied with this: for rows of the shape of a row, else one number for each channel.
    #[must_use]
    pub fn weight(mut self, weight: &Tensor) -> Norm {
        self.weight = Some(weight.clone());
        self
    }

    /// This is added to the result: of the shape of a weight.
    #[must_use]
    pub fn bias(mut self, bias: &Tensor) -> Norm {
        self.bias = Some(bias.clone());
        self
    }

    /// Added to the variance, so that equal numbers give 0.
    #[must_use]
    pub fn eps(mut self, eps: f64) -> Norm {
        self.eps = eps;
        self
    }

    /// How many of the last axes are a row; as many as the weight or the bias has, or one without them.
    #[must_use]
    pub fn axes(mut self, axes: usize) -> Norm {
        self.axes = Some(axes);
        self
    }

    fn parts(&self) -> impl Iterator<Item = &Tensor> {
        self.weight.iter().chain(&self.bias)
    }

    /// The type that all is computed in.
    fn dtype(&self, x: &Tensor) -> Result<DType> {
        let mut dtype = x.dtype();
        if !dtype.is_float() {
            return Err(needs_float(dtype));
        }
        for part in self.parts() {
            let to = DType::promote(dtype, part.dtype());
            check_dtypes(x, part, to)?;
            dtype = to;
        }
        Ok(dtype)
    }

    /// `y w + b` with one weight and one shift for each channel, which lie along axis 1.
    fn on_channels(&self, y: Tensor, channels: usize) -> Result<Tensor> {
        let shape: Shape =
            (0..y.rank().saturating_sub(1)).map(|k| if k == 0 { channels } else { 1 }).collect();
        let spread = |part: &Tensor| {
            if part.shape() != [channels] {
                return Err(err!(
                    Shape,
                    "weight and bias have one number for each of the {channels} channels, got {:?}",
                    part.shape()
                ));
            }
            part.try_reshape(&shape)
        };
        let y = if let Some(w) = &self.weight { y.try_mul(spread(w)?)? } else { y };
        if let Some(b) = &self.bias { y.try_add(spread(b)?) } else { Ok(y) }
    }
}

/// The normalised rows of `x`, which are its last axes.
fn over_rows(x: &Tensor, norm: &Norm, centred: bool) -> Result<Tensor> {
    let dtype = norm.dtype(x)?;
    let axes = norm.axes.or_else(|| norm.parts().next().map(Tensor::rank)).unwrap_or(1);
    if axes == 0 || axes > x.rank() {
        return Err(err!(Shape, "a row cannot be the last {axes} axes of shape {:?}", x.shape()));
    }
    let (front, row) = x.shape().split_at(x.rank() - axes);
    if let Some(part) = norm.parts().find(|p| p.shape() != row) {
        return Err(err!(
            Shape,
            "weight and bias have the shape of a row, which is {row:?}, the last {axes} of {:?}; got {:?}",
            x.shape(),
            part.shape()
        ));
    }
    let (rows, n) = (front.iter().product::<usize>(), row.iter().product::<usize>());
    let typed = |t: &Tensor| if t.dtype() == dtype { Ok(t.clone()) } else { t.try_cast(dtype) };
    let flat = |part: &Option<Tensor>, else_: f64| match part {
        Some(t) => typed(t)?.try_reshape([n]),
        None => Ok(Tensor::full_of(else_.into(), dtype, [n].into())),
    };
    let inputs = [typed(x)?.try_reshape([rows, n])?, flat(&norm.weight, 1.0)?, flat(&norm.bias, 0.0)?];
    bind(LayerNorm { eps: norm.eps, centred }, &inputs.each_ref())?.try_reshape(&x.node().shape)
}

/// The channels of `x`, which lie along axis 1.
fn channels(x: &Tensor) -> Result<usize> {
    match x.shape().get(1) {
        Some(&n) => Ok(n),
        None => Err(err!(Shape, "takes a batch with channels along axis 1, got shape {:?}", x.shape())),
    }
}

fn over_groups(x: &Tensor, groups: usize, norm: &Norm) -> Result<Tensor> {
    let c = channels(x)?;
    if groups == 0 || !c.is_multiple_of(groups) {
        return Err(err!(Shape, "{c} channels cannot be parted into {groups} groups of equal size"));
    }
    let dtype = norm.dtype(x)?;
    let each: usize = x.shape()[2..].iter().product::<usize>() * (c / groups);
    let rows = x.try_reshape([x.shape()[0].saturating_mul(groups), each])?;
    let plain =
        over_rows(&rows, &Norm { eps: norm.eps, ..Norm::new() }, true)?.try_reshape(&x.node().shape)?;
    norm.on_channels(if plain.dtype() == dtype { plain } else { plain.try_cast(dtype)? }, c)
}

/// All axes but that of the channels.
fn beside_channels(x: &Tensor) -> Axes {
    (0..x.rank()).filter(|&k| k != 1).collect()
}

/// `y = (x - mean) / sqrt(var + eps) w + b`, and the statistics.
fn over_batch(x: &Tensor, norm: &Norm) -> Result<(Tensor, Tensor, Tensor)> {
    let c = channels(x)?;
    norm.dtype(x)?;
    let over = beside_channels(x);
    let axes: Vec<isize> = over.iter().map(|&k| k as isize).collect();
    let kept = x.node().shape.with_ones(&over);
    let mean = x.try_mean_axes(axes.as_slice())?;
    let centred = x.try_sub(mean.try_reshape(&kept)?)?;
    let var = centred.try_square()?.try_mean_axes(axes.as_slice())?;
    let factor = var.try_add(norm.eps)?.try_rsqrt()?.try_reshape(&kept)?;
    Ok((norm.on_channels(centred.try_mul(factor)?, c)?, mean, var))
}

fn over_known(x: &Tensor, mean: &Tensor, var: &Tensor, norm: &Norm) -> Result<Tensor> {
    let c = channels(x)?;
    norm.dtype(x)?;
    let kept = x.node().shape.with_ones(&beside_channels(x));
    if let Some(part) = [mean, var].into_iter().find(|p| p.shape() != [c]) {
        return Err(err!(
            Shape,
            "mean and variance have one number for each of the {c} channels, got {:?}",
            part.shape()
        ));
    }
    let factor = var.try_add(norm.eps)?.try_rsqrt()?.try_reshape(&kept)?;
    norm.on_channels(x.try_sub(mean.try_reshape(&kept)?)?.try_mul(factor)?, c)
}

methods! { $ norm_methods;
    /// `(x - mean) / sqrt(var + eps) w + b` with the mean and variance of each row: the last axis, or as many as the [weight](Norm::weight) has.
    ///
    /// One kernel forward and one backward, which gives all three gradients.
    ///
    /// ```
    /// use pullback::{Norm, prelude::*};
    /// let x = Tensor::from([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]);
    /// let y = x.layer_norm(Norm::new().eps(0.0));
    /// assert!((y.slice((0..1,)) - y.slice((1..2,))).abs().max().item() < 1e-12);
    /// ```
    layer_norm try_layer_norm(&self, norm: Norm) -> Tensor {
        with_caller(caller(), || over_rows(self, &norm, true)).within("layer_norm")
    }

    /// `x / sqrt(mean(x²) + eps) w + b` for each row, as [`layer_norm`](Tensor::layer_norm) has it, without the mean.
    ///
    /// ```
    /// use pullback::{Norm, prelude::*};
    /// let y = Tensor::from([3.0, 4.0]).rms_norm(Norm::new().eps(0.0));
    /// assert!((y.square().mean().item() - 1.0).abs() < 1e-12);
    /// ```
    rms_norm try_rms_norm(&self, norm: Norm) -> Tensor {
        with_caller(caller(), || over_rows(self, &norm, false)).within("rms_norm")
    }

    /// [`layer_norm`](Tensor::layer_norm) of groups of channels, of `[batch, channels, ..]`; weight and bias have one number for each channel.
    ///
    /// ```
    /// use pullback::{Norm, prelude::*};
    /// let y = Tensor::randn(Key::new(1), [2, 6, 5], DType::F64).group_norm(3, Norm::new());
    /// assert!(y.reshape([2, 3, 10]).mean_axes(-1).abs().max().item() < 1e-12);
    /// ```
    group_norm try_group_norm(&self, groups: usize, norm: Norm) -> Tensor {
        with_caller(caller(), || over_groups(self, groups, &norm)).within("group_norm")
    }

    /// [`group_norm`](Tensor::group_norm) with every channel a group.
    instance_norm try_instance_norm(&self, norm: Norm) -> Tensor {
        with_caller(caller(), || channels(self).and_then(|c| over_groups(self, c, &norm))).within("instance_norm")
    }

    /// Each channel of `[batch, channels, ..]` brought to mean 0 and variance 1 over the batch and all other axes, then multiplied with the
    /// weight and shifted by the bias, of one number for each channel. Returns the mean and the variance too, for
    /// [`batch_norm_with`](Tensor::batch_norm_with) when training is over; the variance is the one divided by (division by n).
    ///
    /// ```
    /// use pullback::{Norm, prelude::*};
    /// let x = Tensor::from([[1.0, 5.0], [3.0, 9.0]]);
    /// let (y, mean, var) = x.batch_norm(Norm::new().eps(0.0));
    /// assert_eq!(y.to_vec::<f64>(), [-1.0, -1.0, 1.0, 1.0]);
    /// assert_eq!((mean.to_vec::<f64>(), var.to_vec::<f64>()), (vec![2.0, 7.0], vec![1.0, 4.0]));
    /// assert_eq!(x.batch_norm_with(&mean, &var, Norm::new().eps(0.0)).to_vec::<f64>(), y.to_vec::<f64>());
    /// ```
    batch_norm try_batch_norm(&self, norm: Norm) -> (Tensor, Tensor, Tensor) {
        with_caller(caller(), || over_batch(self, &norm)).within("batch_norm")
    }

    /// [`batch_norm`](Tensor::batch_norm) with a mean and a variance that are known.
    batch_norm_with try_batch_norm_with(&self, mean: &Tensor, var: &Tensor, norm: Norm) -> Tensor {
        with_caller(caller(), || over_known(self, mean, var, &norm)).within("batch_norm_with")
    }
}
