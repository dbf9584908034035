//! A `try_` form returns an error and never panics, whatever it is given: every one of them is called with hostile arguments.

use pullback::scalar::{Function, Real};
use pullback::{
    Attention, AxisRange, Between, Complex, Conv, CrossEntropy, CustomOp, Device, Ellipsis, IndexItem,
    Interpolation, NewAxis, Norm, PadMode, Pool, Sparse, prelude::*, try_attention, try_custom_op,
    try_einsum, try_grad_of, try_trace,
};
use pullback_testing::Dice;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Draws arguments, the same ones each time.
struct Draw(Dice);

impl Draw {
    fn some<T>(&mut self, most: usize, mut one: impl FnMut(&mut Draw) -> T) -> Vec<T> {
        (0..self.0.roll(most + 1)).map(|_| one(self)).collect()
    }

    fn axis(&mut self) -> isize {
        self.0.pick(&[
            isize::MIN,
            isize::MIN + 1,
            -65,
            -3,
            -2,
            -1,
            0,
            0,
            1,
            1,
            2,
            3,
            64,
            isize::MAX - 1,
            isize::MAX,
        ])
    }

    /// A length that can be had at once, or never: more bytes than processors address.
    fn len(&mut self) -> usize {
        self.0.pick(&[
            0,
            1,
            2,
            2,
            3,
            3,
            6,
            1 << 50,
            isize::MAX as usize,
            usize::MAX / 2 + 1,
            usize::MAX - 1,
            usize::MAX,
        ])
    }

    fn norm(&mut self) -> Norm {
        let norm = Norm::new().eps(self.number());
        match self.0.roll(4) {
            0 => norm,
            1 => norm.axes(self.len()),
            2 => norm.weight(&self.tensor()),
            _ => norm.weight(&self.tensor()).bias(&self.tensor()).axes(self.0.roll(3)),
        }
    }

    fn lens(&mut self) -> Vec<usize> {
        if self.0.roll(20) == 0 { vec![1; 63 + self.0.roll(4)] } else { self.some(4, Draw::len) }
    }

    fn axes(&mut self) -> Vec<isize> {
        self.some(4, Draw::axis)
    }

    fn number(&mut self) -> f64 {
        self.0.pick(&[
            0.0,
            -0.0,
            1.0,
            -1.5,
            1e300,
            f64::MIN_POSITIVE,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ])
    }

    fn integer(&mut self) -> i64 {
        self.0.pick(&[0, 1, 2, -1, -3, 5, i64::MIN, i64::MIN + 1, i64::MAX - 512, i64::MAX])
    }

    fn dtype(&mut self) -> DType {
        use DType::*;
        self.0.pick(&[F64, F64, F64, F32, F16, BF16, I64, I32, U8, Bool, C64, C128])
    }

    fn range(&mut self) -> AxisRange {
        let (a, b) = (self.axis(), self.axis());
        match self.0.roll(6) {
            0 => AxisRange::from(a),
            1 => AxisRange::from(a..),
            2 => AxisRange::from(..),
            3 => AxisRange::from(NewAxis),
            4 => AxisRange::from(a..=b),
            _ => AxisRange::from(a..b).step(self.0.pick(&[isize::MIN, -2, -1, 0, 1, 2, isize::MAX])),
        }
    }

    fn pad(&mut self) -> PadMode {
        self.0.pick(&[
            PadMode::Constant(1.5),
            PadMode::Reflect,
            PadMode::Symmetric,
            PadMode::Edge,
            PadMode::Wrap,
        ])
    }

    /// Mostly a small number.
    fn small(&mut self) -> usize {
        if self.0.roll(6) == 0 { self.len() } else { 1 + self.0.roll(2) }
    }

    fn conv(&mut self) -> Conv {
        let options = Conv::new().stride(self.small()).dilation(self.small()).groups(self.small());
        match self.0.roll(4) {
            0 => options.same(),
            1 => options.causal(),
            2 => options.padding(self.small()).output_padding(&self.lens()[..]),
            _ => options.stride(&self.lens()[..]),
        }
    }

    fn pool(&mut self) -> Pool {
        let pool = Pool::new(self.small()).stride(self.small()).padding(self.small() / 2);
        match self.0.roll(4) {
            0 => pool.ceil().exclude_padding(),
            1 => pool.ceil().dilation(self.small()),
            2 => pool.exclude_padding(),
            _ => Pool::new(&self.lens()[..]),
        }
    }

    /// An input or a kernel of a convolution.
    fn image(&mut self) -> Tensor {
        let shape: Vec<usize> = (0..3 + self.0.roll(3)).map(|_| self.0.roll(4)).collect();
        Tensor::ones(shape).cast(self.dtype())
    }

    fn items(&mut self) -> Vec<IndexItem<'static>> {
        self.some(4, |d| match d.0.roll(4) {
            0 => d.tensor().into(),
            1 => Tensor::from(d.some(3, |d| d.0.roll(3) as i64)).into(),
            2 if d.0.roll(3) == 0 => Ellipsis.into(),
            _ => d.range().into(),
        })
    }

    /// A tensor that takes no time to work through.
    fn tensor(&mut self) -> Tensor {
        let shape = match self.0.roll(14) {
            10 => vec![2, 0, 3],
            11 => vec![9, 0],
            0 => vec![],
            1 => vec![0],
            2 => vec![1],
            3 => vec![3],
            4 => vec![0, 3],
            5 => vec![3, 0, 2],
            6 => vec![2, 1, 3],
            7 => vec![2, 2, 3, 1, 2],
            8 => vec![1; 62 + self.0.roll(3)],
            9 => vec![3, 3],
            _ => vec![2, 3],
        };
        let n = shape.iter().product::<usize>();
        let dtype = self.dtype();
        let x = match dtype.is_differentiable() {
            true => Tensor::from((0..n).map(|_| self.number()).collect::<Vec<f64>>()),
            false => Tensor::from((0..n).map(|_| self.integer()).collect::<Vec<i64>>()),
        };
        let x = x.cast(dtype).reshape(shape.clone());
        let x = match (self.0.roll(6), shape.len()) {
            (0, 2..) => x.transpose(0, -1),
            (1, 1..) => x.flip(-1),
            (2, 1..) => x.slice(AxisRange::from(..).step(2)),
            (3, ..60) => x.broadcast_to([&[2], x.shape()].concat()),
            _ => x,
        };
        if dtype.is_differentiable() && self.0.roll(3) == 0 { x.requires_grad() } else { x }
    }

    /// A tensor of any size: repeated numbers and views need no memory.
    fn any(&mut self) -> Tensor {
        match self.0.roll(8) {
            0 => Tensor::zeros([1 << 50]).cast(self.dtype()),
            1 => Tensor::from([1.0, 2.0]).broadcast_to([1 << 30, 1 << 20, 2]),
            _ => self.tensor(),
        }
    }
}

/// A `try_` form, called with arguments that are drawn; the first tensor is given.
type Call = (&'static str, fn(&Tensor, &mut Draw) -> pullback::Result<()>);

fn call(name: &'static str, f: fn(&Tensor, &mut Draw) -> pullback::Result<()>) -> Call {
    (name, f)
}

macro_rules! calls {
    ($($name:ident = |$x:ident, $d:ident| $call:expr;)*) => {
        vec![$(call(stringify!($name), |$x, $d| $call.map(drop))),*]
    };
}

macro_rules! methods {
    ($(($($name:ident)*) $arguments:tt $d:ident;)*) => {
        vec![$($(call(stringify!($name), |x, $d| x.$name $arguments.map(drop))),*),*]
    };
}

macro_rules! rows {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident $x:tt = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        /// The rows of the elementwise table.
        fn rows() -> Vec<Call> {
            vec![$(rows!(@ $try $x)),*]
        }
    };
    (@ $try:ident ($x:ident)) => { call(stringify!($try), |x, _| x.$try().map(drop)) };
    (@ $try:ident ($a:ident, $b:ident)) => { call(stringify!($try), |x, d| x.$try(&d.any()).map(drop)) };
}
pullback_table::elementwise_table!(rows);

/// Transforms of any axes and lengths.
#[cfg(feature = "fft")]
fn fourier() -> Vec<Call> {
    fn any(d: &mut Draw) -> pullback::fft::Transform {
        let t = pullback::fft::over(&d.axes()[..]);
        if d.0.roll(2) == 0 { t.lengths(d.lens()) } else { t }
    }
    calls! {
        try_fft = |x, d| any(d).try_fft(x);
        try_ifft = |x, d| any(d).try_ifft(x);
        try_rfft = |x, d| any(d).try_rfft(x);
        try_irfft = |x, d| any(d).try_irfft(x);
        try_rfft = |x, d| pullback::fft::over(-1).lengths([1 + d.0.roll(7)]).try_rfft(x);
        try_irfft = |x, d| pullback::fft::over(-1).lengths([1 + d.0.roll(7)]).try_irfft(x);
    }
}

#[cfg(not(feature = "fft"))]
fn fourier() -> Vec<Call> {
    Vec::new()
}

/// Forms that cost as much as their result has memory.
fn cheap() -> Vec<Call> {
    let mut all = rows();
    all.extend(fourier());
    all.extend(methods! {
        (try_isnan try_isinf try_isfinite try_signbit try_nan_to_num try_frac try_hardtanh try_selu try_bitwise_not)() _d;
        (try_bessel_j0 try_bessel_j1 try_bessel_y0 try_bessel_y1 try_bessel_i0 try_bessel_i1 try_bessel_i0e try_bessel_i1e)() _d;
        (try_gammainc try_gammaincc try_left_shift try_right_shift try_clamp_min try_clamp_max)(&d.any()) d;
        (try_real try_imag try_conj try_angle try_logical_not try_flatten try_t try_requires_grad try_grad try_item)() _d;
        (try_eq try_ne try_lt try_le try_gt try_ge try_and try_or try_xor)(&d.any()) d;
        (try_squeeze try_unsqueeze try_flip try_get)(d.axis()) d;
    });
    all.extend(calls! {
        try_add = |x, d| x.try_add(d.number());
        try_mul = |x, d| x.try_mul(Complex::new(d.number(), d.number()));
        try_complex = |x, d| Tensor::try_complex(x, d.any());
        try_complex = |x, d| Tensor::try_complex(d.number(), x);
        try_polar = |x, d| Tensor::try_polar(x, d.any());
        try_pow = |x, d| x.try_pow(d.integer());
        try_add_assign = |x, d| x.clone().try_add_assign(d.any());
        try_sub_assign = |x, d| x.clone().try_sub_assign(d.any());
        try_mul_assign = |x, d| x.try_mul(1)?.try_mul_assign(d.any());
        try_div_assign = |x, d| x.clone().try_div_assign(d.any());
        try_rem_assign = |x, d| x.clone().try_rem_assign(d.number());
        try_clamp = |x, d| x.try_clamp(d.number(), d.number());
        try_clamp = |x, d| x.try_clamp(d.any(), d.any());
        try_clamp_min = |x, d| x.try_clamp_min(d.number());
        try_lerp = |x, d| x.try_lerp(d.any(), d.number());
        try_betainc = |x, d| x.try_betainc(d.any(), d.any());
        try_cast = |x, d| x.try_cast(d.dtype());
        try_where = |x, d| Tensor::try_where(&d.any(), x, d.any());
        try_where = |x, d| Tensor::try_where(x, d.number(), d.any());
        try_masked_fill = |x, d| x.try_masked_fill(&d.any(), d.number());
        try_reshape = |x, d| x.try_reshape(d.lens());
        try_reshape = |x, d| x.try_reshape(d.axes());
        try_permute = |x, d| x.try_permute(&d.axes());
        try_transpose = |x, d| x.try_transpose(d.axis(), d.axis());
        try_broadcast_to = |x, d| x.try_broadcast_to(d.lens());
        try_pad = |x, d| x.try_pad(&d.some(3, |d| (d.len(), d.len())), d.number());
        try_pad = |x, d| x.try_pad(&x.shape().iter().map(|_| (d.len(), d.len())).collect::<Vec<_>>(), d.number());
        try_pad = |x, d| x.try_pad(&x.shape().iter().map(|_| (d.0.roll(5), d.0.roll(5))).collect::<Vec<_>>(), d.pad());
        try_pad = |x, d| x.try_pad(&x.shape().iter().map(|_| (d.len(), d.len())).collect::<Vec<_>>(), d.pad());
        try_flip = |x, d| x.try_flip(&d.axes()[..]);
        try_flatten_axes = |x, d| x.try_flatten_axes(d.axis(), d.axis());
        try_swap_axes = |x, d| x.try_swap_axes(d.axis(), d.axis());
        try_move_axis = |x, d| x.try_move_axis(&d.axes()[..], &d.axes()[..]);
        try_roll = |x, d| x.try_roll(d.axis(), d.axis());
        try_tile = |x, d| x.try_tile(&d.lens());
        try_repeat_interleave = |x, d| x.try_repeat_interleave(d.lens(), d.axis());
        try_repeat_interleave = |x, d| x.try_repeat_interleave(d.len(), d.axis());
        try_at_least = |x, d| x.try_at_least(d.len());
        try_rot90 = |x, d| x.try_rot90(d.axis(), d.axis(), d.axis());
        try_hstack = |x, d| Tensor::try_hstack(&[std::slice::from_ref(x), &d.some(3, Draw::tensor)[..]].concat());
        try_vstack = |x, d| Tensor::try_vstack(&[std::slice::from_ref(x), &d.some(3, Draw::tensor)[..]].concat());
        try_meshgrid = |x, d| Tensor::try_meshgrid(&[std::slice::from_ref(x), &d.some(3, Draw::any)[..]].concat());
        try_diagonal = |x, d| x.try_diagonal(d.axis(), d.axis(), d.axis());
        try_diag_embed = |x, d| x.try_diag_embed(d.axis());
        try_diag = |x, d| x.try_diag(d.axis());
        try_tril = |x, d| x.try_tril(d.axis());
        try_triu = |x, d| x.try_triu(d.axis());
        try_unfold = |x, d| x.try_unfold(d.axis(), d.len(), d.len());
        try_repeat = |x, d| x.try_repeat(&d.lens());
        try_repeat = |x, d| x.try_repeat(&x.shape().iter().map(|_| d.len()).collect::<Vec<_>>());
        try_split = |x, d| x.try_split(&d.lens(), d.axis());
        try_narrow = |x, d| x.try_narrow(d.axis(), d.len(), d.len());
        try_slice = |x, d| x.try_slice(d.range());
        try_slice = |x, d| x.try_slice((d.range(), d.range()));
        try_slice = |x, d| x.try_slice((d.range(), d.range(), d.range()));
        try_slice_assign = |x, d| x.clone().try_slice_assign(d.range(), d.tensor());
        try_slice_assign = |x, d| x.clone().try_slice_assign((d.range(), d.range()), d.number());
        try_concat = |x, d| Tensor::try_concat(&[std::slice::from_ref(x), &d.some(3, Draw::tensor)[..]].concat(), d.axis());
        try_stack = |x, d| Tensor::try_stack(&[std::slice::from_ref(x), &d.some(2, Draw::tensor)[..]].concat(), d.axis());
        try_outer = |x, d| x.try_outer(&d.any());
        try_from_slice = |_x, d| Tensor::try_from_slice(&d.some(4, Draw::number), d.lens());
        try_full = |_x, d| Tensor::try_full(d.lens(), d.number());
        try_zeros = |_x, d| Tensor::try_zeros(d.lens());
        try_ones = |_x, d| Tensor::try_ones(d.lens());
        try_eye = |_x, d| Tensor::try_eye(d.len());
        try_eye = |_x, d| Tensor::try_eye(d.lens());
        try_arange = |_x, d| Tensor::try_arange(d.number() * 1e16, d.number() * 1e16, d.0.pick(&[1.0, 0.0, -1.0, f64::NAN]));
        try_arange = |_x, d| Tensor::try_arange(i64::MAX - d.0.roll(2000) as i64, i64::MAX, 1 + d.0.roll(3) as i64);
        try_arange = |_x, d| Tensor::try_arange(d.integer() / 2 * 2, d.integer(), d.0.pick(&[0, i64::MIN, i64::MAX, i64::MAX / 3]));
        try_arange = |_x, d| Tensor::try_arange(d.0.pick(&[0u8, 1, 255]), d.0.pick(&[0u8, 255]), d.0.pick(&[0u8, 1, 254, 255]));
        try_linspace = |_x, d| Tensor::try_linspace(d.number(), d.number(), d.len());
        try_uniform = |_x, d| Tensor::try_uniform(Key::new(1), d.lens(), d.dtype());
        try_randn = |_x, d| Tensor::try_randn(Key::new(1), d.lens(), d.dtype());
        try_randint = |_x, d| Tensor::try_randint(Key::new(1), d.lens(), d.integer(), d.integer());
        try_bernoulli = |_x, d| Tensor::try_bernoulli(Key::new(1), d.lens(), d.number());
        try_permutation = |_x, d| Tensor::try_permutation(Key::new(1), d.len());
        try_choice = |_x, d| Tensor::try_choice(Key::new(1), d.len(), d.len(), d.0.roll(2) == 0);
        try_truncated_normal = |_x, d| Tensor::try_truncated_normal(Key::new(1), d.lens(), d.number(), d.number(), d.dtype());
        try_exponential = |_x, d| Tensor::try_exponential(Key::new(1), d.lens(), d.dtype());
        try_gumbel = |_x, d| Tensor::try_gumbel(Key::new(1), d.lens(), d.dtype());
        try_laplace = |_x, d| Tensor::try_laplace(Key::new(1), d.lens(), d.dtype());
        try_logistic = |_x, d| Tensor::try_logistic(Key::new(1), d.lens(), d.dtype());
        try_cauchy = |_x, d| Tensor::try_cauchy(Key::new(1), d.lens(), d.dtype());
        try_gamma = |x, _d| Tensor::try_gamma(Key::new(1).split_into(2), x);
        try_log_gamma = |x, _d| Tensor::try_log_gamma(Key::new(1), x);
        try_beta = |x, d| Tensor::try_beta(Key::new(1), x, &d.any());
        try_dirichlet = |x, _d| Tensor::try_dirichlet(Key::new(1), x);
        try_poisson = |x, _d| Tensor::try_poisson(Key::new(1), x);
        try_categorical = |x, d| Tensor::try_categorical(Key::new(1), x, d.axis());
        try_categorical_distinct = |x, d| Tensor::try_categorical_distinct(Key::new(1), x, d.len(), d.axis());
        try_coo = |x, d| Sparse::try_coo(x, &d.any(), &d.any(), [d.len(), d.len()]);
        try_csr = |x, d| Sparse::try_csr(x, &d.any(), &d.any(), [d.len(), d.len()]);
        try_matmul = |x, d| {
            let list = Tensor::from(d.some(3, Draw::integer));
            Sparse::try_coo(&list, &list, &list.cast(DType::F64), [d.len(), 3])?.try_matmul(x)
        };
        try_map_with = |x, d| vec![x.clone()].try_map_with(&[&d.some(2, Draw::any)], |a, _| a.clone());
        try_to = |x, _d| x.try_to(&Device::cpu());
        try_to_vec = |x, d| if d.0.roll(2) == 0 { x.try_to_vec::<f64>().map(drop) } else { x.try_to_vec::<bool>().map(drop) };
        try_zip = |x, d| vec![x.clone(), d.any()].try_zip(&d.some(3, Draw::any), |a, _| a.clone());
        try_custom_op = |x, d| try_custom_op(Endless(d.lens()), &[x, &d.any()]);
    });
    all
}

/// Forms that go through the elements of what they are given.
fn thorough() -> Vec<Call> {
    let mut all = methods! {
        (try_sum try_mean try_prod try_max try_min try_any try_all try_logsumexp try_var try_std try_norm try_backward)() _d;
        (try_sum_axes try_mean_axes try_prod_axes try_max_axes try_min_axes try_any_axes try_all_axes try_logsumexp_axes
         try_var_axes try_std_axes try_sum_axes_keep try_mean_axes_keep try_prod_axes_keep try_max_axes_keep
         try_min_axes_keep try_any_axes_keep try_all_axes_keep try_logsumexp_axes_keep try_var_axes_keep try_std_axes_keep)
            (&d.axes()[..]) d;
        (try_sum_axes try_max_axes try_logsumexp_axes try_std_axes try_argmax try_argmin try_softmax try_log_softmax)(d.axis()) d;
        (try_matmul try_dot try_cross_entropy try_backward_with try_inner try_kron try_binary_cross_entropy_with_logits)(&d.tensor()) d;
        (try_layer_norm try_rms_norm try_instance_norm try_batch_norm)(d.norm()) d;
        (try_gather try_index_select try_take try_take_along_axis try_compress)(d.axis(), &d.tensor()) d;
        (try_scatter try_scatter_mul try_scatter_max try_scatter_min)(d.axis(), &d.tensor(), &d.tensor()) d;
        (try_embedding try_masked_select)(&d.tensor()) d;
        (try_nonzero)() _d;
        (try_unbind)(d.axis()) d;
        (try_norm_axes try_norm_axes_keep try_count_nonzero_axes try_count_nonzero_axes_keep try_median_axes try_median_axes_keep)
            (&d.axes()[..]) d;
        (try_count_nonzero try_median try_argmax_all try_argmin_all try_unique)() _d;
        (try_cumsum try_cumprod try_cumlogsumexp try_cummax try_cummin try_sort try_sort_descending try_argsort
         try_argsort_descending)(d.axis()) d;
        (try_topk try_bottomk try_kthvalue)(d.len(), d.axis()) d;
        (try_searchsorted try_searchsorted_right try_histogram)(&d.tensor()) d;
        (try_segment_sum try_segment_mean try_segment_max try_segment_min)(&d.tensor(), d.len()) d;
        (try_scatter_add try_index_add)(d.axis(), &d.tensor(), &d.tensor()) d;
        (try_conv1d try_conv2d try_conv3d try_conv_transpose1d try_conv_transpose2d try_conv_transpose3d)(&d.image(), d.conv()) d;
        (try_max_pool1d try_max_pool2d try_max_pool3d try_max_pool1d_with_indices try_max_pool2d_with_indices
         try_max_pool3d_with_indices try_avg_pool1d try_avg_pool2d try_avg_pool3d)(d.pool()) d;
        (try_lp_pool1d try_lp_pool2d try_lp_pool3d)(d.number(), d.pool()) d;
        (try_adaptive_avg_pool1d try_adaptive_avg_pool2d try_adaptive_avg_pool3d try_adaptive_max_pool1d
         try_adaptive_max_pool2d try_adaptive_max_pool3d)(&d.lens()[..]) d;
    };
    all.extend(calls! {
        try_conv1d = |_x, d| d.image().try_conv1d(&d.image(), d.conv());
        try_conv2d = |_x, d| d.image().try_conv2d(&d.image(), d.conv());
        try_conv3d = |_x, d| d.image().try_conv3d(&d.image(), d.conv());
        try_conv_transpose1d = |_x, d| d.image().try_conv_transpose1d(&d.image(), d.conv());
        try_conv_transpose2d = |_x, d| d.image().try_conv_transpose2d(&d.image(), d.conv());
        try_avg_pool2d = |_x, d| d.image().try_avg_pool2d(d.pool());
        try_max_pool2d = |_x, d| d.image().try_max_pool2d(d.pool());
        try_adaptive_max_pool2d = |_x, d| d.image().try_adaptive_max_pool2d(d.small());
        try_interpolate = |x, d| {
            let how = d.0.pick(&[Interpolation::nearest(), Interpolation::linear().align_corners(), Interpolation::cubic()]);
            x.try_interpolate(d.lens(), how)
        };
        try_gather = |x, d| x.try_gather(d.axis(), &Tensor::from(d.some(3, Draw::integer)));
        try_index_select = |x, d| x.try_index_select(d.axis(), &Tensor::from(d.some(3, Draw::integer)));
        try_scatter = |x, d| x.try_scatter(d.axis(), &x.try_cast(DType::I64)?, d.number());
        try_put = |x, d| x.try_put(&d.tensor(), d.tensor());
        try_one_hot = |_x, d| d.tensor().try_one_hot(d.len(), d.dtype());
        try_chunk = |x, d| x.try_chunk(d.len(), d.axis());
        try_fold = |x, d| x.try_fold(d.axis(), d.len(), d.len());
        try_fold = |x, d| x.try_fold(d.axis(), 1, 5);
        try_index = |x, d| x.try_index(d.items());
        try_set = |x, d| x.at(d.items()).try_set(d.tensor());
        try_set = |x, d| x.at(d.items()).try_set(d.number());
        try_add = |x, d| x.at(d.items()).try_add(d.tensor());
        try_mul = |x, d| x.at(d.items()).try_mul(d.number());
        try_max = |x, d| x.at(d.items()).try_max(d.tensor());
        try_min = |x, d| x.at(d.items()).try_min(d.number());
        try_matmul = |x, d| x.try_matmul(&d.tensor().try_broadcast_to([3, 2])?);
        try_einsum = |x, d| try_einsum(d.0.pick(&["ij,jk->ik", "...,...", "ii,i", "i...,j->...", "ij,ij", "...a,...b->ab", "->", "\u{e9}", ""]), &[x, &d.tensor()]);
        try_einsum = |x, d| try_einsum(d.0.pick(&["ii", "iij->ji", "...", "...ii->...", "ij->", "ab->ba", "a->aa"]), &[x]);
        try_tensordot = |x, d| x.try_tensordot(&d.tensor(), &d.axes()[..], &d.axes()[..]);
        try_tensordot = |x, d| x.try_tensordot(&d.tensor(), d.axis(), d.axis());
        try_cross = |x, d| x.try_cross(&d.tensor(), d.axis());
        try_bilinear = |x, d| x.try_bilinear(&d.tensor(), &d.tensor());
        try_group_norm = |x, d| x.try_group_norm(d.len(), d.norm());
        try_batch_norm_with = |x, d| x.try_batch_norm_with(&d.tensor(), &d.tensor(), d.norm());
        try_cross_entropy_with = |x, d| x.try_cross_entropy_with(&d.tensor(), CrossEntropy::new().smoothing(d.number()).weights(&d.tensor()).mean());
        try_cross_entropy_with = |x, d| x.try_cross_entropy_with(&d.tensor(), CrossEntropy::new().ignore(d.integer()).smoothing(0.5));
        try_weighted_binary_cross_entropy_with_logits = |x, d| x.try_weighted_binary_cross_entropy_with_logits(&d.tensor(), d.tensor());
        try_attention = |x, d| try_attention(x, &d.tensor(), &d.tensor(), Attention::new().mask(&d.tensor()).dropout(d.number(), Key::new(1)));
        try_attention = |x, d| try_attention(x, x, &d.tensor(), Attention::new().scale(d.number()));
        try_attention = |x, d| try_attention(x, x, x, Attention::new().causal().mask(&d.tensor()).dropout(0.5, Key::new(1).split_into(2)));
        try_var_with = |x, d| x.try_var_with(&d.axes()[..], d.number());
        try_std_with = |x, d| x.try_std_with(d.axis(), d.number());
        try_p_norm = |x, d| x.try_p_norm(d.number(), &d.axes()[..]);
        try_quantile = |x, d| x.try_quantile(d.number(), &d.axes()[..]);
        try_quantile_with = |x, d| x.try_quantile_with(d.number().abs(), d.axis(), Between::Nearest);
        try_linear_scan = |x, d| x.try_linear_scan(d.tensor(), d.axis());
        try_linear_scan = |x, d| x.try_linear_scan(d.number(), d.axis());
        try_bincount = |x, d| x.try_bincount(d.len());
        try_segment_max = |x, d| x.try_segment_max(&Tensor::from(d.some(3, Draw::integer)), d.len());
        try_segment_sum = |x, d| x.try_segment_sum(&Tensor::from(vec![0i64; x.shape().first().copied().unwrap_or(0)]), d.len());
        try_histogram = |x, d| x.try_histogram(&Tensor::from(d.some(4, Draw::number)));
        try_backward = |x, _d| x.try_square()?.try_sum()?.try_backward();
        try_grad_of = |x, d| try_grad_of(&x.try_mul(2)?.try_sum()?, &[x, &d.tensor()]);
        try_trace = |x, d| { let other = d.tensor(); try_trace(|x: &Tensor| x.softmax(0) + &other, x) };
        try_call = |x, d| compile(|x: &Tensor| x.softmax(0).matmul(x) + x.sum_axes(-1)).try_call(&if d.0.roll(2) == 0 { x.clone() } else { d.tensor() });
        try_call_owned = |x, _d| compile(|x: &Tensor| x.exp() + x.logsumexp_axes(0)).donate(0).try_call_owned(x.clone());
    });
    all
}

/// An operation of the user's that asks for a result of any shape.
struct Endless(Vec<usize>);

impl CustomOp for Endless {
    type Element = f64;
    fn name(&self) -> &'static str {
        "endless"
    }
    fn infer(&self, _: &[&[usize]]) -> Result<Vec<usize>, String> {
        Ok(self.0.clone())
    }
    fn eval(&self, _: &[&[f64]], _: &[&[usize]], out: &mut [f64]) {
        out.fill(1.0);
    }
    fn pullback(&self, x: &[Tensor], _: &Tensor, _: &Tensor) -> Vec<Tensor> {
        x.iter().map(|x| x.zeros_like()).collect()
    }
}

/// What a form panicked with, if it did.
fn panic_of(f: impl FnOnce()) -> Option<String> {
    let payload = catch_unwind(AssertUnwindSafe(f)).err()?;
    let text = payload.downcast_ref::<String>().cloned();
    Some(text.or_else(|| payload.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default())
}

/// Calls each form with `rounds` draws; the first tensor by `with`, which is told what to do with it.
fn none_panics(
    calls: &[Call],
    first: fn(&mut Draw) -> Tensor,
    rounds: u64,
    with: impl Fn(&Tensor, &mut dyn FnMut(&Tensor)),
) {
    let mut failures = BTreeSet::new();
    for (k, (name, call)) in calls.iter().enumerate() {
        for round in 0..rounds {
            let mut draw = Draw(Dice((k as u64) << 32 | round));
            let x = first(&mut draw);
            let what = format!("{} {:?}", x.dtype(), x.shape());
            if let Some(said) = panic_of(|| with(&x, &mut |x| drop(call(x, &mut draw)))) {
                failures.insert(format!("{name} of {what}: {said}"));
            }
        }
    }
    let shown: Vec<&String> = failures.iter().take(40).collect();
    assert!(failures.is_empty(), "{} calls panicked: {shown:#?}", failures.len());
}

#[test]
fn try_forms_never_panic() {
    none_panics(&cheap(), Draw::any, 60, |x, call| call(x));
    none_panics(&thorough(), Draw::tensor, 60, |x, call| call(x));
}

/// The same with a value that is a pair, that of many lanes, or not known.
#[test]
fn try_forms_never_panic_inside_of_transforms() {
    let all = [cheap(), thorough()].concat();
    let float = |d: &mut Draw| std::iter::repeat_with(|| d.tensor()).find(|x| x.dtype().is_float()).unwrap();
    none_panics(&all, float, 10, |x, call| {
        let call = std::cell::RefCell::new(call);
        let _ = jvp(
            |x: &Tensor| {
                (call.borrow_mut())(x);
                x.clone()
            },
            x,
            &x.ones_like(),
        );
    });
    none_panics(&all, Draw::tensor, 10, |x, call| {
        let call = std::cell::RefCell::new(call);
        if x.rank() < 63 {
            vmap(|x: &Tensor| {
                (call.borrow_mut())(x);
                x.clone()
            })(&x.broadcast_to([&[2], x.shape()].concat()));
        }
    });
    none_panics(&all, Draw::tensor, 10, |x, call| {
        let call = std::cell::RefCell::new(call);
        let _ = trace(
            |x: &Tensor| {
                (call.borrow_mut())(x);
                x.clone()
            },
            x,
        );
    });
}

/// A recorded function refuses points outside of its branch, and takes any numbers.
#[test]
fn try_forms_of_recorded_functions_never_panic() {
    fn f<T: Real>(x: &[T]) -> T {
        if x[0].value() > 0.0 { x[0].ln() * x[1] } else { x[1].sqrt() / x[0] }
    }
    let function = Function::record(f, 2);
    let mut draw = Draw(Dice(1));
    for _ in 0..200 {
        let x = [draw.number(), draw.number()];
        let mut out = [0.0];
        assert_eq!(panic_of(|| drop(function.try_evaluate_into(&x, &mut out))), None);
        assert_eq!(panic_of(|| drop(function.try_evaluate_many_into(&x, &mut out))), None);
    }
}

/// Every word of the library that begins with `try_` is called above, or is none of its forms.
#[test]
fn every_try_form_is_among_them() {
    let mut words = BTreeSet::new();
    fn read(dir: &Path, words: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
            match entry.is_dir() {
                true => read(&entry, words),
                false => {
                    let text = std::fs::read_to_string(&entry).unwrap();
                    let all = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                    words.extend(all.filter(|w| w.starts_with("try_") && w.len() > 4).map(String::from));
                }
            }
        }
    }
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut words);
    words.extend(rows().into_iter().map(|(name, _)| name.to_string()));
    let called = [cheap(), thorough()].concat().into_iter().map(|(name, _)| name);
    let recorded = ["try_evaluate_into", "try_evaluate_many_into"];
    // Of the standard library and of other crates.
    let foreign = [
        "try_for_each",
        "try_fold",
        "try_from",
        "try_into",
        "try_lock",
        "try_lock_shared",
        "try_new_from_triplets",
        "try_reserve",
        "try_reserve_exact",
        "try_with",
    ];
    // Inside of the library: of macros, of buffers and of the pool.
    let inner = ["try_assign", "try_join", "try_keep", "try_method", "try_new", "try_over"];
    // Behind a feature; the decompositions are called below.
    let fourier = ["try_fft", "try_ifft", "try_rfft", "try_irfft"];
    let linear = [
        "try_cholesky",
        "try_cholesky_solve",
        "try_det",
        "try_eigh",
        "try_eigvalsh",
        "try_inv",
        "try_logdet",
        "try_lstsq",
        "try_lu",
        "try_matrix_exp",
        "try_matrix_norm",
        "try_matrix_power",
        "try_matrix_rank",
        "try_matrix_rank_with",
        "try_multi_dot",
        "try_pinv",
        "try_pinv_with",
        "try_qr",
        "try_slogdet",
        "try_solve",
        "try_solve_triangular",
        "try_svd",
        "try_svdvals",
    ];
    let known: BTreeSet<&str> =
        called.chain(recorded).chain(fourier).chain(linear).chain(foreign).chain(inner).collect();
    let missing: Vec<&String> = words.iter().filter(|w| !known.contains(w.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let gone: Vec<&&str> = known.iter().filter(|w| !words.contains(**w)).collect();
    assert!(gone.is_empty(), "no longer there: {gone:?}");
}

/// Matrices of every shape and with every kind of number are decomposed, or refused.
#[cfg(feature = "linalg")]
#[test]
fn linear_algebra_takes_anything() {
    use pullback::linalg::*;
    fn ignore<T>(result: pullback::Result<T>) -> usize {
        usize::from(result.is_err())
    }
    let shapes: [&[usize]; 9] =
        [&[], &[0], &[3], &[0, 0], &[2, 3], &[3, 3], &[2, 0, 0], &[2, 1, 1], &[0, 2, 2]];
    let mut refused = 0;
    for shape in shapes {
        for fill in [0.0, 1.0, f64::NAN, f64::INFINITY, 1e300] {
            for dtype in [DType::F64, DType::F32, DType::I64, DType::Bool, DType::BF16] {
                let (a, b) = (Tensor::full(shape, fill).cast(dtype), Tensor::ones([3]));
                refused +=
                    ignore(try_cholesky(&a)) + ignore(try_cholesky_solve(&a, &b)) + ignore(try_det(&a));
                refused += ignore(try_eigh(&a))
                    + ignore(try_eigvalsh(&a))
                    + ignore(try_inv(&a))
                    + ignore(try_logdet(&a));
                refused += ignore(try_lstsq(&a, &b)) + ignore(try_lu(&a)) + ignore(try_matrix_exp(&a));
                refused +=
                    ignore(try_matrix_norm(&a, MatrixNorm::Nuclear)) + ignore(try_matrix_power(&a, -3));
                refused += ignore(try_matrix_rank(&a)) + ignore(try_matrix_rank_with(&a, -1.0));
                refused += ignore(try_multi_dot(&[&a, &b]))
                    + ignore(try_pinv(&a))
                    + ignore(try_pinv_with(&a, f64::NAN));
                refused += ignore(try_qr(&a))
                    + ignore(try_slogdet(&a))
                    + ignore(try_solve(&a, &b))
                    + ignore(try_svd(&a));
                refused +=
                    ignore(try_solve_triangular(&a, &b, Triangle::upper().unit())) + ignore(try_svdvals(&a));
            }
        }
    }
    assert!(refused > 1000, "{refused} were refused");
}
