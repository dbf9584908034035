//! Every primitive operation, each defined once: its name, shape rule, kernel, pullback and test samples.
//!
//! To add one: write its struct and `impl Primitive` in a file here (or a row in the [table](pullback_table)), and name it in the
//! list at the end of this file. Everything else is derived from that list.

mod attention;
mod attribute;
mod bitwise;
mod cast;
mod compare;
mod complex;
mod conv;
mod cross_entropy;
mod distribution;
mod dot;
mod elementwise;
#[cfg(feature = "fft")]
mod fourier;
mod incomplete;
mod index;
mod index_map;
mod index_put;
mod layout;
#[cfg(feature = "linalg")]
mod linalg;
mod logic;
mod norm;
mod order;
mod pool;
mod random;
mod reduce;
#[cfg_attr(not(test), allow(dead_code, reason = "only tests draw from them"))]
mod sample;
mod scan;
mod segment;
mod slice;
mod softmax;
mod sparse;
mod windows;

#[cfg(test)]
mod conformance;
#[cfg(test)]
pub(crate) mod fault;
#[cfg(test)]
mod page;

#[cfg(feature = "fft")]
pub(crate) use fourier::*;
pub(crate) use {
    attention::*, attribute::*, bitwise::*, cast::*, compare::*, complex::*, conv::*, cross_entropy::*,
    distribution::*, dot::*, elementwise::*, incomplete::*, index::*, index_map::*, index_put::*, layout::*,
    logic::*, norm::*, order::*, pool::*, random::*, reduce::*, sample::*, scan::*, segment::*, slice::*,
    softmax::*, sparse::*, windows::*,
};

#[cfg(feature = "linalg")]
pub(crate) use linalg::*;

use crate::DType;
use crate::error::{Result, or_panic};
use crate::kernels::in_rows::RowKernel;
use crate::shape::Shape;
use crate::tape::{At, Cotangents, Level, Seeds, Uses, Walk, leaf_cotangents, pull};
use crate::tensor::{Block, Layout, Output, Tensor, Value, bind};
pub(crate) use pullback_table::Linearity;
use pullback_table::elementwise_table;
use smallvec::SmallVec;
use std::sync::Arc;

/// The type of a tensor without its value.
#[derive(Clone, PartialEq)]
pub(crate) struct Aval {
    pub dtype: DType,
    pub shape: Shape,
}

/// An input's type, borrowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arg<'a> {
    pub dtype: DType,
    pub shape: &'a Shape,
}

/// An input under `vmap`.
#[derive(Clone)]
pub(crate) struct Batched {
    pub value: Tensor,
    /// The first axis of the value is that of the lanes; otherwise all lanes have this value.
    pub mapped: bool,
}

impl Batched {
    /// The value with an axis of lanes, whether it has one or not. Repeating costs nothing.
    pub fn spread(&self, n: usize) -> Result<Tensor> {
        if self.mapped {
            return Ok(self.value.clone());
        }
        let shape = self.value.node().shape.inserted(0, n);
        self.value.try_unsqueeze(0)?.try_broadcast_to(shape)
    }

    /// The batching rule of operations that take another axis in front as they are.
    pub fn bind_all(op: impl Into<Op>, x: &[Batched], n: usize) -> Result<Tensor> {
        let all: SmallVec<[Tensor; 2]> = x.iter().map(|l| l.spread(n)).collect::<Result<_>>()?;
        bind(op, &all.iter().collect::<SmallVec<[&Tensor; 2]>>())
    }
}

/// One operation.
pub(crate) trait Primitive: Clone + PartialEq + std::fmt::Debug + Into<Op> {
    const NAME: &'static str;

    /// How many inputs it takes; `None` for one or more.
    const ARITY: Option<usize> = Some(1);

    /// Whether it computes nothing: the result is the input seen another way, and needs neither work nor memory. Such an operation has
    /// a [`view`](Primitive::view) of every row-major input.
    const VIEW: bool = false;

    /// Whether it multiplies elements and adds the products along axes, as a matrix product does. Of all operations these cost the most: a
    /// checkpoint may keep their results.
    const CONTRACTION: bool = false;

    /// The name of its kernel joined with what is done to its result, if [`in_rows`](Primitive::in_rows) makes that some rows at a time.
    const JOINED: Option<&'static str> = None;

    /// Whether each element of the result depends on a whole row of the operands, which have the shape of the result.
    const ROWWISE: bool = false;

    /// Whether it takes further axes in front of all inputs as a batch, so that the lanes of a `vmap` are one more of them.
    const LEADING_BATCH: bool = false;

    /// The type of the result. All errors about arguments are found here.
    fn infer(&self, x: &[Arg]) -> Result<Aval>;

    /// Computes the result. Fails only on what `infer` could not see: values.
    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()>;

    /// Lets `f` have the kernel for these operands of f32 or f64, none of them empty, as one that makes the result some rows at a time.
    fn in_rows(&self, _x: &[Value], _f: &mut dyn FnMut(RowKernel)) {
        unreachable!("{} does not make its result in rows", Self::NAME)
    }

    /// Which reduction it is of its one operand, and over which axes, which are dropped; `None` if it is not one.
    fn reduction(&self) -> Option<(Reduction, &[usize])> {
        None
    }

    /// Whether it only moves elements, and how. A view whose axes have no [maps](Primitive::axis_map) has the same elements in the same order.
    fn movement(&self) -> Option<Movement> {
        Self::VIEW.then_some(Movement::View)
    }

    /// Which elements of operand `k` stand along an axis of the result, of operands of these shapes; `None` where the elements are not
    /// moved axis by axis.
    fn axis_map(&self, _x: &[&[usize]], _k: usize, _axis: usize) -> Option<AxisMap> {
        None
    }

    /// The result as another view of the input's elements, of which the shape and layout are given. `None` where the elements have to
    /// be moved or computed.
    fn view(&self, _shape: &[usize], _offset: usize, _strides: &[isize]) -> Option<Layout> {
        None
    }

    /// Whether the kernel can put a result of this type into the memory of this input, which has the same type and shape
    /// ([`Output::overwritten`]). It does not fail then.
    fn overwrites(&self, _input: usize, _dtype: DType) -> bool {
        false
    }

    /// What one application costs, in additions, from the shapes of the inputs and the output. An element that is only moved
    /// counts as one.
    fn flops(&self, x: &[&[usize]], y: &[usize]) -> u64 {
        let numel = |s: &&[usize]| s.iter().product::<usize>();
        x.iter().chain([&y]).map(numel).max().unwrap_or(0) as u64
    }

    /// The same value, to the bit, from simpler operations, where it has such a formula.
    fn formula(&self, _x: &[Tensor]) -> Option<Tensor> {
        None
    }

    /// Cotangents of the inputs from that of the output, in differentiable operations only, and linear in `g`. Positions and truth values carry
    /// none: operations that give them have no pullback.
    fn pullback(&self, _at: &At, _g: &Tensor) -> Cotangents {
        unreachable!("a result of {} carries no cotangent", Self::NAME)
    }

    /// The primal values that the pullback reads when the cotangents of `needs` are wanted.
    fn uses(&self, _needs: &[bool]) -> Uses {
        Uses::NOTHING
    }

    fn linearity(&self) -> Linearity {
        Linearity::Nonlinear
    }

    /// The tangent of the output. Derived: an operation overrides it only for speed.
    fn pushforward(&self, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> {
        derived_pushforward(&self.clone().into(), at, t)
    }

    /// Whether each element of the result is computed from the elements at its own place of the inputs, which have the shape of the result.
    fn elementwise(&self) -> bool {
        false
    }

    /// Whether it gives the same bits with its two inputs in the other order.
    fn commutes(&self) -> bool {
        false
    }

    /// Whether nothing is differentiated through it.
    fn stops_gradient(&self) -> bool {
        false
    }

    /// The operation on `n` lanes at once, which lie along the first axis of the inputs that are mapped and of the result.
    /// `None` asks for one lane after the other, which is always right and slow.
    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Self::LEADING_BATCH.then(|| Batched::bind_all(self.clone(), x, n))
    }

    /// Inputs to test it with. An operation without samples is not tested, and does not pass.
    #[cfg_attr(not(test), allow(dead_code, reason = "only tests draw from them"))]
    fn samples() -> Vec<Sample>;
}

/// The tangent of the output, from the operation's linearity or its pullback.
fn derived_pushforward(op: &Op, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> {
    match op.linearity() {
        Linearity::Linear => {
            // Inputs that are not differentiable (masks, indices) stay what they are.
            let fixed = |k: usize| match at.dtype(k).is_differentiable() {
                true => Tensor::zeros_of(at.dtype(k), at.shape(k)),
                false => at.x(k).clone(),
            };
            let all: Vec<Tensor> =
                t.iter().enumerate().map(|(k, t)| t.clone().unwrap_or_else(|| fixed(k))).collect();
            bind(op.clone(), &all.iter().collect::<Vec<_>>())
        }
        Linearity::Multilinear => {
            let mut sum: Option<Tensor> = None;
            for (k, t) in t.iter().enumerate() {
                let Some(t) = t else { continue };
                let args: Vec<&Tensor> = (0..at.arity()).map(|j| if j == k { t } else { at.x(j) }).collect();
                let term = bind(op.clone(), &args)?;
                sum = Some(match sum {
                    Some(s) => s + term,
                    None => term,
                });
            }
            Ok(sum.expect("a pushforward has at least one tangent"))
        }
        // The transpose of the pullback, which is linear in its cotangent.
        Linearity::Nonlinear => transpose(|g| op.rule(at, g), at.y(), t),
    }
}

/// `Jt` from `g -> Jᵀg`, by pulling `<Jᵀg, t>` back to `g`.
fn transpose(rule: impl Fn(&Tensor) -> Cotangents, y: &Tensor, t: &[Option<Tensor>]) -> Result<Tensor> {
    let level = Level::new();
    // Where y is: what a rule makes of one number repeated would be on the host.
    let g = Tensor::ones_of(y.dtype(), y.node().shape.clone()).to(&y.device()).leaf(level.id());
    let mut seeds = Seeds::new();
    for (ct, t) in rule(&g).into_iter().zip(t) {
        if let (Some(ct), Some(t)) = (ct, t)
            && ct.node().deps.contains(level.id())
        {
            seeds.push((ct.link(), t.clone()));
        }
    }
    let mut dy = None;
    pull(level.id(), seeds, |link, total| {
        if link.node().id == g.node().id {
            dy = Some(total.clone());
        }
        Ok(Walk::On)
    })?;
    Ok(dy.unwrap_or_else(|| Tensor::zeros_of(y.dtype(), &y.node().shape)))
}

/// The pullback of an operation that is seldom differentiated (the pullback of another one, say) by a formula for it in other operations: computed
/// again on leaves of a level of its own, and walked back.
fn pulled(at: &At, g: &Tensor, formula: impl FnOnce(&[Tensor]) -> Tensor) -> Cotangents {
    let level = Level::new();
    let leaf = |k: usize| if at.needs(k) { at.x(k).leaf(level.id()) } else { at.x(k).clone() };
    let inputs: Vec<Tensor> = (0..at.arity()).map(leaf).collect();
    let y = formula(&inputs);
    let mut seeds = Seeds::new();
    if y.node().deps.contains(level.id()) {
        seeds.push((y.link(), g.clone()));
    }
    drop(y);
    let mut found = or_panic(leaf_cotangents(level.id(), seeds));
    inputs.iter().map(|t| found.remove(&t.node().id)).collect()
}

/// The rows of the elementwise table, and those that are listed. What needs a feature has its `#[cfg(..)]` in front.
macro_rules! primitives {
    ({ $($listed:tt)* } $($(#[$doc:meta])* $P:ident $m:ident $try:ident $x:tt = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        primitives! { @all $($P,)* $($listed)* }
    };
    (@all $($(#[$cfg:meta])? $P:ident $({ $($field:ident),+ })?),* $(,)?) => {
        /// Any operation.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) enum Op {
            $($(#[$cfg])? $P($P),)*
            /// An operation of several outputs.
            Block(Arc<dyn Block>),
            /// One output of a block.
            Slot(usize),
        }
        $($(#[$cfg])? impl From<$P> for Op {
            fn from(p: $P) -> Op { Op::$P(p) }
        })*
        impl Op {
            /// The names of all operations.
            #[cfg(test)]
            pub const NAMES: &[&str] = &[$($(#[$cfg])? $P::NAME),*];
            pub fn name(&self) -> &'static str { match self { $($(#[$cfg])? Op::$P(_) => $P::NAME,)* Op::Block(b) => b.name(), Op::Slot(_) => "output" } }
            /// Its static parameters.
            pub fn attributes(&self) -> Attrs {
                let mut attrs = Attrs::default();
                match self {
                    $($(#[$cfg])? Op::$P(p) => { let _ = p; $($(attrs.put(stringify!($field), &p.$field);)+)? })*
                    Op::Block(_) => {}
                    Op::Slot(k) => attrs.put("slot", k),
                }
                attrs
            }
            /// The operation of a name with its parameters; `None` if there is none of that name.
            pub fn build(name: &str, attrs: &mut Attrs) -> Result<Option<Op>> {
                $($(#[$cfg])? if name == $P::NAME {
                    return Ok(Some(Op::$P($P { $($($field: attrs.take(stringify!($field))?),+)? })));
                })*
                let _ = attrs;
                Ok(None)
            }
            /// How many inputs it takes; `None` for one or more.
            pub fn arity(&self) -> Option<usize> { match self { $($(#[$cfg])? Op::$P(_) => $P::ARITY,)* _ => None } }
            pub fn infer(&self, x: &[Arg]) -> Result<Aval> { match self { $($(#[$cfg])? Op::$P(p) => p.infer(x),)* _ => block_only() } }
            pub fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> { match self { $($(#[$cfg])? Op::$P(p) => p.eval(x, out),)* _ => block_only() } }
            pub fn is_view(&self) -> bool { match self { $($(#[$cfg])? Op::$P(_) => $P::VIEW,)* _ => false } }
            pub fn movement(&self) -> Option<Movement> { match self { $($(#[$cfg])? Op::$P(p) => p.movement(),)* _ => None } }
            pub fn axis_map(&self, x: &[&[usize]], k: usize, axis: usize) -> Option<AxisMap> { match self { $($(#[$cfg])? Op::$P(p) => p.axis_map(x, k, axis),)* _ => None } }
            pub fn view(&self, shape: &[usize], offset: usize, strides: &[isize]) -> Option<Layout> { match self { $($(#[$cfg])? Op::$P(p) => p.view(shape, offset, strides),)* _ => None } }
            pub fn overwrites(&self, input: usize, dtype: DType) -> bool { match self { $($(#[$cfg])? Op::$P(p) => p.overwrites(input, dtype),)* _ => false } }
            pub fn is_contraction(&self) -> bool { match self { $($(#[$cfg])? Op::$P(_) => $P::CONTRACTION,)* _ => false } }
            pub fn is_rowwise(&self) -> bool { match self { $($(#[$cfg])? Op::$P(_) => $P::ROWWISE,)* _ => false } }
            pub fn joined_name(&self) -> Option<&'static str> { match self { $($(#[$cfg])? Op::$P(_) => $P::JOINED,)* _ => None } }
            pub fn in_rows(&self, x: &[Value], f: &mut dyn FnMut(RowKernel)) { match self { $($(#[$cfg])? Op::$P(p) => p.in_rows(x, f),)* _ => block_only() } }
            pub fn reduction(&self) -> Option<(Reduction, &[usize])> { match self { $($(#[$cfg])? Op::$P(p) => p.reduction(),)* _ => None } }
            pub fn flops(&self, x: &[&[usize]], y: &[usize]) -> u64 { match self { $($(#[$cfg])? Op::$P(p) => p.flops(x, y),)* _ => block_only() } }
            pub fn formula(&self, x: &[Tensor]) -> Option<Tensor> { match self { $($(#[$cfg])? Op::$P(p) => p.formula(x),)* _ => None } }
            pub fn uses(&self, needs: &[bool]) -> Uses { match self { $($(#[$cfg])? Op::$P(p) => p.uses(needs),)* _ => block_only() } }
            pub fn linearity(&self) -> Linearity { match self { $($(#[$cfg])? Op::$P(p) => p.linearity(),)* _ => block_only() } }
            pub fn elementwise(&self) -> bool { match self { $($(#[$cfg])? Op::$P(p) => p.elementwise(),)* _ => false } }
            fn rule(&self, at: &At, g: &Tensor) -> Cotangents { match self { $($(#[$cfg])? Op::$P(p) => p.pullback(at, g),)* _ => block_only() } }
            pub fn pushforward(&self, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> { match self { $($(#[$cfg])? Op::$P(p) => p.pushforward(at, t),)* _ => block_only() } }
            pub fn commutes(&self) -> bool { match self { $($(#[$cfg])? Op::$P(p) => p.commutes(),)* _ => false } }
            pub fn stops_gradient(&self) -> bool { match self { $($(#[$cfg])? Op::$P(p) => p.stops_gradient(),)* _ => false } }
            fn batch_rule(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> { match self { $($(#[$cfg])? Op::$P(p) => p.batch(x, n),)* _ => block_only() } }
            /// The samples of every operation, and those with complex numbers of operations that take them.
            #[cfg(test)]
            pub fn samples() -> Vec<Sample> {
                let mut all = Vec::new();
                $($(#[$cfg])? all.extend($P::samples());)*
                // Behind all others, of which none is drawn otherwise for them.
                let complex: Vec<Sample> = all.iter().filter_map(Sample::complex).collect();
                all.extend(complex);
                all
            }
        }
    };
}

/// Blocks have their own way through `bind_block`.
fn block_only() -> ! {
    unreachable!("an operation of several outputs is not bound like one of a single output")
}

impl Op {
    #[cfg(not(test))]
    pub fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        self.rule(at, g)
    }

    /// In tests a fault can be put into any rule, to see that the laws find it.
    #[cfg(test)]
    pub fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        fault::apply(self, at, g, |op| op.rule(at, g))
    }

    #[cfg(not(test))]
    pub fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        self.batch_rule(x, n)
    }

    #[cfg(test)]
    pub fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        fault::apply_batch(self, |op| op.batch_rule(x, n))
    }
}

elementwise_table! { primitives {
    Identity, StopGradient, Clamp { low, high }, Cast { to }, MakeComplex, Real, Imag, Conj, Compare { relation }, Where, Logic { connective }, Not, Bitwise { operation },
    GammaInc { upper, order }, BetaInc { by_a, by_b },
    Sum { axes }, Max { axes }, Min { axes }, ArgExtreme { axes, largest }, Truth { axes, every }, LogSumExp { axes },
    Reshape { to }, Permute { perm }, Broadcast { to }, Slice { region }, SliceAssign { region }, Concat { axis },
    Gather { axis }, ScatterAdd { axis }, IndexSelect { axis }, IndexAdd { axis }, IndexPut { axis, rule }, FlatIndex { shape }, Earlier { n },
    Windows { axis, size, step },
    Cumulative { axis, of, reverse }, LinearScan { axis, reverse }, CumExtreme { axis, largest },
    ArgSort { axis, descending }, TopK { axis, k, largest }, SearchSorted { right }, SegmentExtreme { segments, largest },
    Convolve { window, groups }, ConvolveInput { window, groups, extent }, ConvolveKernel { window, groups, extent }, PoolArgMax { size, window },
    Dot, Softmax, SoftmaxPullback, LogSoftmax, LogSoftmaxPullback,
    CrossEntropy { smoothing }, CrossEntropyPullback { smoothing }, SoftCrossEntropy, SoftCrossEntropyPullback,
    LayerNorm { eps, centred }, LayerNormPullback { eps, centred },
    Attention { scale, causal, dropout }, AttentionPullback { scale, causal, dropout },
    SparseDot { rows }, SampledDot,
    Uniform { dtype, shape }, Randn { dtype, shape }, TruncatedNormal { low, high, dtype, shape },
    LogGammaDraw { order }, Poisson, Randint { low, high, shape }, Bernoulli { p, shape }, Permutation { n }, FoldIn,
    #[cfg(feature = "linalg")] TriangularPart { upper, strict },
    #[cfg(feature = "linalg")] TriangularSolve { upper, unit },
    #[cfg(feature = "linalg")] Solve,
    #[cfg(feature = "linalg")] Inv { fails },
    #[cfg(feature = "linalg")] Det,
    #[cfg(feature = "linalg")] Cofactor,
    #[cfg(feature = "linalg")] Slogdet,
    #[cfg(feature = "linalg")] Cholesky,
    #[cfg(feature = "linalg")] Lu,
    #[cfg(feature = "linalg")] Qr,
    #[cfg(feature = "linalg")] Eigh { vectors },
    #[cfg(feature = "linalg")] Svd { vectors },
    #[cfg(feature = "linalg")] Pinv { rtol },
    #[cfg(feature = "linalg")] Lstsq,
    #[cfg(feature = "linalg")] MatrixExp,
    #[cfg(feature = "fft")] Fft { axes, inverse, scale }, #[cfg(feature = "fft")] Rfft { scale }, #[cfg(feature = "fft")] Irfft { n, scale },
} }
