//! The `try_` forms, apart from the methods that most programs call.

use super::create::create_makers;
use super::methods::*;
use super::random::random_makers;
use super::*;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::shape::Shape;
use pullback_table::elementwise_table;

/// Declares the `try_` form of a method, or of a function that makes a tensor. What has no method to link to brings its documentation.
macro_rules! declare {
    ($name:ident $($form:tt)*) => {
        declare! {
            #[doc = concat!("[`", stringify!($name), "`](Tensor::", stringify!($name), "), with bad arguments as an error.")]
            $name $($form)*
        }
    };
    (#[$doc:meta] $name:ident $try:ident$(<$l:lifetime>)?(&self $(, $arg:ident: $t:ty)*) -> $out:ty) => {
        #[$doc]
        #[track_caller]
        fn $try$(<$l>)?(&self $(, $arg: $t)*) -> Result<$out>;
    };
    (#[$doc:meta] $name:ident $try:ident<'a>(&mut self $(, $arg:ident: $t:ty)*)) => {
        #[$doc]
        #[track_caller]
        fn $try<'a>(&mut self $(, $arg: $t)*) -> Result<()>;
    };
    (#[$doc:meta] $name:ident $try:ident$(<$T:ident>)?($($arg:ident: $t:ty),*)) => {
        #[$doc]
        #[track_caller]
        fn $try$(<$T: Element>)?($($arg: $t),*) -> Result<Tensor>;
    };
    (#[$doc:meta] $name:ident $try:ident<'a>($($arg:ident: $t:ty),*)) => {
        #[$doc]
        #[track_caller]
        fn $try<'a>($($arg: $t),*) -> Result<Tensor>;
    };
}

/// Defines it by the function of the same name that the library itself calls.
macro_rules! define {
    ($(#[$doc:meta])? $name:ident $try:ident$(<$l:lifetime>)?(&self $(, $arg:ident: $t:ty)*) -> $out:ty) => {
        #[track_caller]
        fn $try$(<$l>)?(&self $(, $arg: $t)*) -> Result<$out> { Tensor::$try(self $(, $arg)*) }
    };
    ($(#[$doc:meta])? $name:ident $try:ident<'a>(&mut self $(, $arg:ident: $t:ty)*)) => {
        #[track_caller]
        fn $try<'a>(&mut self $(, $arg: $t)*) -> Result<()> { Tensor::$try(self $(, $arg)*) }
    };
    ($name:ident $try:ident$(<$T:ident>)?($($arg:ident: $t:ty),*)) => {
        #[track_caller]
        fn $try$(<$T: Element>)?($($arg: $t),*) -> Result<Tensor> { Tensor::$try($($arg),*) }
    };
    ($name:ident $try:ident<'a>($($arg:ident: $t:ty),*)) => {
        #[track_caller]
        fn $try<'a>($($arg: $t),*) -> Result<Tensor> { Tensor::$try($($arg),*) }
    };
}

/// The rows of the table.
macro_rules! rows {
    ($emit:ident: $($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = [$($d:expr),+]; reads $([$($r:ident)*])+; $facts:tt)*) => {
        $(row! { $emit $P $m $try($($x),+) = $value })*
    };
}
macro_rules! row {
    // Operations of rules, not of users; the program's expressions have every row.
    ($emit:ident Gate $m:ident $try:ident $x:tt = $value:tt) => { row! { @ $emit #[doc(hidden)] $m $try $x } };
    ($emit:ident Share $m:ident $try:ident $x:tt = $value:tt) => { row! { @ $emit #[doc(hidden)] $m $try $x } };
    ($emit:ident Rem $m:ident $try:ident $x:tt = $value:tt) => { row! { @ operator $emit $m $try $x } };
    ($emit:ident $P:ident $m:ident $try:ident $x:tt = ($($operator:tt)*)) => { row! { @ operator $emit $m $try $x } };
    ($emit:ident $P:ident $m:ident $try:ident $x:tt = $value:tt) => { row! { @ $emit $m $try $x } };
    (@ operator $emit:ident $m:ident $($row:tt)*) => {
        row! { @ $emit #[doc = concat!("The operator of [`", stringify!($m), "`](std::ops), with bad arguments as an error.")] $m $($row)* }
    };
    (@ $emit:ident $(#[$doc:meta])? $m:ident $try:ident($x:ident)) => { $emit! { $(#[$doc])? $m $try(&self) -> Tensor } };
    (@ $emit:ident $(#[$doc:meta])? $m:ident $try:ident($a:ident, $b:ident)) => {
        $emit! { $(#[$doc])? $m $try<'a>(&self, $b: impl Into<Operand<'a>>) -> Tensor }
    };
}
macro_rules! declare_rows {
    ($($rows:tt)*) => { rows! { declare: $($rows)* } };
}
macro_rules! define_rows {
    ($($rows:tt)*) => { rows! { define: $($rows)* } };
}

/// All other methods.
macro_rules! all_methods {
    ($emit:ident) => {
        create_makers! { $emit }
        random_makers! { $emit }
        choice_methods! { $emit }
        complex_methods! { $emit }
        special_methods! { $emit }
        reduction_methods! { $emit }
        extreme_methods! { $emit }
        layout_methods! { $emit }
        arrange_methods! { $emit }
        pad_methods! { $emit }
        diagonal_methods! { $emit }
        window_methods! { $emit }
        product_methods! { $emit }
        norm_methods! { $emit }
        loss_methods! { $emit }
        index_methods! { $emit }
        scan_methods! { $emit }
        order_methods! { $emit }
        segment_methods! { $emit }
        convolution_methods! { $emit }
        pooling_methods! { $emit }
        interpolation_methods! { $emit }
        scatter_methods! { $emit }
        $emit! { index try_index<'a>(&self, items: impl IntoIndex<'a>) -> Tensor }
        $emit! { from_slice try_from_slice<T>(elements: &[T], shape: impl Into<Shape>) }
        $emit! { complex try_complex<'a>(re: impl Into<Operand<'a>>, im: impl Into<Operand<'a>>) }
        $emit! { polar try_polar<'a>(abs: impl Into<Operand<'a>>, angle: impl Into<Operand<'a>>) }
        $emit! { slice try_slice(&self, ranges: impl IntoRanges) -> Tensor }
        $emit! { get try_get(&self, at: isize) -> Tensor }
        $emit! { slice_assign try_slice_assign<'a>(&mut self, ranges: impl IntoRanges, part: impl Into<Operand<'a>>) }
        $emit! { #[doc = "The operator `+=`, with bad arguments as an error."] add_assign try_add_assign<'a>(&mut self, b: impl Into<Operand<'a>>) }
        $emit! { #[doc = "The operator `-=`, with bad arguments as an error."] sub_assign try_sub_assign<'a>(&mut self, b: impl Into<Operand<'a>>) }
        $emit! { #[doc = "The operator `*=`, with bad arguments as an error."] mul_assign try_mul_assign<'a>(&mut self, b: impl Into<Operand<'a>>) }
        $emit! { #[doc = "The operator `/=`, with bad arguments as an error."] div_assign try_div_assign<'a>(&mut self, b: impl Into<Operand<'a>>) }
        $emit! { #[doc = "The operator `%=`, with bad arguments as an error."] rem_assign try_rem_assign<'a>(&mut self, b: impl Into<Operand<'a>>) }
        $emit! { to try_to(&self, device: &Device) -> Tensor }
        $emit! { requires_grad try_requires_grad(&self) -> Tensor }
        $emit! { backward try_backward(&self) -> () }
        $emit! { backward_with try_backward_with(&self, seed: &Tensor) -> () }
        $emit! { item try_item(&self) -> f64 }
    };
}

/// The methods of [`Tensor`] that panic with a message on bad arguments, in the form that returns the error instead: `x.try_matmul(&y)` for
/// `x.matmul(&y)`. The [`prelude`](crate::prelude) brings them into scope. Tensors alone have them.
///
/// ```
/// use pullback::prelude::*;
/// let (a, b) = (Tensor::zeros([2, 3]), Tensor::zeros([4, 5]));
/// let e = a.try_matmul(&b).unwrap_err();
/// assert!(e.to_string().starts_with("matmul: shapes [2, 3] and [4, 5] do not fit"));
/// assert_eq!(a.try_add(1.0)?.shape(), [2, 3]);
/// # Ok::<(), pullback::Error>(())
/// ```
pub trait Fallible: Sized {
    /// [`where_`](Tensor::where_), with bad arguments as an error.
    #[track_caller]
    fn try_where<'a>(mask: &Tensor, a: impl Into<Operand<'a>>, b: impl Into<Operand<'a>>) -> Result<Tensor>;

    /// [`concat`](Tensor::concat), with bad arguments as an error.
    #[track_caller]
    fn try_concat<T: AsRef<Tensor>>(parts: &[T], at: isize) -> Result<Tensor>;

    /// [`stack`](Tensor::stack), with bad arguments as an error.
    #[track_caller]
    fn try_stack<T: AsRef<Tensor>>(parts: &[T], at: isize) -> Result<Tensor>;

    /// [`hstack`](Tensor::hstack), with bad arguments as an error.
    #[track_caller]
    fn try_hstack<T: AsRef<Tensor>>(parts: &[T]) -> Result<Tensor>;

    /// [`vstack`](Tensor::vstack), with bad arguments as an error.
    #[track_caller]
    fn try_vstack<T: AsRef<Tensor>>(parts: &[T]) -> Result<Tensor>;

    /// [`meshgrid`](Tensor::meshgrid), with bad arguments as an error.
    #[track_caller]
    fn try_meshgrid<T: AsRef<Tensor>>(axes: &[T]) -> Result<Vec<Tensor>>;

    /// [`to_vec`](Tensor::to_vec), with an error where there is no value to read, or no memory for its elements.
    #[track_caller]
    fn try_to_vec<T: Element>(&self) -> Result<Vec<T>>;

    /// [`grad`](Tensor::grad), with an error that says why there is none.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let mut w = Tensor::scalar(3.0).requires_grad();
    /// w.square().backward();
    /// w = &w - w.try_grad()? * 0.1; // recorded, so that this `w` is computed from the first
    /// w.square().backward();
    /// let e = w.try_grad().unwrap_err();
    /// assert!(e.to_string().contains("sub at ") && e.to_string().contains("no_grad"), "{e}");
    /// # Ok::<(), pullback::Error>(())
    /// ```
    #[track_caller]
    fn try_grad(&self) -> Result<Tensor>;

    elementwise_table! { declare_rows }
    all_methods! { declare }
}

impl Fallible for Tensor {
    #[track_caller]
    fn try_where<'a>(mask: &Tensor, a: impl Into<Operand<'a>>, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        Tensor::try_where(mask, a, b)
    }

    #[track_caller]
    fn try_concat<T: AsRef<Tensor>>(parts: &[T], at: isize) -> Result<Tensor> {
        Tensor::try_concat(parts, at)
    }

    #[track_caller]
    fn try_stack<T: AsRef<Tensor>>(parts: &[T], at: isize) -> Result<Tensor> {
        Tensor::try_stack(parts, at)
    }

    #[track_caller]
    fn try_hstack<T: AsRef<Tensor>>(parts: &[T]) -> Result<Tensor> {
        Tensor::try_hstack(parts)
    }

    #[track_caller]
    fn try_vstack<T: AsRef<Tensor>>(parts: &[T]) -> Result<Tensor> {
        Tensor::try_vstack(parts)
    }

    #[track_caller]
    fn try_meshgrid<T: AsRef<Tensor>>(axes: &[T]) -> Result<Vec<Tensor>> {
        Tensor::try_meshgrid(axes)
    }

    #[track_caller]
    fn try_to_vec<T: Element>(&self) -> Result<Vec<T>> {
        Tensor::try_to_vec(self)
    }

    #[track_caller]
    fn try_grad(&self) -> Result<Tensor> {
        Tensor::try_grad(self)
    }

    elementwise_table! { define_rows }
    all_methods! { define }
}
