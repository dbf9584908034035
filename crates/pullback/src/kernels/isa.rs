//! The instruction sets that inner loops are compiled for, and the one that this processor gets.
//!
//! - `Portable`: what every processor of the target has. That is SSE2 on x86-64; on aarch64 it is NEON, with a fused multiply-add, so that
//!   there is nothing more to choose there.
//! - `V3`: x86-64-v3, which has AVX2 and a fused multiply-add.
//! - `V4`: x86-64-v4, which has AVX-512 (F, BW, CD, DQ and VL).
//!
//! The best one that the processor has is taken, unless `PULLBACK_ISA` names another when the first kernel runs: `portable`, `avx2` or
//! `avx512`. (Large matrix products are those of the crate `gemm`, which asks the processor itself.)
//!
//! The choice is the same for the whole process, and `V4` computes what `V3` does in longer vectors, to the last bit. So a value has the
//! same result in a loop of any length and on its own, also where a loop stays at `V3`: loops that mostly load and store do, because tensors
//! begin anywhere, and a vector of 64 bytes would then lie across two lines of the cache each time. Functions gain: `exp`, `tanh` and their
//! like take 0.5 to 0.7 of the time.

#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, Ordering};

/// An instruction set, the better one the larger.
#[cfg(any(target_arch = "x86_64", test))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Isa {
    Portable = 1,
    #[cfg(target_arch = "x86_64")]
    V3,
    #[cfg(target_arch = "x86_64")]
    V4,
}

/// The environment variable that chooses an instruction set.
#[cfg(target_arch = "x86_64")]
const CHOICE: &str = "PULLBACK_ISA";

/// The instruction set of that name, unless the processor has not got it. A choice that cannot be had is not passed over: results would then not be
/// those that somebody asked for.
#[cfg(target_arch = "x86_64")]
fn chosen(name: &str, best: Isa) -> Result<Isa, String> {
    let named = [("portable", Isa::Portable), ("avx2", Isa::V3), ("avx512", Isa::V4)];
    match named.into_iter().find(|(n, _)| *n == name) {
        _ if name.is_empty() => Ok(best),
        None => Err(format!("there is no `{name}`; the instruction sets are portable, avx2 and avx512")),
        Some((_, isa)) if isa > best => Err(format!("this processor does not have `{name}`")),
        Some((_, isa)) => Ok(isa),
    }
}

/// The instruction set of this processor, or a smaller one that was chosen; asked once.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn isa() -> Isa {
    const UNKNOWN: u8 = 0;
    const V3: u8 = Isa::V3 as u8;
    const V4: u8 = Isa::V4 as u8;
    static ANSWER: AtomicU8 = AtomicU8::new(UNKNOWN);

    #[cold]
    fn ask() -> Isa {
        macro_rules! has {
            ($($feature:tt)*) => { true $(&& is_x86_feature_detected!($feature))* };
        }
        let best = if !has!("avx2" "fma" "bmi1" "bmi2" "f16c" "lzcnt") {
            Isa::Portable
        } else if !has!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl") {
            Isa::V3
        } else {
            Isa::V4
        };
        let chosen = match std::env::var_os(CHOICE) {
            Some(name) => chosen(&name.to_string_lossy(), best).unwrap_or_else(|e| panic!("{CHOICE}: {e}")),
            None => best,
        };
        ANSWER.store(chosen as u8, Ordering::Relaxed);
        chosen
    }
    #[cfg(test)]
    if let Some(isa) = forced::ISA.get() {
        return isa;
    }
    match ANSWER.load(Ordering::Relaxed) {
        V4 => Isa::V4,
        V3 => Isa::V3,
        UNKNOWN => ask(),
        _ => Isa::Portable,
    }
}

/// The instruction set of this processor: its target has only one.
#[cfg(all(not(target_arch = "x86_64"), test))]
pub(crate) fn isa() -> Isa {
    Isa::Portable
}

/// The rest of a function: one expression of several, each compiled for its instruction set, the best one that this processor has and that is given.
/// `V4` has a condition besides, known when the program is compiled.
///
/// The generics, first as they are declared and then as they are passed on, and the arguments are those of the functions that the
/// expressions become. What these call must be `#[inline(always)]`, or it is compiled for every processor.
macro_rules! with_isa {
    ([$($G:tt)*] [$($A:tt)*] ($($x:ident: $T:ty),*) $(-> $R:ty)?;
        Portable => $portable:expr, V3 => $v3:expr, V4 if $wide:expr => $v4:expr) => {{
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt")]
            #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
            fn v4<$($G)*>($($x: $T),*) $(-> $R)? {
                $v4
            }
            if $wide && $crate::kernels::isa::isa() == $crate::kernels::isa::Isa::V4 {
                // SAFETY: the processor has these instructions.
                return unsafe { v4::<$($A)*>($($x),*) };
            }
        }
        $crate::kernels::isa::with_isa! {
            [$($G)*] [$($A)*] ($($x: $T),*) $(-> $R)?;
            Portable => $portable, V3 => $v3
        }
    }};
    ([$($G:tt)*] [$($A:tt)*] ($($x:ident: $T:ty),*) $(-> $R:ty)?; Portable => $portable:expr, V3 => $v3:expr $(,)?) => {{
        // A function of its own, so that its code exists once and not at every call.
        #[inline(never)]
        fn portable<$($G)*>($($x: $T),*) $(-> $R)? {
            $portable
        }
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt")]
            fn v3<$($G)*>($($x: $T),*) $(-> $R)? {
                $v3
            }
            if $crate::kernels::isa::isa() >= $crate::kernels::isa::Isa::V3 {
                // SAFETY: the processor has these instructions.
                return unsafe { v3::<$($A)*>($($x),*) };
            }
        }
        portable::<$($A)*>($($x),*)
    }};
}
pub(crate) use with_isa;

/// Instruction sets other than the best, for tests.
#[cfg(test)]
pub(crate) mod forced {
    use super::{Isa, isa};
    use std::cell::Cell;

    thread_local! {
        pub(super) static ISA: Cell<Option<Isa>> = const { Cell::new(None) };
    }

    /// Runs `f` once for each instruction set that this processor has. The choice holds for this thread: what `f` hands to others runs with the best one.
    pub(crate) fn with_each_isa(mut f: impl FnMut(Isa)) {
        /// Ends the choice, also after a panic.
        struct Restore;
        impl Drop for Restore {
            fn drop(&mut self) {
                ISA.set(None);
            }
        }
        #[cfg(target_arch = "x86_64")]
        let all = [Isa::Portable, Isa::V3, Isa::V4];
        #[cfg(not(target_arch = "x86_64"))]
        let all = [Isa::Portable];
        let best = isa();
        let _restore = Restore;
        for isa in all.into_iter().filter(|isa| *isa <= best) {
            ISA.set(Some(isa));
            f(isa);
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn an_isa_can_be_chosen_by_name() {
        assert_eq!(chosen("portable", Isa::V4), Ok(Isa::Portable));
        assert_eq!(chosen("avx2", Isa::V3), Ok(Isa::V3));
        assert_eq!(chosen("avx512", Isa::V4), Ok(Isa::V4));
        assert_eq!(chosen("", Isa::V3), Ok(Isa::V3));
        assert!(chosen("avx512", Isa::V3).unwrap_err().contains("does not have `avx512`"));
        assert!(chosen("sse9", Isa::V4).unwrap_err().contains("portable, avx2 and avx512"));
    }

    /// Where the variable is set, as in the second run of CI, it is obeyed.
    #[test]
    fn the_environment_chooses_the_isa() {
        let wanted = std::env::var(CHOICE).unwrap_or_default();
        assert_eq!(chosen(&wanted, isa()), Ok(isa()), "{wanted}");
    }
}
