//! Measuring the kernels of a plan.

use super::Plan;
use crate::backend::{Profile, ProfileRow};
use crate::error::Result;
use crate::tensor::{Tensor, Value};
use std::time::Duration;

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
