//! One thing to measure.

use std::time::{Duration, Instant};

/// A measurement by name. A peer has a task of the same name that does the same.
pub struct Task {
    pub suite: &'static str,
    /// `group/what`; the group is a section of the report.
    pub name: String,
    /// How many units one repetition does: the operations of a chain, else 1.
    pub units: usize,
    /// Makes the data, and returns what to repeat.
    pub set_up: Box<dyn Fn() -> Box<dyn FnMut()>>,
}

/// Repetitions that are made in any case.
const FEWEST: usize = 3;

impl Task {
    pub fn new<F: FnMut() + 'static>(name: impl Into<String>, set_up: impl Fn() -> F + 'static) -> Task {
        let set_up = Box::new(move || Box::new(set_up()) as Box<dyn FnMut()>);
        Task { suite: "eager", name: name.into(), units: 1, set_up }
    }

    /// In another suite than the eager one.
    pub fn of(self, suite: &'static str) -> Task {
        Task { suite, ..self }
    }

    pub fn units(self, units: usize) -> Task {
        Task { units, ..self }
    }

    /// Seconds for the first repetition, which compiles, beyond what a later one takes.
    pub fn latency(&self) -> f64 {
        let mut run = (self.set_up)();
        let mut timed = || {
            let begin = Instant::now();
            run();
            begin.elapsed().as_secs_f64()
        };
        let first = timed();
        let later = (0..5).map(|_| timed()).fold(f64::INFINITY, f64::min);
        first - later
    }

    /// Seconds for one unit, of each repetition within about `budget`, after three to warm up.
    pub fn time(&self, budget: Duration) -> Vec<f64> {
        const MOST: usize = 200;
        let mut run = (self.set_up)();
        (0..FEWEST).for_each(|_| run());
        let start = Instant::now();
        let mut samples = Vec::new();
        while samples.len() < FEWEST || (start.elapsed() < budget && samples.len() < MOST) {
            let begin = Instant::now();
            run();
            samples.push(begin.elapsed().as_secs_f64() / self.units as f64);
        }
        samples
    }

    /// Seconds for one repetition of this task and of another, in turn within about `budget`. What is compared takes equally long: of the
    /// shorter one several repetitions, and of both as many as make a millisecond.
    pub fn turns(&self, other: &Task, budget: Duration) -> Vec<(f64, f64)> {
        const LEAST: f64 = 1e-3;
        let [mut first, mut second] = [(self.set_up)(), (other.set_up)()];
        let timed = |run: &mut Box<dyn FnMut()>, times: usize| {
            let begin = Instant::now();
            (0..times).for_each(|_| run());
            begin.elapsed().as_secs_f64() / times as f64
        };
        let usual = |run: &mut Box<dyn FnMut()>| (0..5).map(|_| timed(run, 1)).fold(f64::INFINITY, f64::min);
        let (a, b) = (usual(&mut first), usual(&mut second));
        let length = a.max(b).max(LEAST);
        let times = [a, b].map(|t| (length / t).round().max(1.0) as usize);
        let start = Instant::now();
        let mut pairs = Vec::new();
        while pairs.len() < FEWEST || start.elapsed() < budget {
            pairs.push((timed(&mut first, times[0]), timed(&mut second, times[1])));
        }
        pairs
    }
}
