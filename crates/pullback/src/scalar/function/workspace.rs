//! The memory that programs run in, kept by each thread from call to call: at few points an allocation would take as long as the program.

use super::program::Program;
use std::cell::Cell;

/// Partial sums of an output: one vector of the widest kind.
pub(super) const PARTS: usize = 8;

/// One vector of the widest kind, at its boundary.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line(pub [f64; PARTS]);

/// The values of one slot, a lane for each of `L` points; `L` is a multiple of a line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Slot<const L: usize>(pub [f64; L]);

/// The memory of a thread.
#[derive(Default)]
pub(super) struct Workspace {
    slots: Vec<Line>,
    /// Partial sums of outputs.
    pub parts: Vec<Line>,
}

/// More than so many lines are given back after use.
const MAX_CACHED_LINES: usize = 1 << 15;

thread_local! {
    static CACHED: Cell<Workspace> = Cell::default();
}

impl Workspace {
    /// What this thread has kept. It is no function of a closure: that would be compiled for every processor, and not for the one at hand.
    pub fn take() -> Workspace {
        CACHED.take()
    }

    /// Leaves the memory to the next call.
    pub fn keep(self) {
        if self.slots.len() + self.parts.len() <= MAX_CACHED_LINES {
            CACHED.set(self);
        }
    }

    /// Slots for blocks of `L` points, those of the constants filled, and the partial sums. Other slots hold what was left in them.
    #[inline(always)]
    pub fn slots_and_parts<const L: usize>(&mut self, program: &Program) -> (&mut [Slot<L>], &mut [Line]) {
        const { assert!(L.is_multiple_of(PARTS)) };
        let lines = program.slots * (L / PARTS);
        if self.slots.len() < lines {
            self.slots.resize(lines, Line([0.0; PARTS]));
        }
        // SAFETY: a slot is `L / PARTS` lines, of which there are enough, and has their alignment and no invalid values.
        let slots = unsafe {
            std::slice::from_raw_parts_mut(self.slots.as_mut_ptr().cast::<Slot<L>>(), program.slots)
        };
        for &(value, slot) in &program.constants {
            slots[slot as usize].0.fill(value);
        }
        (slots, &mut self.parts)
    }
}
