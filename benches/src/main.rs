//! Runs benchmark tasks on request, one line in and one line out, so that `benches/run` can alternate between this and a peer.

mod compiled;
mod eager;
mod memory;
mod scalar;
mod task;

use std::io::{self, BufRead, Write};
use std::time::Duration;
use task::Task;

fn main() -> io::Result<()> {
    let tasks: Vec<Task> =
        [eager::tasks(), compiled::tasks(), scalar::tasks()].into_iter().flatten().collect();
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        match answer(&tasks, &words) {
            Some(text) => writeln!(out, "{text}")?,
            None => writeln!(out, "error: cannot read {line:?}")?,
        }
        out.flush()?;
    }
    Ok(())
}

/// The protocol:
///
/// ```text
/// hello                          -> name and version
/// list SUITE                     -> the names of its tasks
/// time TASK THREADS SECONDS      -> seconds of each repetition, for about that long
/// turns TASK OTHER THREADS SECONDS
///                                -> seconds of both, in turn, for about that long
/// first TASK THREADS             -> seconds that the first repetition takes beyond a later one
/// memory THREADS                 -> peak bytes above what the process held before: a deep network
/// memory TASK THREADS            -> the same of repetitions of a task
/// ```
fn answer(tasks: &[Task], words: &[&str]) -> Option<String> {
    match words {
        ["hello"] => Some(format!("Pullback {}", env!("CARGO_PKG_VERSION"))),
        ["list", suite] => {
            let of_suite = tasks.iter().filter(|t| t.suite == *suite);
            Some(of_suite.map(|t| t.name.as_str()).collect::<Vec<_>>().join(" "))
        }
        ["time", name, threads, seconds] => {
            let task = tasks.iter().find(|t| t.name == *name)?;
            pullback::set_num_threads(threads.parse().ok()?);
            let samples = task.time(Duration::from_secs_f64(seconds.parse().ok()?));
            Some(samples.iter().map(|s| format!("{s:.4e}")).collect::<Vec<_>>().join(" "))
        }
        ["turns", first, second, threads, seconds] => {
            let named = |name: &str| tasks.iter().find(|t| t.name == name);
            pullback::set_num_threads(threads.parse().ok()?);
            let pairs = named(first)?.turns(named(second)?, Duration::from_secs_f64(seconds.parse().ok()?));
            Some(pairs.iter().map(|(a, b)| format!("{a:.4e} {b:.4e}")).collect::<Vec<_>>().join(" "))
        }
        ["first", name, threads] => {
            let task = tasks.iter().find(|t| t.name == *name)?;
            pullback::set_num_threads(threads.parse().ok()?);
            Some(format!("{:.4e}", task.latency()))
        }
        ["memory", name, threads] => {
            let task = tasks.iter().find(|t| t.name == *name)?;
            pullback::set_num_threads(threads.parse().ok()?);
            Some(memory::of(task).to_string())
        }
        ["memory", threads] => {
            pullback::set_num_threads(threads.parse().ok()?);
            Some(memory::deep_network().to_string())
        }
        _ => None,
    }
}
