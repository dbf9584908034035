//! The line protocol of `benches/src/main.rs`, for peers in Rust.

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

/// Makes the data, and returns what to repeat.
pub type SetUp = Box<dyn Fn() -> Box<dyn FnMut()>>;

/// A task: its name, how many units one repetition does, and how it is set up.
pub struct Task(pub &'static str, pub usize, pub SetUp);

fn samples(task: &Task, budget: Duration) -> Vec<f64> {
    let mut run = task.2();
    (0..3).for_each(|_| run());
    let start = Instant::now();
    let mut found = Vec::new();
    while found.len() < 3 || (start.elapsed() < budget && found.len() < 200) {
        let begin = Instant::now();
        run();
        found.push(begin.elapsed().as_secs_f64() / task.1 as f64);
    }
    found
}

/// Answers requests until they end.
pub fn serve(name: &str, tasks: &[Task]) {
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("standard input can be read");
        let answer = match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["hello"] => name.to_string(),
            ["list", _] => tasks.iter().map(|task| task.0).collect::<Vec<_>>().join(" "),
            ["time", wanted, _, seconds] => match tasks.iter().find(|task| task.0 == *wanted) {
                Some(task) => {
                    let budget = Duration::from_secs_f64(seconds.parse().expect("seconds"));
                    samples(task, budget).iter().map(|s| format!("{s:.4e}")).collect::<Vec<_>>().join(" ")
                }
                None => "error: no such task".to_string(),
            },
            _ => "error: cannot read".to_string(),
        };
        println!("{answer}");
        std::io::stdout().flush().expect("standard output can be written");
    }
}
