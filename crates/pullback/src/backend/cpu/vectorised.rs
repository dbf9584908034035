//! Functions compiled twice: for AVX2 with fused multiply-add, and for any processor.

/// Defines a function whose body is compiled for AVX2 and FMA, chosen at run time, and for the baseline.
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

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn avx2<$($G: $B),*>($($x: $X),*) $(-> $R)? {
                    body::<true, $($G),*>($($x),*)
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has both features.
                    return unsafe { avx2::<$($G),*>($($x),*) };
                }
            }
            body::<{ cfg!(target_arch = "aarch64") }, $($G),*>($($x),*)
        }
    };
}
pub(super) use vectorised;
