//! Functions compiled for each [instruction set](super::isa) from one body.

/// Defines a function whose body is compiled for AVX2 and FMA, chosen at run time, and for the baseline; one marked `wide` for AVX-512 too.
///
/// The body sees `const FMA: bool`: whether `mul_add` is one instruction here and not a call.
/// What the body calls must be `#[inline(always)]`, or it is compiled for the baseline only.
macro_rules! vectorised {
    ($(#[$doc:meta])* wide $vis:vis fn $name:ident<$($G:ident: $B:path),*>($($x:ident: $X:ty),* $(,)?)
        $(-> $R:ty)? $body:block) => {
        vectorised! {
            @with_isas [V4 if true => body::<true, $($G),*>($($x),*)]
            $(#[$doc])* $vis fn $name<$($G: $B),*>($($x: $X),*) $(-> $R)? $body
        }
    };
    (@with_isas [$($wide:tt)*] $(#[$doc:meta])* $vis:vis fn $name:ident<$($G:ident: $B:path),*>($($x:ident: $X:ty),*)
        $(-> $R:ty)? $body:block) => {
        $(#[$doc])*
        $vis fn $name<$($G: $B),*>($($x: $X),*) $(-> $R)? {
            #[allow(clippy::extra_unused_type_parameters)]
            #[inline(always)]
            fn body<const FMA: bool, $($G: $B),*>($($x: $X),*) $(-> $R)? $body

            $crate::kernels::isa::with_isa! {
                [$($G: $B),*] [$($G),*] ($($x: $X),*) $(-> $R)?;
                Portable => body::<{ cfg!(target_arch = "aarch64") }, $($G),*>($($x),*),
                V3 => body::<true, $($G),*>($($x),*),
                $($wide)*
            }
        }
    };
    ($(#[$doc:meta])* $vis:vis fn $name:ident<$($G:ident: $B:path),*>($($x:ident: $X:ty),* $(,)?)
        $(-> $R:ty)? $body:block) => {
        vectorised! {
            @with_isas []
            $(#[$doc])* $vis fn $name<$($G: $B),*>($($x: $X),*) $(-> $R)? $body
        }
    };
}
pub(super) use vectorised;
