//! Functions compiled for each [level](super::level) of instructions from one body.

/// Defines a function whose body is compiled for each level, the best one chosen at run time.
///
/// The body sees `const FMA: bool`: whether `mul_add` is one instruction here and not a call.
/// What the body calls must be `#[inline(always)]`, or it is compiled for the baseline only.
macro_rules! vectorised {
    ($(#[$doc:meta])* $vis:vis fn $name:ident<$($G:ident: $B:path),*>($($x:ident: $X:ty),* $(,)?)
        $(-> $R:ty)? $body:block) => {
        $(#[$doc])*
        $vis fn $name<$($G: $B),*>($($x: $X),*) $(-> $R)? {
            #[allow(clippy::extra_unused_type_parameters)]
            #[inline(always)]
            fn body<const FMA: bool, $($G: $B),*>($($x: $X),*) $(-> $R)? $body

            $crate::backend::cpu::level::at_level! {
                [$($G: $B),*] [$($G),*] ($($x: $X),*) $(-> $R)?;
                Portable => body::<{ cfg!(target_arch = "aarch64") }, $($G),*>($($x),*),
                V3 => body::<true, $($G),*>($($x),*),
                V4 => body::<true, $($G),*>($($x),*)
            }
        }
    };
}
pub(super) use vectorised;
