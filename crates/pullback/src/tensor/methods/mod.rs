//! The methods of tensors: broadcasting, promotion, axes and defaults live here, the operations know none of them.

mod arrange;
mod complex;
mod convolution;
mod diagonal;
mod elementwise;
mod index;
mod interpolation;
mod layout;
mod loss;
mod norm;
mod order;
mod pad;
mod pooling;
mod product;
mod reduce;
mod scan;
mod scatter;
mod segment;
mod special;
mod window;

pub(super) use arrange::{arrange_methods, composed};
pub(super) use complex::complex_methods;
pub(super) use convolution::convolution_methods;
pub use convolution::{Conv, Padding, PerAxis};
pub(super) use diagonal::diagonal_methods;
pub(crate) use elementwise::binary;
pub(super) use elementwise::choice_methods;
pub(super) use index::{index_methods, positions};
pub use interpolation::Interpolation;
pub(super) use interpolation::interpolation_methods;
pub use layout::Lengths;
pub(super) use layout::layout_methods;
pub(crate) use layout::whole;
pub use loss::CrossEntropy;
pub(super) use loss::loss_methods;
pub use norm::Norm;
pub(super) use norm::norm_methods;
pub use order::Between;
pub(super) use order::order_methods;
pub use pad::PadMode;
pub(super) use pad::pad_methods;
pub use pooling::Pool;
pub(super) use pooling::pooling_methods;
pub(super) use product::product_methods;
pub use reduce::AxisList;
pub(super) use reduce::{extreme_methods, reduction_methods};
pub(super) use scan::scan_methods;
pub(super) use scatter::{mask_positions, scatter_methods, update_like};
pub(super) use segment::segment_methods;
pub(super) use special::special_methods;
pub(super) use window::window_methods;

/// Methods that panic with a message, each with a `try_` form that returns the error. The library calls these as they stand here; users find
/// them in [`Fallible`](crate::Fallible), which gets their signatures from the macro `$list`.
macro_rules! methods {
    ($dollar:tt $list:ident; $($(#[$doc:meta])* $name:ident $try:ident$(<$l:lifetime>)?(&$self:ident $(, $arg:ident: $t:ty)*) -> $out:ty $body:block)*) => {
        impl Tensor {
            $(
                $(#[$doc])*
                #[must_use]
                #[track_caller]
                pub fn $name$(<$l>)?(&$self $(, $arg: $t)*) -> $out {
                    or_panic($self.$try($($arg),*))
                }

                #[track_caller]
                pub(crate) fn $try$(<$l>)?(&$self $(, $arg: $t)*) -> Result<$out> $body
            )*
        }

        macro_rules! $list {
            ($dollar emit:ident) => {
                $($dollar emit! { $name $try$(<$l>)?(&self $(, $arg: $t)*) -> $out })*
            };
        }
        pub(in crate::tensor) use $list;
    };
}
use methods;
