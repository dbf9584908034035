//! Where the time of a run goes: by kernel and source line, as a table or as JSON.

use super::Plan;
use crate::error::Result;
use crate::graph::Json;
use crate::tensor::{Tensor, Value};
use std::fmt;
use std::panic::Location;
use std::time::Duration;

/// How long the kernels of a plan took, those that take longest first.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Profile {
    /// One for each kind of kernel and line.
    pub rows: Vec<ProfileRow>,
}

/// The kernels of one kind that come from one line.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProfileRow {
    /// What the kernel does: the name of an operation, or of a group of them.
    pub kernel: &'static str,
    /// The line that it comes from.
    pub location: &'static Location<'static>,
    /// How many there are.
    pub count: usize,
    /// The time of all in one run: the least of several runs.
    pub time: Duration,
    /// The work in one run, as in [`Statistics`](crate::Statistics).
    pub flops: u64,
    /// Bytes read and written in one run.
    pub bytes: u64,
}

/// Runs of which the shortest time counts.
const RUNS: usize = 5;

impl Plan {
    /// Runs the plan several times, and measures each kernel.
    pub fn profile(&self, inputs: &[Tensor]) -> Result<Profile> {
        self.check(inputs)?;
        let values: Vec<Value> = inputs.iter().map(Tensor::value).collect();
        let kernels = &self.program.kernels;
        let mut least = vec![Duration::MAX; kernels.len()];
        // The first run warms up.
        for run in 0..=RUNS {
            let mut clock = vec![Duration::ZERO; kernels.len()];
            let mut frame = self.lease();
            self.lend(&mut frame, inputs);
            self.execute(&mut frame, &values, &mut [], Some(&mut clock))?;
            self.give_back(frame);
            if run > 0 {
                least.iter_mut().zip(clock).for_each(|(least, time)| *least = time.min(*least));
            }
        }
        let mut rows: Vec<ProfileRow> = Vec::new();
        for (kernel, time) in kernels.iter().zip(least) {
            let cost = self.program.cost_of(kernel);
            let (name, location) = (kernel.work.name(), kernel.location);
            let place = rows.iter().position(|r| r.kernel == name && r.location == location);
            let row = place.unwrap_or_else(|| {
                rows.push(ProfileRow {
                    kernel: name,
                    location,
                    count: 0,
                    time: Duration::ZERO,
                    flops: 0,
                    bytes: 0,
                });
                rows.len() - 1
            });
            let row = &mut rows[row];
            row.count += 1;
            row.time += time;
            row.flops += cost.flops;
            row.bytes += cost.bytes_read + cost.bytes_written;
        }
        rows.sort_by_key(|r| std::cmp::Reverse(r.time));
        Ok(Profile { rows })
    }
}

/// A number for each second, in units of 10⁹.
fn rate(n: u64, time: Duration) -> f64 {
    n as f64 / time.as_nanos().max(1) as f64
}

impl Profile {
    /// The time of all kernels.
    pub fn time(&self) -> Duration {
        self.rows.iter().map(|r| r.time).sum()
    }

    /// All rows as JSON: an object with `"nanoseconds"` and a list of `"kernels"`.
    pub fn to_json(&self) -> String {
        let row = |r: &ProfileRow| {
            format!(
                "{{\"kernel\":{},\"location\":{},\"count\":{},\"nanoseconds\":{},\"flops\":{},\"bytes\":{}}}",
                Json(r.kernel),
                Json(&*r.location.to_string()),
                r.count,
                r.time.as_nanos(),
                r.flops,
                r.bytes
            )
        };
        let rows: Vec<String> = self.rows.iter().map(row).collect();
        format!("{{\"nanoseconds\":{},\"kernels\":[{}]}}", self.time().as_nanos(), rows.join(","))
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.time();
        let width = self.rows.iter().map(|r| r.kernel.len()).max().unwrap_or(0).max("kernel".len());
        writeln!(
            f,
            "{:>12}  {:>6}  {:>8}  {:>6}  {:>10}  {:>6}  {:width$}  line",
            "microseconds", "count", "kflop", "GF/s", "kB", "GB/s", "kernel"
        )?;
        for r in &self.rows {
            writeln!(
                f,
                "{:>12.2}  {:>6}  {:>8.1}  {:>6.1}  {:>10.1}  {:>6.1}  {:width$}  {}:{}",
                r.time.as_nanos() as f64 / 1e3,
                r.count,
                r.flops as f64 / 1e3,
                rate(r.flops, r.time),
                r.bytes as f64 / 1e3,
                rate(r.bytes, r.time),
                r.kernel,
                r.location.file(),
                r.location.line()
            )?;
        }
        writeln!(f, "{:>12.2}  in all", total.as_nanos() as f64 / 1e3)
    }
}
