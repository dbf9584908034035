//! Where the time of a run goes: by kernel and source line, as a table or as JSON.

use crate::graph::Json;
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
