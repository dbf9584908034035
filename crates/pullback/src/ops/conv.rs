//! Convolutions: the three faces of one form, each with the two others as its pullback.
//!
//! `Σ x[n, c, i stride + t dilation - low] k[o, c, t] y[n, o, i]` is linear in each of its factors. The derivative in `y` is the convolution of
//! `x` by `k`, that in `x` the transposed convolution of `y` by `k`, and that in `k` the gradient of the kernel. So the three are closed under
//! differentiation, of any order.

use super::elementwise::needs_float;
use super::*;
use crate::dtype::with_float;
use crate::error::err;
use crate::kernels::conv::{Convolved, Face, Geometry, Span};
use crate::shape::Axes;
use smallvec::smallvec;

/// How windows lie over the last axes of a tensor, one entry for each of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Window {
    /// From one window to the next.
    pub stride: Shape,
    /// Zeros in front of and behind the axis.
    pub low: Shape,
    pub high: Shape,
    /// From one element of a window to the next.
    pub dilation: Shape,
}

impl Attribute for Window {
    fn to_attr(&self) -> Attr {
        Attr::List([&self.stride, &self.low, &self.high, &self.dilation].map(Shape::to_attr).into())
    }
    fn from_attr(attr: &Attr) -> Option<Window> {
        match attr {
            Attr::List(all) if all.len() == 4 => Some(Window {
                stride: Shape::from_attr(&all[0])?,
                low: Shape::from_attr(&all[1])?,
                high: Shape::from_attr(&all[2])?,
                dilation: Shape::from_attr(&all[3])?,
            }),
            _ => None,
        }
    }
}

/// No parameter is larger, so that sums and products of them are numbers too.
const LARGEST: usize = 1 << 31;

impl Window {
    /// Windows of every place.
    #[cfg_attr(not(test), allow(dead_code, reason = "samples begin with it"))]
    pub fn dense(axes: usize) -> Window {
        let all = |n: usize| -> Shape { std::iter::repeat_n(n, axes).collect() };
        Window { stride: all(1), low: all(0), high: all(0), dilation: all(1) }
    }

    /// Where windows of these sizes lie over axes of these lengths; an error if one of them is longer than its axis.
    pub fn spans(&self, x: &[usize], k: &[usize]) -> Result<SmallVec<[Span; 3]>> {
        let given = [&self.stride, &self.low, &self.high, &self.dilation];
        if x.len() != k.len() || given.iter().any(|s| s.len() != x.len()) {
            return Err(err!(
                Shape,
                "the window is {k:?} with stride {:?}, padding {:?} and {:?}, dilation {:?}, for axes of {x:?}: one number for each axis",
                self.stride,
                self.low,
                self.high,
                self.dilation
            ));
        }
        if self.stride.contains(&0) || self.dilation.contains(&0) || k.contains(&0) {
            return Err(err!(
                Shape,
                "size {k:?}, stride {:?} and dilation {:?} of a window are at least 1",
                self.stride,
                self.dilation
            ));
        }
        if given.into_iter().flat_map(|s| s.iter()).chain(x).chain(k).any(|&n| n > LARGEST) {
            return Err(err!(Shape, "a window of {k:?} over {x:?} is too large: {self:?}"));
        }
        (0..x.len())
            .map(|a| {
                let (stride, dilation, low) = (self.stride[a], self.dilation[a], self.low[a]);
                let (reach, length) = (dilation * (k[a] - 1) + 1, x[a] + low + self.high[a]);
                if reach > length {
                    return Err(err!(
                        Shape,
                        "the kernel reaches over {reach} elements (size {}, dilation {dilation}), but spatial axis {a} has {length}, of them {} padding: \
                         the input is {x:?}; pad more, or use a smaller kernel",
                        k[a],
                        length - x[a]
                    ));
                }
                Ok(Span { x: x[a], k: k[a], y: (length - reach) / stride + 1, stride, dilation, low })
            })
            .collect()
    }
}

/// What all three check: shapes `[n, c, ..]`, `[o, c / groups, ..]` and `[n, o, ..]` that belong together.
fn geometry(window: &Window, groups: usize, x: &[usize], k: &[usize]) -> Result<Geometry> {
    let axes = window.stride.len();
    if !(1..=3).contains(&axes) || x.len() != axes + 2 || k.len() != axes + 2 {
        return Err(err!(
            Shape,
            "takes an input [images, channels, ..] and a kernel [outputs, channels / groups, ..] with one to three spatial axes each, \
             {axes} of them here; got {x:?} and {k:?}"
        ));
    }
    if groups == 0 || !x[1].is_multiple_of(groups) || !k[0].is_multiple_of(groups) || x[1] / groups != k[1] {
        return Err(err!(
            Shape,
            "an input of {x:?} has {} channels and a kernel of {k:?} takes {} in each of {groups} groups: the second axis of the kernel is the \
             input's over the groups, and the first is a multiple of the groups",
            x[1],
            k[1]
        ));
    }
    let all = window.spans(&x[2..], &k[2..])?;
    let mut spans = [Span::NONE; 3];
    spans[3 - axes..].copy_from_slice(&all);
    Ok(Geometry { images: x[0], groups, inputs: k[1], outputs: k[0] / groups, spans })
}

/// The shape of the output.
fn output(g: &Geometry, axes: usize) -> Shape {
    [g.images, g.groups * g.outputs].into_iter().chain(g.spans[3 - axes..].iter().map(|s| s.y)).collect()
}

fn two_floats(x: &[Arg]) -> Result<()> {
    if !x[0].dtype.is_float() {
        return Err(needs_float(x[0].dtype));
    }
    if x[0].dtype != x[1].dtype {
        return Err(err!(DType, "takes floats of one type, got {} and {}", x[0].dtype, x[1].dtype));
    }
    Ok(())
}

/// The output's cotangent has to be that of such a convolution.
fn check_output(g: &Geometry, window: &Window, y: &Shape) -> Result<()> {
    let expected = output(g, window.stride.len());
    if *y != expected {
        return Err(err!(Shape, "a convolution with this window gives {expected:?}, not {y:?}"));
    }
    Ok(())
}

/// With the lanes, the first axis, as part of another one: that has `groups` parts, and each of them all lanes.
fn merge(x: &Tensor, axis: usize, groups: usize) -> Tensor {
    let (lanes, shape) = (x.shape()[0], Shape::from(&x.shape()[1..]));
    let apart: Shape = [lanes]
        .into_iter()
        .chain(shape[..axis].iter().copied())
        .chain([groups, shape[axis] / groups])
        .chain(shape[axis + 1..].iter().copied())
        .collect();
    let perm: Axes = (1..axis + 2).chain([0]).chain(axis + 2..apart.len()).collect();
    let to: Shape = shape.iter().enumerate().map(|(k, &n)| if k == axis { n * lanes } else { n }).collect();
    x.reshape_to(&apart).permuted(perm).reshape_to(&to)
}

/// The inverse of [`merge`].
fn split(x: &Tensor, axis: usize, groups: usize, lanes: usize) -> Tensor {
    let shape = Shape::from(x.shape());
    let each = shape[axis] / (groups * lanes);
    let apart: Shape = shape[..axis]
        .iter()
        .copied()
        .chain([groups, lanes, each])
        .chain(shape[axis + 1..].iter().copied())
        .collect();
    let perm: Axes = [axis + 1].into_iter().chain(0..axis + 1).chain(axis + 2..apart.len()).collect();
    let to: Shape = [lanes]
        .into_iter()
        .chain(shape.iter().enumerate().map(|(k, &n)| if k == axis { groups * each } else { n }))
        .collect();
    x.reshape_to(&apart).permuted(perm).reshape_to(&to)
}

/// Lanes of both inputs are groups of their own. Lanes of one are images, or channels that only it has: `first` and `second` say which axis of
/// it takes them, in how many parts, and which axis of the result shows them.
fn batched<P: Primitive>(
    op: &P,
    x: &[Batched],
    n: usize,
    [first, second]: [[(usize, usize); 2]; 2],
    both: ([usize; 2], usize, P),
) -> Result<Tensor> {
    let [a, b] = x else { unreachable!("a convolution has two factors") };
    if n == 0 {
        let one = |l: &Batched| Shape::from(&l.value.shape()[l.mapped as usize..]);
        let shapes = [one(a), one(b)];
        let y = op.infer(&shapes.each_ref().map(|shape| Arg { dtype: a.value.dtype(), shape }))?;
        return Ok(Tensor::zeros_of(y.dtype, y.shape.inserted(0, 0)));
    }
    let lanes_of = |op: &P, a: &Tensor, b: &Tensor, (axis, groups): (usize, usize)| {
        bind(op.clone(), &[a, b]).map(|y| split(&y, axis, groups, n))
    };
    match (a.mapped, b.mapped) {
        (true, false) => lanes_of(op, &merge(&a.value, first[0].0, first[0].1), &b.value, first[1]),
        (false, true) => lanes_of(op, &a.value, &merge(&b.value, second[0].0, second[0].1), second[1]),
        _ => {
            let (axes, axis, op) = both;
            lanes_of(&op, &merge(&a.spread(n)?, axes[0], 1), &merge(&b.spread(n)?, axes[1], 1), (axis, 1))
        }
    }
}

fn bound(op: impl Into<Op>, a: &Tensor, b: &Tensor) -> Tensor {
    bind(op, &[a, b]).expect("shapes were checked by the forward pass")
}

/// The spatial lengths.
fn inner(shape: &[usize]) -> Shape {
    shape[2..].into()
}

/// Multiply-adds count twice, as everywhere: `y` elements, each of a window.
fn flops(y: &[usize], k: &[usize]) -> u64 {
    2 * y.iter().product::<usize>() as u64 * k[1..].iter().product::<usize>() as u64
}

/// `y[n, o, i] = Σ x[n, c, i stride + t dilation - low] k[o, c, t]`: the convolution of `x` by `k`, without flipping, as machine learning has it. With
/// groups an output reads only the channels of its own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Convolve {
    pub window: Window,
    pub groups: usize,
}

impl Primitive for Convolve {
    const NAME: &'static str = "conv";
    const ARITY: Option<usize> = Some(2);
    const CONTRACTION: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        two_floats(x)?;
        let shape =
            output(&geometry(&self.window, self.groups, x[0].shape, x[1].shape)?, self.window.stride.len());
        shape.checked_len()?;
        Ok(Aval { dtype: x[0].dtype, shape })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let g = geometry(&self.window, self.groups, x[0].shape, x[1].shape)?;
        with_float!(x[0].dtype, T => T::convolve(Face::Output, &g, x[0].view(), x[1].view(), out.fill()));
        Ok(())
    }

    fn flops(&self, x: &[&[usize]], y: &[usize]) -> u64 {
        flops(y, x[1])
    }

    /// [`ConvolveInput`] of `g` and the kernel, [`ConvolveKernel`] of `x` and `g`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let Convolve { window, groups } = self.clone();
        smallvec![
            at.needs(0).then(|| {
                bound(
                    ConvolveInput { window: window.clone(), groups, extent: inner(at.shape(0)) },
                    g,
                    at.x(1),
                )
            }),
            at.needs(1).then(|| {
                bound(
                    ConvolveKernel { window: window.clone(), groups, extent: inner(at.shape(1)) },
                    at.x(0),
                    g,
                )
            }),
        ]
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        Uses::inputs((0..2).filter(|&k| needs[1 - k]))
    }

    fn linearity(&self) -> Linearity {
        Linearity::Multilinear
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        let g = self.groups;
        let all = Convolve { groups: g * n, ..self.clone() };
        Some(batched(self, x, n, [[(0, 1), (0, 1)], [(0, g), (1, g)]], ([1, 0], 1, all)))
    }

    fn samples() -> Vec<Sample> {
        let of =
            |c: &Case| Sample::new(Convolve { window: c.window.clone(), groups: c.groups }, c.draws([0, 1]));
        cases().iter().map(of).collect()
    }
}

/// `x[n, c, p] = Σ y[n, o, i] k[o, c, t]` over all `i stride + t dilation - low = p`: the gradient of a convolution's input, which is the transposed
/// convolution.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConvolveInput {
    pub window: Window,
    pub groups: usize,
    /// The spatial lengths of the result.
    pub extent: Shape,
}

impl ConvolveInput {
    fn shape(&self, y: &[usize], k: &[usize]) -> Shape {
        let outer =
            [y.first().copied().unwrap_or(0), k.get(1).copied().unwrap_or(0).saturating_mul(self.groups)];
        outer.into_iter().chain(self.extent.iter().copied()).collect()
    }
}

impl Primitive for ConvolveInput {
    const NAME: &'static str = "conv_input";
    const ARITY: Option<usize> = Some(2);
    const CONTRACTION: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        two_floats(x)?;
        let shape = self.shape(x[0].shape, x[1].shape);
        shape.checked_len()?;
        let g = geometry(&self.window, self.groups, &shape, x[1].shape)?;
        check_output(&g, &self.window, x[0].shape)?;
        Ok(Aval { dtype: x[0].dtype, shape })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let g = geometry(&self.window, self.groups, &self.shape(x[0].shape, x[1].shape), x[1].shape)?;
        with_float!(x[0].dtype, T => T::convolve(Face::Input, &g, x[0].view(), x[1].view(), out.fill()));
        Ok(())
    }

    fn flops(&self, x: &[&[usize]], _: &[usize]) -> u64 {
        flops(x[0], x[1])
    }

    /// [`Convolve`] of `h` by the kernel, [`ConvolveKernel`] of `h` and `g`.
    fn pullback(&self, at: &At, h: &Tensor) -> Cotangents {
        let ConvolveInput { window, groups, .. } = self.clone();
        smallvec![
            at.needs(0).then(|| bound(Convolve { window: window.clone(), groups }, h, at.x(1))),
            at.needs(1).then(|| {
                bound(
                    ConvolveKernel { window: window.clone(), groups, extent: inner(at.shape(1)) },
                    h,
                    at.x(0),
                )
            }),
        ]
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        Uses::inputs((0..2).filter(|&k| needs[1 - k]))
    }

    fn linearity(&self) -> Linearity {
        Linearity::Multilinear
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        let g = self.groups;
        let all = ConvolveInput { groups: g * n, ..self.clone() };
        Some(batched(self, x, n, [[(0, 1), (0, 1)], [(1, 1), (1, g)]], ([1, 0], 1, all)))
    }

    fn samples() -> Vec<Sample> {
        let of = |c: &Case| {
            let extent = inner(&c.shapes[0]);
            Sample::new(ConvolveInput { window: c.window.clone(), groups: c.groups, extent }, c.draws([2, 1]))
        };
        cases().iter().map(of).collect()
    }
}

/// `k[o, c, t] = Σ x[n, c, i stride + t dilation - low] y[n, o, i]`: the gradient of a convolution's kernel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConvolveKernel {
    pub window: Window,
    pub groups: usize,
    /// The spatial lengths of the result.
    pub extent: Shape,
}

impl ConvolveKernel {
    fn shape(&self, x: &[usize], y: &[usize]) -> Result<Shape> {
        if self.groups == 0 || x.len() < 2 || y.len() != x.len() || y[0] != x[0] {
            return Err(err!(
                Shape,
                "takes an input [images, channels, ..] and a cotangent [images, outputs, ..] of at least one group, got {x:?}, {y:?} and {}",
                self.groups
            ));
        }
        Ok([y[1], x[1] / self.groups].into_iter().chain(self.extent.iter().copied()).collect())
    }
}

impl Primitive for ConvolveKernel {
    const NAME: &'static str = "conv_kernel";
    const ARITY: Option<usize> = Some(2);
    const CONTRACTION: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        two_floats(x)?;
        let shape = self.shape(x[0].shape, x[1].shape)?;
        shape.checked_len()?;
        let g = geometry(&self.window, self.groups, x[0].shape, &shape)?;
        check_output(&g, &self.window, x[1].shape)?;
        Ok(Aval { dtype: x[0].dtype, shape })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let g = geometry(&self.window, self.groups, x[0].shape, &self.shape(x[0].shape, x[1].shape)?)?;
        with_float!(x[0].dtype, T => T::convolve(Face::Kernel, &g, x[0].view(), x[1].view(), out.fill()));
        Ok(())
    }

    fn flops(&self, x: &[&[usize]], k: &[usize]) -> u64 {
        flops(x[1], k)
    }

    /// [`ConvolveInput`] of `g` and `h`, [`Convolve`] of `x` by `h`.
    fn pullback(&self, at: &At, h: &Tensor) -> Cotangents {
        let ConvolveKernel { window, groups, .. } = self.clone();
        smallvec![
            at.needs(0).then(|| {
                bound(
                    ConvolveInput { window: window.clone(), groups, extent: inner(at.shape(0)) },
                    at.x(1),
                    h,
                )
            }),
            at.needs(1).then(|| bound(Convolve { window: window.clone(), groups }, at.x(0), h)),
        ]
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        Uses::inputs((0..2).filter(|&k| needs[1 - k]))
    }

    fn linearity(&self) -> Linearity {
        Linearity::Multilinear
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        let g = self.groups;
        let all = ConvolveKernel { groups: g * n, ..self.clone() };
        Some(batched(self, x, n, [[(1, g), (1, 1)], [(1, g), (0, g)]], ([1, 1], 0, all)))
    }

    fn samples() -> Vec<Sample> {
        let of = |c: &Case| {
            let extent = inner(&c.shapes[1]);
            Sample::new(
                ConvolveKernel { window: c.window.clone(), groups: c.groups, extent },
                c.draws([0, 2]),
            )
        };
        cases().iter().map(of).collect()
    }
}

/// What all three are tested with: a window, groups, and the shapes of input, kernel and output.
#[cfg_attr(not(test), allow(dead_code, reason = "only samples are made of them"))]
struct Case {
    window: Window,
    groups: usize,
    shapes: [Shape; 3],
}

#[cfg_attr(not(test), allow(dead_code, reason = "only samples are made of them"))]
impl Case {
    fn draws(&self, which: [usize; 2]) -> [Draw; 2] {
        which.map(|k| Draw::new(Domain::any, &self.shapes[k]))
    }
}

#[cfg_attr(not(test), allow(dead_code, reason = "only samples are made of them"))]
fn cases() -> Vec<Case> {
    let of = |x: &[usize], k: &[usize], groups: usize, window: Window| {
        let g = geometry(&window, groups, x, k).expect("a sample fits");
        let y = output(&g, window.stride.len());
        Case { window, groups, shapes: [x.into(), k.into(), y] }
    };
    let window = |stride: &[usize], low: &[usize], high: &[usize], dilation: &[usize]| Window {
        stride: stride.into(),
        low: low.into(),
        high: high.into(),
        dilation: dilation.into(),
    };
    vec![
        of(&[2, 2, 5], &[3, 2, 3], 1, Window::dense(1)),
        of(&[1, 1, 6], &[2, 1, 2], 1, window(&[2], &[1], &[2], &[2])),
        of(&[2, 2, 3, 4], &[2, 2, 2, 2], 1, window(&[1, 2], &[1, 0], &[0, 1], &[1, 1])),
        of(&[1, 4, 3, 3], &[4, 2, 2, 1], 2, window(&[1, 1], &[0, 1], &[0, 0], &[2, 1])),
        of(&[1, 3, 4, 3], &[3, 1, 2, 2], 3, window(&[3, 1], &[2, 0], &[2, 0], &[1, 1])),
        of(&[1, 1, 2, 3, 2], &[2, 1, 2, 2, 1], 1, window(&[1, 1, 1], &[0, 1, 0], &[0, 0, 1], &[1, 1, 1])),
        of(&[2, 1, 3, 3], &[1, 1, 1, 1], 1, window(&[2, 2], &[0, 0], &[0, 0], &[1, 1])),
        of(&[0, 2, 3], &[2, 2, 2], 1, Window::dense(1)),
    ]
}
