//! Long loops in little memory: some states are kept, and the steps between them run again in the sweep.
//!
//! The places of the states are the binomial ones, with which a given number of states makes the fewest
//! repetitions (Griewank and Walther's Revolve): with `s` states a loop of up to `C(s + r, s)` steps runs each step at most `r` times again.

use super::Var;
use super::tape::{Tape, Taped, external, with_idle_tape};
use crate::error::or_panic;
use crate::schedule::{Kept, Schedule};
use std::convert::Infallible;
use std::rc::Rc;

struct Loop<T: Taped, F> {
    step: F,
    steps: usize,
    parameters: Vec<T>,
    kept: Kept<Rc<[T]>>,
}

impl<T: Taped, F: Fn(usize, &[Var<T>], &[Var<T>]) -> Vec<Var<T>>> Loop<T, F> {
    /// The state after the steps `from..to`. Constants record nothing, so this leaves no trace on any tape.
    fn advance(&self, state: Vec<T>, from: usize, to: usize) -> Vec<T> {
        self.walk(state, from, to, |_, _| {})
    }

    /// [`advance`](Loop::advance), with a look at the state before each step.
    fn walk(&self, mut state: Vec<T>, from: usize, to: usize, mut look: impl FnMut(usize, &[T])) -> Vec<T> {
        let parameters: Vec<Var<T>> = self.parameters.iter().map(|&p| Var::fixed(p)).collect();
        for k in from..to {
            look(k, &state);
            let fixed: Vec<Var<T>> = state.iter().map(|&x| Var::fixed(x)).collect();
            let next = (self.step)(k, &fixed, &parameters);
            assert!(
                next.iter().all(|x| x.is_constant()),
                "checkpointed: the step uses a variable that does not come through its arguments; pass it among the `parameters`"
            );
            state = next.iter().map(|x| x.inner()).collect();
        }
        state
    }

    /// Runs the loop and keeps the states that the first part of the sweep begins with.
    fn run(&mut self, state: &[T]) -> Vec<T> {
        let mut kept = self.kept.clone();
        let last = self.walk(state.to_vec(), 0, self.steps, |k, state| kept.offer(k, || state.into()));
        self.kept = kept;
        last
    }

    /// Pulls the cotangent of the last state back to the first one and the parameters.
    fn pullback(&self, last: &[T], first: &mut [T], parameters: &mut [T]) {
        let mut cotangent = last.to_vec();
        let Ok(()) = self.kept.clone().reverse::<Infallible>(
            |state, from, to| Ok(self.advance(state.to_vec(), from, to).into()),
            |state, from, _| {
                self.pull_step(from, &state, &mut cotangent, parameters);
                Ok(())
            },
        );
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
    let kept = or_panic(
        Kept::new(Schedule::Binomial { slots: snapshots }, steps).map_err(|e| e.in_op("checkpointed")),
    );
    if steps == 0 {
        return state.to_vec();
    }
    let values = |x: &[Var<T>]| -> Vec<T> { x.iter().map(|x| x.inner()).collect() };
    let mut run = Loop { step, steps, parameters: values(parameters), kept };
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
    use crate::schedule::fewest_advances;
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
                // The run, each step once on tape, and the advances of the best schedule less those that the run itself made.
                let mut kept = Kept::new(Schedule::Binomial { slots: snapshots }, steps).unwrap();
                (0..steps).for_each(|k| kept.offer(k, || ()));
                let kept = kept.states().last().unwrap().0;
                let advances = fewest_advances(steps, snapshots);
                assert_eq!(RUN.get(), 2 * steps + advances - kept, "{steps} steps, {snapshots} snapshots");
            }
        }
    }
}
