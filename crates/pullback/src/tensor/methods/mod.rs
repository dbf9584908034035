//! The methods of tensors: broadcasting, promotion, axes and defaults live here, the operations know none of them.

mod elementwise;
mod index;
mod layout;
mod product;
mod reduce;

pub(crate) use elementwise::binary;
pub use layout::Lengths;
pub(crate) use layout::whole;
pub use reduce::AxisList;

/// Methods that panic with a message, each with a `try_` form that returns the error.
macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident $try:ident$(<$l:lifetime>)?(&$self:ident $(, $arg:ident: $t:ty)*) -> $out:ty $body:block)*) => {
        impl Tensor {
            $(
                $(#[$doc])*
                #[must_use]
                #[track_caller]
                pub fn $name$(<$l>)?(&$self $(, $arg: $t)*) -> $out {
                    or_panic($self.$try($($arg),*))
                }

                #[doc = concat!("[`", stringify!($name), "`](Tensor::", stringify!($name), "), with bad arguments as an error.")]
                #[track_caller]
                pub fn $try$(<$l>)?(&$self $(, $arg: $t)*) -> Result<$out> $body
            )*
        }
    };
}
use methods;
