//! How long the values of a program live.

use super::lower::{Program, Work};
use crate::tensor::buffer::Buffer;

/// How long each register is needed, for kernels in a given order.
pub(crate) struct Liveness {
    /// The bytes of each register, rounded as memory is.
    pub bytes: Vec<usize>,
    /// The place in the order of the kernel that writes it, and of the last one that reads it.
    pub spans: Vec<(usize, usize)>,
    /// The most bytes that are alive at once.
    pub peak: usize,
}

/// The bytes of each register, rounded as memory is.
pub(crate) fn sizes<W>(program: &Program<W>) -> Vec<usize> {
    program.registers.iter().map(|a| Buffer::rounded(a.shape.numel() * a.dtype.size())).collect()
}

impl Liveness {
    /// Of the kernels in the order they stand in, or in another one.
    pub fn new<W: Work>(program: &Program<W>, order: &[usize]) -> Liveness {
        let bytes = sizes(program);
        let end = order.len();
        let mut spans = vec![(0, 0); bytes.len()];
        for (at, &k) in order.iter().enumerate() {
            program.kernels[k].results.clone().for_each(|r| spans[r] = (at, at));
            program.kernels[k].reads().for_each(|r| spans[r].1 = at);
        }
        for (r, escapes) in program.escaping().into_iter().enumerate() {
            if escapes {
                spans[r].1 = end;
            }
        }
        let mut dying = vec![0usize; end + 1];
        // Donated inputs are not memory of ours.
        let own = program.donated.len()..;
        spans[own.clone()].iter().zip(&bytes[own]).for_each(|(&(_, last), bytes)| dying[last] += bytes);
        let (mut live, mut peak) = (0usize, 0usize);
        for (at, &k) in order.iter().enumerate() {
            live += program.kernels[k].results.clone().map(|r| bytes[r]).sum::<usize>();
            peak = peak.max(live + program.kernels[k].work.scratch());
            live -= dying[at];
        }
        Liveness { bytes, spans, peak }
    }
}
