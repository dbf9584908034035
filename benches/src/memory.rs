//! The peak of memory of one pass through a deep network, forward and backward.

use crate::task::Task;
use pullback::{DType, Key, Tensor, value_and_grad};
use std::fs;

const LAYERS: u64 = 50;
const WIDTH: usize = 512;
const BATCH: usize = 1024;

/// Bytes of resident memory at the peak, above what the process held with weights and input made.
///
/// The weights and the input count for neither side, the gradients of the weights do.
pub fn deep_network() -> u64 {
    let random = |seed, shape: [usize; 2]| Tensor::randn(Key::new(seed), shape, DType::F32);
    let weights: Vec<Tensor> = (0..LAYERS).map(|k| random(k, [WIDTH, WIDTH]) * 0.06).collect();
    let x = random(LAYERS, [BATCH, WIDTH]);
    let loss =
        |weights: &Vec<Tensor>| weights.iter().fold(x.clone(), |x, w| x.matmul(w).tanh()).square().mean();
    // The threads, and whatever else is made once, are there before the measurement.
    value_and_grad(loss)(&weights[..1].to_vec());
    pullback::memory::set_pool_limit(0);
    pullback::memory::set_pool_limit(1 << 30);
    let before = reset_peak();
    let (_, gradients) = value_and_grad(loss)(&weights);
    let peak = status("VmHWM:");
    assert_eq!(gradients.len(), weights.len());
    peak - before
}

/// Starts a new measurement of the peak, and returns what is resident now.
fn reset_peak() -> u64 {
    fs::write("/proc/self/clear_refs", "5").expect("the peak can be reset on Linux");
    status("VmRSS:")
}

/// A line of `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("memory is measured on Linux");
    let line = text.lines().find_map(|l| l.strip_prefix(name)).expect("the kernel reports it");
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kibibytes * 1024
}

/// The same for a task that makes its data first, and then repeats something.
pub fn of(task: &Task) -> u64 {
    let mut run = (task.set_up)();
    let before = reset_peak();
    (0..3).for_each(|_| run());
    status("VmHWM:").saturating_sub(before)
}
