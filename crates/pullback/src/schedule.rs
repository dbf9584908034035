//! Which states of a long loop are kept, and in which order its steps run again when it is reversed.
//!
//! Knows nothing of tensors: the loops of tensors and those of scalars both follow it.

use crate::error::{Result, err};

/// Which states of a loop are kept for its pullback; the steps between them run again.
///
/// For a loop of `n` steps, with the state it begins with counted among those that are kept:
///
/// | | states kept | steps run again, besides once for the pullback itself |
/// |---|---|---|
/// | `All` | `n` | none |
/// | `Sqrt` | `sqrt n`, and the records of `sqrt n` steps | none |
/// | `Recursive` | `log2 n + 1` | about `n log2(n) / 2` |
/// | `Binomial` | `slots` | the fewest possible: at most `r n`, where `C(slots + r, slots) >= n` |
/// | `Online` | `slots` | up to half as many again as with `Binomial`; the number of steps need not be known while the loop runs |
///
/// ```
/// use pullback::{Schedule, prelude::*, scan_with};
/// let f = |x: &Tensor| scan_with(Schedule::Binomial { slots: 10 }, |x: &Tensor, _: &()| (x.sin(), ()), x, 1000).0;
/// let plain = |x: &Tensor| scan(|x: &Tensor, _: &()| (x.sin(), ()), x, 1000).0;
/// let x = Tensor::scalar(0.5);
/// assert_eq!(grad(f)(&x).item(), grad(plain)(&x).item());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schedule {
    /// Every state is kept; each step runs once more.
    All,
    /// Every `sqrt n`-th state is kept, and the steps from one to the next are run again together.
    Sqrt,
    /// The state in the middle of what is left is kept, again and again.
    Recursive,
    /// The binomial places of Griewank and Walther's Revolve, the best for a given number of states.
    Binomial {
        /// The most states that are kept at a time.
        slots: usize,
    },
    /// Half of the states at equal distances, which double whenever there is no room for more; between them, binomial places.
    Online {
        /// The most states that are kept at a time.
        slots: usize,
    },
}

/// How many steps `s` states can reverse with at most `r` repetitions of each: `C(s + r, s)`, as far as that fits.
fn reach(s: usize, r: usize) -> usize {
    (1..=s).try_fold(1usize, |c, k| c.checked_mul(r + k).map(|c| c / k)).unwrap_or(usize::MAX)
}

/// How far from the start of a loop of `n` steps the next state is kept, when there is room for `s` states, the one at the
/// start included.
fn binomial(n: usize, s: usize) -> usize {
    debug_assert!(n > 1 && s > 1);
    let r = (1..).find(|&r| reach(s, r) >= n).expect("reach grows without bound");
    // Any place with `reach(s, r - 2) <= first part <= reach(s, r - 1)`, and the like for the second part, is best.
    let first = if r >= 2 { reach(s, r - 2) } else { 0 };
    first.max(n.saturating_sub(reach(s - 1, r))).clamp(1, n - 1)
}

/// The states that are kept of a loop of a known number of steps, each with the number of steps before it.
#[derive(Clone)]
pub(crate) struct Kept<T> {
    schedule: Schedule,
    steps: usize,
    states: Vec<(usize, T)>,
    /// The next step whose state is kept, or for `Online` the distance of such steps.
    next: usize,
}

impl<T: Clone> Kept<T> {
    pub fn new(schedule: Schedule, steps: usize) -> Result<Kept<T>> {
        if let Schedule::Binomial { slots: 0 } | Schedule::Online { slots: 0 } = schedule {
            return Err(err!(Value, "a schedule needs at least one slot: the first state must be kept"));
        }
        let next = if matches!(schedule, Schedule::Online { .. }) { 1 } else { 0 };
        Ok(Kept { schedule, steps, states: Vec::new(), next })
    }

    /// Is told every state of the loop as it runs, with the number of steps before it, and keeps some.
    pub fn offer(&mut self, at: usize, state: impl FnOnce() -> T) {
        if let Schedule::Online { slots } = self.schedule {
            // The other half is for the states between these, when the loop is reversed.
            let slots = slots.div_ceil(2);
            if at.is_multiple_of(self.next) && self.states.len() == slots {
                self.next *= 2;
                let distance = self.next;
                self.states.retain(|(at, _)| at.is_multiple_of(distance));
            }
            // With a single slot the distance grows, and nothing but the first state is ever kept.
            if at.is_multiple_of(self.next) && self.states.len() < slots {
                self.states.push((at, state()));
            }
            return;
        }
        if at != self.next || at >= self.steps {
            return;
        }
        self.states.push((at, state()));
        let left = self.steps - at;
        self.next = match self.schedule {
            Schedule::All => at + 1,
            Schedule::Sqrt => at + self.steps.isqrt().max(1),
            Schedule::Recursive => at + left.div_ceil(2),
            _ => self.place(at, self.steps).unwrap_or(usize::MAX),
        };
    }

    /// Where the next state is kept between the last kept one and `end`, if there is room for it.
    fn place(&self, at: usize, end: usize) -> Option<usize> {
        let n = end - at;
        match self.schedule {
            Schedule::All | Schedule::Sqrt => None,
            Schedule::Recursive => (n > 1).then(|| at + n / 2),
            Schedule::Binomial { slots } | Schedule::Online { slots } => {
                let room = slots - self.states.len() + 1;
                (n > 1 && room > 1).then(|| at + binomial(n, room))
            }
        }
    }

    /// The number of steps, where it is known only now.
    pub fn ended(self, steps: usize) -> Kept<T> {
        Kept { steps, ..self }
    }

    /// The states that are kept now.
    pub fn states(&self) -> &[(usize, T)] {
        &self.states
    }

    /// The same places with other states.
    pub fn with_states(&self, states: Vec<T>) -> Kept<T> {
        let places = self.states.iter().map(|(at, _)| *at);
        Kept { states: places.zip(states).collect(), ..*self }
    }

    /// Goes through the loop from its end to its start: `advance(state, from, to)` runs the steps `from..to`, and `pull(state, from, to)`
    /// runs them too, and pulls cotangents back through them.
    pub fn reverse<E>(
        mut self,
        mut advance: impl FnMut(T, usize, usize) -> std::result::Result<T, E>,
        mut pull: impl FnMut(T, usize, usize) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut end = self.steps;
        while let Some((at, state)) = self.states.last().cloned() {
            if at == end {
                self.states.pop();
            } else if end - at == 1 || matches!(self.schedule, Schedule::Sqrt | Schedule::All) {
                self.states.pop();
                pull(state, at, end)?;
                end = at;
            } else if let Some(place) = self.place(at, end) {
                let state = advance(state, at, place)?;
                self.states.push((place, state));
            } else {
                pull(advance(state, at, end - 1)?, end - 1, end)?;
                end -= 1;
            }
        }
        Ok(())
    }
}

/// How many steps the best schedule runs again to reverse `n` steps with `slots` states: `r n - C(s + r, s + 1)` of Griewank and Walther, with
/// the least `r` for which `C(s + r, s) >= n`. The run that keeps the first states, up to the last of them, is counted.
#[cfg(test)]
pub(crate) fn fewest_advances(n: usize, slots: usize) -> usize {
    let r = (1..).find(|&r| reach(slots, r) >= n).expect("reach grows without bound");
    r * n - reach(slots + 1, r - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::convert::Infallible;

    /// Runs and reverses a loop whose state is the number of steps. Returns the advances and the most states kept.
    fn count(schedule: Schedule, n: usize) -> (usize, usize) {
        let mut kept = Kept::new(schedule, n).unwrap();
        let mut most = 0;
        for k in 0..n {
            kept.offer(k, || k);
            most = most.max(kept.states().len());
        }
        let last = kept.states().last().map_or(0, |&(at, _)| at);
        let (advances, end) = (Cell::new(last), Cell::new(n));
        let held = Cell::new(kept.states().len());
        let Ok(()) = kept.reverse::<Infallible>(
            |state, from, to| {
                assert!(state == from && from < to && to < end.get());
                advances.set(advances.get() + to - from);
                held.set(held.get() + 1);
                Ok(to)
            },
            |state, from, to| {
                assert!(state == from && from < to && to == end.get(), "steps are pulled in order");
                end.set(from);
                Ok(())
            },
        );
        assert_eq!(end.get(), 0, "every step was pulled");
        (advances.get(), most)
    }

    #[test]
    fn the_binomial_schedule_is_optimal() {
        for slots in [1, 2, 3, 4, 5, 8, 20, 50] {
            for n in (1..60).chain([100, 126, 127, 500, 1000, 4321]).filter(|n| slots > 1 || *n < 200) {
                let (advances, most) = count(Schedule::Binomial { slots }, n);
                assert_eq!(advances, fewest_advances(n, slots), "{n} steps, {slots} slots");
                assert!(most <= slots);
            }
        }
        // r = 4, since C(53, 3) = 23426 < 100000 <= C(54, 4): 4 n - C(54, 51).
        assert_eq!(count(Schedule::Binomial { slots: 50 }, 100_000), (400_000 - 24_804, 50));
    }

    /// The least number of advances by trying every place, to check the formula itself.
    #[test]
    fn the_formula_is_the_minimum_over_all_places() {
        const N: usize = 40;
        let mut best = vec![[0usize; 6]; N + 1];
        for s in 1..6 {
            for n in 2..=N {
                best[n][s] = match s {
                    1 => n * (n - 1) / 2,
                    _ => (1..n).map(|m| m + best[n - m][s - 1] + best[m][s]).min().unwrap(),
                };
                assert_eq!(best[n][s], fewest_advances(n, s), "{n} steps, {s} slots");
            }
        }
    }

    #[test]
    fn the_other_schedules_keep_to_their_memory() {
        for n in [1usize, 2, 3, 10, 99, 100, 101, 1000, 4096] {
            assert_eq!(count(Schedule::All, n), (n - 1, n));
            let (advances, most) = count(Schedule::Sqrt, n);
            assert!(advances < n, "only the run itself");
            assert!(most <= n.isqrt() + 2, "{n}: {most}");
            let (advances, most) = count(Schedule::Recursive, n);
            assert!(most <= n.ilog2() as usize + 2, "{n}: {most}");
            assert!(advances <= n * (n.ilog2() as usize + 1), "{n}: {advances}");
        }
    }

    #[test]
    fn the_online_schedule_is_not_far_from_the_best() {
        for slots in [1, 2, 3, 8, 20] {
            for n in [1, 2, 5, 50, 123, 500, 2000].into_iter().filter(|n| slots > 2 || *n < 200) {
                let (advances, most) = count(Schedule::Online { slots }, n);
                assert!(most <= slots);
                let best = fewest_advances(n, slots);
                assert!(
                    advances >= best && 2 * advances <= 3 * best,
                    "{n} steps, {slots} slots: {advances}, {best}"
                );
            }
        }
    }

    #[test]
    fn no_slots_are_an_error() {
        assert!(Kept::<()>::new(Schedule::Binomial { slots: 0 }, 3).is_err());
        assert!(Kept::<()>::new(Schedule::Online { slots: 0 }, 3).is_err());
    }
}
