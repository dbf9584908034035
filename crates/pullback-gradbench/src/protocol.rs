//! The messages of GradBench, and how a function is timed.

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use std::time::Instant;

/// What the eval says.
#[derive(Deserialize)]
pub struct Message<'m> {
    pub id: i64,
    pub kind: &'m str,
    pub module: Option<&'m str>,
    pub function: Option<&'m str>,
    /// Not parsed before it is known what it is for: some are tens of megabytes.
    #[serde(borrow)]
    pub input: Option<&'m RawValue>,
}

/// What the tool answers.
#[derive(Serialize)]
pub struct Reply {
    pub id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timings: Option<Vec<Timing>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Reply {
    pub fn to(id: i64) -> Reply {
        Reply { id, tool: None, success: None, output: None, timings: None, error: None }
    }

    pub fn failure(id: i64, error: String) -> Reply {
        Reply { success: Some(false), error: Some(error), ..Reply::to(id) }
    }
}

/// The time of one part of the work.
#[derive(Serialize)]
pub struct Timing {
    name: &'static str,
    nanoseconds: u64,
}

impl Timing {
    fn since(name: &'static str, start: Instant) -> Timing {
        Timing { name, nanoseconds: start.elapsed().as_nanos() as u64 }
    }
}

/// The result of a function, and how long its runs took.
pub struct Answer {
    pub output: Box<RawValue>,
    pub timings: Vec<Timing>,
}

/// What an eval gives for one of its functions.
pub type Outcome = Result<Answer, String>;

/// How often to run; every input but that of `hello` says so.
#[derive(Deserialize)]
struct Repeat {
    #[serde(default = "once")]
    min_runs: usize,
    #[serde(default)]
    min_seconds: f64,
}

fn once() -> usize {
    1
}

/// Reads an input.
pub fn parse<'i, T: Deserialize<'i>>(input: &'i RawValue) -> Result<T, String> {
    serde_json::from_str(input.get()).map_err(|error| error.to_string())
}

/// The outcome for a function that the eval does not have.
pub fn unknown(function: &str) -> Outcome {
    Err(format!("there is no function {function:?}"))
}

/// Prepares once, and runs as often as the input asks. The last result, with the time of each run.
///
/// `run` gets what was prepared, buffers for example; `output` turns the last result into what is sent, outside the time.
pub fn measure<P, R, O: Serialize>(
    input: &RawValue,
    prepare: impl FnOnce() -> P,
    mut run: impl FnMut(&mut P) -> R,
    output: impl FnOnce(&P, R) -> O,
) -> Outcome {
    // The input of `hello` is a bare number.
    let repeat = parse(input).unwrap_or(Repeat { min_runs: 1, min_seconds: 0.0 });
    let start = Instant::now();
    let mut prepared = prepare();
    let mut timings = vec![Timing::since("prepare", start)];
    let (mut runs, mut nanoseconds) = (0, 0);
    loop {
        let start = Instant::now();
        let result = run(&mut prepared);
        let timing = Timing::since("evaluate", start);
        runs += 1;
        nanoseconds += timing.nanoseconds;
        timings.push(timing);
        if runs >= repeat.min_runs && nanoseconds as f64 * 1e-9 >= repeat.min_seconds {
            let output = to_raw_value(&output(&prepared, result)).map_err(|error| error.to_string())?;
            return Ok(Answer { output, timings });
        }
    }
}
