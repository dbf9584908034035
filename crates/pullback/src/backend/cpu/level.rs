//! The instruction sets that inner loops are compiled for, and the one that this processor gets.
//!
//! - `Portable`: what every processor of the target has. That is SSE2 on x86-64; on aarch64 it is NEON, with a fused multiply-add, so that
//!   there is nothing more to choose there.
//! - `V3`: x86-64-v3, which has AVX2 and a fused multiply-add.
//! - `V4`: x86-64-v4, which has AVX-512 (F, BW, CD, DQ and VL).
//!
//! The choice depends on the processor alone, and `V4` computes what `V3` does in longer vectors, to the last bit. So a value has the
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

/// The level of this processor, asked once.
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
        ANSWER.store(best as u8, Ordering::Relaxed);
        best
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
