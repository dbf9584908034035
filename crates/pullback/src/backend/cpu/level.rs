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
pub(crate) enum Level {
    Portable = 1,
    #[cfg(target_arch = "x86_64")]
    V3,
    #[cfg(target_arch = "x86_64")]
    V4,
}

/// The environment variable that chooses a level.
#[cfg(target_arch = "x86_64")]
const CHOICE: &str = "PULLBACK_ISA";

/// The level of that name, unless the processor has not got it. A choice that cannot be had is not passed over: results would then not be
/// those that somebody asked for.
#[cfg(target_arch = "x86_64")]
fn chosen(name: &str, best: Level) -> Result<Level, String> {
    let named = [("portable", Level::Portable), ("avx2", Level::V3), ("avx512", Level::V4)];
    match named.into_iter().find(|(n, _)| *n == name) {
        _ if name.is_empty() => Ok(best),
        None => Err(format!("there is no `{name}`; the instruction sets are portable, avx2 and avx512")),
        Some((_, level)) if level > best => Err(format!("this processor does not have `{name}`")),
        Some((_, level)) => Ok(level),
    }
}

/// The level of this processor, or a lower one that was chosen; asked once.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn level() -> Level {
    const UNKNOWN: u8 = 0;
    const V3: u8 = Level::V3 as u8;
    const V4: u8 = Level::V4 as u8;
    static ANSWER: AtomicU8 = AtomicU8::new(UNKNOWN);

    #[cold]
    fn ask() -> Level {
        macro_rules! has {
            ($($feature:tt)*) => { true $(&& is_x86_feature_detected!($feature))* };
        }
        let best = if !has!("avx2" "fma" "bmi1" "bmi2" "f16c" "lzcnt") {
            Level::Portable
        } else if !has!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl") {
            Level::V3
        } else {
            Level::V4
        };
        let chosen = match std::env::var_os(CHOICE) {
            Some(name) => chosen(&name.to_string_lossy(), best).unwrap_or_else(|e| panic!("{CHOICE}: {e}")),
            None => best,
        };
        ANSWER.store(chosen as u8, Ordering::Relaxed);
        chosen
    }
    #[cfg(test)]
    if let Some(level) = forced::LEVEL.get() {
        return level;
    }
    match ANSWER.load(Ordering::Relaxed) {
        V4 => Level::V4,
        V3 => Level::V3,
        UNKNOWN => ask(),
        _ => Level::Portable,
    }
}

/// The level of this processor: its target has one only.
#[cfg(all(not(target_arch = "x86_64"), test))]
pub(crate) fn level() -> Level {
    Level::Portable
}

/// The rest of a function: one expression of several, each compiled for its level, the best one that this processor has and that is given.
/// `V4` has a condition besides, known when the program is compiled.
///
/// The generics, first as they are declared and then as they are passed on, and the arguments are those of the functions that the
/// expressions become. What these call must be `#[inline(always)]`, or it is compiled for every processor.
macro_rules! at_level {
    ([$($G:tt)*] [$($A:tt)*] ($($x:ident: $T:ty),*) $(-> $R:ty)?;
        Portable => $portable:expr, V3 => $v3:expr, V4 if $wide:expr => $v4:expr) => {{
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt")]
            #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
            fn v4<$($G)*>($($x: $T),*) $(-> $R)? {
                $v4
            }
            if $wide && $crate::backend::cpu::level::level() == $crate::backend::cpu::level::Level::V4 {
                // SAFETY: the processor has these instructions.
                return unsafe { v4::<$($A)*>($($x),*) };
            }
        }
        $crate::backend::cpu::level::at_level! {
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
            if $crate::backend::cpu::level::level() >= $crate::backend::cpu::level::Level::V3 {
                // SAFETY: the processor has these instructions.
                return unsafe { v3::<$($A)*>($($x),*) };
            }
        }
        portable::<$($A)*>($($x),*)
    }};
}
pub(crate) use at_level;

/// Levels other than the best, for tests.
#[cfg(test)]
pub(crate) mod forced {
    use super::{Level, level};
    use std::cell::Cell;

    thread_local! {
        pub(super) static LEVEL: Cell<Option<Level>> = const { Cell::new(None) };
    }

    /// Runs `f` once for each level that this processor has. A level is that of this thread: what `f` hands to others runs at the best one.
    pub(crate) fn at_each_level(mut f: impl FnMut(Level)) {
        /// Ends the choice, also after a panic.
        struct Restore;
        impl Drop for Restore {
            fn drop(&mut self) {
                LEVEL.set(None);
            }
        }
        #[cfg(target_arch = "x86_64")]
        let all = [Level::Portable, Level::V3, Level::V4];
        #[cfg(not(target_arch = "x86_64"))]
        let all = [Level::Portable];
        let best = level();
        let _restore = Restore;
        for level in all.into_iter().filter(|level| *level <= best) {
            LEVEL.set(Some(level));
            f(level);
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn a_level_can_be_chosen_by_name() {
        assert_eq!(chosen("portable", Level::V4), Ok(Level::Portable));
        assert_eq!(chosen("avx2", Level::V3), Ok(Level::V3));
        assert_eq!(chosen("avx512", Level::V4), Ok(Level::V4));
        assert_eq!(chosen("", Level::V3), Ok(Level::V3));
        assert!(chosen("avx512", Level::V3).unwrap_err().contains("does not have `avx512`"));
        assert!(chosen("sse9", Level::V4).unwrap_err().contains("portable, avx2 and avx512"));
    }

    /// Where the variable is set, as in the second run of CI, it is obeyed.
    #[test]
    fn the_environment_chooses_the_level() {
        let wanted = std::env::var(CHOICE).unwrap_or_default();
        assert_eq!(chosen(&wanted, level()), Ok(level()), "{wanted}");
    }
}
