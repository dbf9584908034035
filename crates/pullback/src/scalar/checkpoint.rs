//! Long loops in little memory: some states are kept, and the steps between them run again in the sweep.
//!
//! The places of the states are the binomial ones, with which a given number of states makes the fewest
//! repetitions (Griewank and Walther's Revolve): with `s` states a loop of up to `C(s + r, s)` steps runs each step at most `r` times again.

use super::Var;
use super::tape::{Tape, Taped, external, with_idle_tape};
use std::rc::Rc;

/// How many steps `s` states can reverse with at most `r` repetitions of each: `C(s + r, s)`, as far as that fits.
fn reach(s: usize, r: usize) -> usize {
    (1..=s).try_fold(1usize, |c, k| c.checked_mul(r + k).map(|c| c / k)).unwrap_or(usize::MAX)
}

/// How far from the start of a loop of `n` steps the next state is kept, when there is room for `s` states, the one at the
/// start included.
fn next_state(n: usize, s: usize) -> usize {
    debug_assert!(n > 1 && s > 1);
    let r = (1..).find(|&r| reach(s, r) >= n).expect("reach grows without bound");
    // Any place with `reach(s, r - 2) <= first part <= reach(s, r - 1)`, and the like for the second part, is best.
    let first = if r >= 2 { reach(s, r - 2) } else { 0 };
    first.max(n.saturating_sub(reach(s - 1, r))).clamp(1, n - 1)
}

/// What is kept of the loop: its states at some steps, the first at 0.
type States<T> = Vec<(usize, Rc<[T]>)>;

struct Loop<T: Taped, F> {
    step: F,
    steps: usize,
    snapshots: usize,
    parameters: Vec<T>,
    kept: States<T>,
}

impl<T: Taped, F: Fn(usize, &[Var<T>], &[Var<T>]) -> Vec<Var<T>>> Loop<T, F> {
    /// The state after the steps `from..to`. Constants record nothing, so this leaves no trace on any tape.
    fn advance(&self, mut state: Vec<T>, from: usize, to: usize) -> Vec<T> {
        let parameters: Vec<Var<T>> = self.parameters.iter().map(|&p| Var::fixed(p)).collect();
        for k in from..to {
            let fixed: Vec<Var<T>> = state.iter().map(|&x| Var::fixed(x)).collect();
            state = (self.step)(k, &fixed, &parameters).iter().map(|x| x.inner()).collect();
        }
        state
    }

    /// Runs the loop and keeps the states that the first part of the sweep begins with.
    fn run(&mut self, state: &[T]) -> Vec<T> {
        let mut state = state.to_vec();
        let mut at = 0;
        self.kept.push((0, state.as_slice().into()));
        while self.kept.len() < self.snapshots && self.steps - at > 1 {
            let next = at + next_state(self.steps - at, self.snapshots - self.kept.len() + 1);
            state = self.advance(state, at, next);
            at = next;
            self.kept.push((at, state.as_slice().into()));
        }
        self.advance(state, at, self.steps)
    }

    /// Pulls the cotangent of the last state back to the first one and the parameters.
    fn pullback(&self, last: &[T], first: &mut [T], parameters: &mut [T]) {
        let mut kept = self.kept.clone();
        let mut cotangent = last.to_vec();
        let mut end = self.steps;
        while let Some((at, state)) = kept.last().cloned() {
            if at == end {
                kept.pop();
            } else if end - at == 1 {
                self.pull_step(at, &state, &mut cotangent, parameters);
                end = at;
                kept.pop();
            } else if kept.len() == self.snapshots {
                let state = self.advance(state.to_vec(), at, end - 1);
                self.pull_step(end - 1, &state, &mut cotangent, parameters);
                end -= 1;
            } else {
                let next = at + next_state(end - at, self.snapshots - kept.len() + 1);
                kept.push((next, self.advance(state.to_vec(), at, next).into()));
            }
        }
        first.copy_from_slice(&cotangent);
    }

    /// Pulls a cotangent back through one step, on a tape of its own.
    fn pull_step(&self, k: usize, state: &[T], cotangent: &mut Vec<T>, parameters: &mut [T]) {
        let inputs = [state, &self.parameters].concat();
        let mut pulled = vec![T::constant(0.0); inputs.len()];
        with_idle_tape(|tape: &mut Tape<T>| {
            tape.record(|t| {
                let x = t.inputs(&inputs);
                let (state, parameters) = x.split_at(state.len());
                let next = (self.step)(k, state, parameters);
                t.pullback(&next, cotangent, &x, &mut pulled);
            });
        });
        for (sum, &g) in parameters.iter_mut().zip(&pulled[state.len()..]) {
            *sum += g;
        }
        pulled.truncate(state.len());
        *cotangent = pulled;
    }
}

/// The state after all steps of a loop, on the tape as one operation that keeps `snapshots` states at most.
pub(super) fn checkpointed<T: Taped>(
    steps: usize,
    snapshots: usize,
    state: &[Var<T>],
    parameters: &[Var<T>],
    step: impl Fn(usize, &[Var<T>], &[Var<T>]) -> Vec<Var<T>> + 'static,
) -> Vec<Var<T>> {
    assert!(snapshots > 0, "checkpointed: at least the first state must be kept");
    if steps == 0 {
        return state.to_vec();
    }
    let values = |x: &[Var<T>]| -> Vec<T> { x.iter().map(|x| x.inner()).collect() };
    let mut run = Loop { step, steps, snapshots, parameters: values(parameters), kept: Vec::new() };
    let last = run.run(&values(state));
    let inputs = [state, parameters].concat();
    if inputs.iter().all(|x| x.is_constant()) {
        return last.into_iter().map(Var::fixed).collect();
    }
    let width = state.len();
    external(&inputs, &last, move |g, d| {
        let (first, parameters) = d.split_at_mut(width);
        run.pullback(g, first, parameters);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn the_fewest_steps_run_again() {
        thread_local!(static RUN: Cell<usize> = const { Cell::new(0) });
        fn step(_: usize, x: &[Var], p: &[Var]) -> Vec<Var> {
            RUN.set(RUN.get() + 1);
            vec![x[0] * p[0]]
        }
        for snapshots in [1, 2, 3, 5, 8] {
            for steps in [1, 2, 3, 7, 10, 35, 56, 57, 100] {
                RUN.set(0);
                Tape::new().record(|t| {
                    let (x, p) = (t.input(1.0), t.input(1.01));
                    let y = checkpointed(steps, snapshots, &[x], &[p], step);
                    let mut d = [0.0; 2];
                    t.gradient(y[0], &[x, p], &mut d);
                    let n = steps as i32;
                    assert!(
                        (d[0] - 1.01f64.powi(n)).abs() < 1e-13
                            && (d[1] - n as f64 * 1.01f64.powi(n - 1)).abs() < 1e-11
                    );
                });
                // Griewank's count r n - C(s + r, s + 1) of advances, less those to the last state that the run itself kept; the
                // run, and each step once on tape.
                let r = (1..).find(|&r| reach(snapshots, r) >= steps).unwrap();
                let advances = r * steps - reach(snapshots + 1, r - 1);
                let mut kept = 0;
                for room in (2..=snapshots).rev().take_while(|_| steps > 1) {
                    kept += if steps - kept > 1 { next_state(steps - kept, room) } else { 0 };
                }
                assert_eq!(RUN.get(), 2 * steps + advances - kept, "{steps} steps, {snapshots} snapshots");
            }
        }
    }
}
