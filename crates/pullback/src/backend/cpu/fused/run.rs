//! Running a program: block by block, tile by tile, instruction by instruction.

use super::ahead::Ahead;
use super::code::{Action, Code, Home, Instruction, Operand, Shifted};
use super::function::Loops;
use super::gather::Bound;
use super::geometry::{Geometry, Rectangle};
use super::lower::Reach;
use super::space::Extent;
use super::{Real, Source};
use crate::kernels::parallel;
use crate::kernels::poison::{POISONED, poison};
use crate::kernels::scratch::with_scratch;
use crate::ops::Reduction;
use smallvec::SmallVec;

/// One run: a program with its inputs and outputs.
pub(super) struct Run<'a, F: 'static> {
    code: &'a Code<F>,
    shape: &'a Geometry,
    loads: SmallVec<[Bound; 8]>,
    outputs: &'a [*mut u8],
    /// Outputs that share memory with an input: they are written when the tile has been read.
    staged: SmallVec<[bool; 8]>,
    /// Partial results of the accumulators, each in the order of its blocks.
    partial: SmallVec<[*mut F; 4]>,
}

// SAFETY: inputs are only read; of outputs and partial results each block writes its own part.
unsafe impl<F> Sync for Run<'_, F> {}

/// Tenths of a nanosecond that are worth another thread.
const GRAIN: usize = 1_000_000;

/// Runs a program.
///
/// # Safety
/// Inputs and outputs have the types and shapes that the program was compiled for; outputs have no gaps and lie apart from each
/// other. An output may be the memory of an input that [`Program::may_share`](super::Program::may_share) allows. What is made
/// `ahead` is an input.
pub(super) unsafe fn run<F: Real>(
    code: &Code<F>,
    shape: &Geometry,
    inputs: &[Source],
    outputs: &[*mut u8],
    staged: SmallVec<[bool; 8]>,
    ahead: Option<Ahead>,
) {
    let bind = |l: &super::lower::Load| Bound::new(l, inputs[l.input].start, inputs[l.input].strides);
    let sizes = code.accumulators.iter().map(|a| partials(a.to, shape));
    let mut partials: SmallVec<[SmallVec<[F; 4]>; 2]> =
        sizes.map(|n| SmallVec::from_elem(F::ZERO, n)).collect();
    partials.iter_mut().for_each(|p| poison(p));
    let run = Run {
        code,
        shape,
        loads: code.loads.iter().map(bind).collect(),
        outputs,
        staged,
        partial: partials.iter_mut().map(|p| p.as_mut_ptr()).collect(),
    };
    let (unit, work) = ahead.as_ref().map_or((1, 0), |a| (a.unit, a.work));
    let mut grain = (GRAIN / ((code.work + work + 4) * shape.block_size()).max(1)).max(unit);
    if ahead.is_some() {
        // Each piece packs the other factor again, so a thread gets two of them and not many.
        grain = grain.max(shape.blocks() / (2 * parallel::num_threads()));
    }
    parallel::split(shape.blocks(), grain, unit, |blocks| {
        with_scratch(run.scratch_size(), shape.rows * shape.cols * size_of::<F>(), |memory| {
            let mut worker = Worker::new(&run, memory);
            let step = ahead.as_ref().map_or(blocks.len(), |a| a.step);
            for start in blocks.clone().step_by(step) {
                let some = start..(start + step).min(blocks.end);
                if let Some(ahead) = &ahead {
                    ahead.make(some.clone());
                }
                some.for_each(|b| worker.block(b));
            }
        });
    });
    drop(run);
    for (a, mut partial) in code.accumulators.iter().zip(partials) {
        let width = match a.to {
            Extent::Columns => shape.cols,
            Extent::Row => shape.rows,
            _ => 1,
        };
        tree(a.fold, &mut partial, width);
        // SAFETY: the output has one element for each column, each row, or one.
        unsafe { std::ptr::copy_nonoverlapping(partial.as_ptr(), outputs[a.output].cast::<F>(), width) };
    }
}

/// How many partial results a reduction leaves.
fn partials(to: Extent, shape: &Geometry) -> usize {
    match to {
        Extent::Columns => shape.row_blocks * shape.cols,
        Extent::Row => shape.col_blocks * shape.rows,
        _ => shape.blocks(),
    }
}

/// Combines rows of `width` pairwise until one is left, always in the same order.
fn tree<F: Real>(fold: Reduction, all: &mut [F], width: usize) {
    let mut rows = all.len() / width;
    while rows > 1 {
        let half = rows.div_ceil(2);
        let (low, high) = all[..rows * width].split_at_mut(half * width);
        F::merge(fold, &mut low[..high.len()], high);
        rows = half;
    }
}

impl<F: Real> Run<'_, F> {
    /// Elements of a register, with a little more so that registers do not lie a multiple of the page size apart.
    fn pitch(&self) -> usize {
        (self.shape.tile_size() + self.code.beyond).next_multiple_of(16) + 16
    }

    fn row_pitch(&self) -> usize {
        self.shape.tile_rows.next_multiple_of(16)
    }

    fn columns(&self) -> usize {
        self.shape.tile_size().max(self.shape.block_width())
    }

    fn scratch_size(&self) -> usize {
        let staged = self.staged.iter().filter(|s| **s).count();
        let columns = self.code.accumulators.iter().filter(|a| a.to == Extent::Columns).count();
        (self.code.full_registers + staged) * self.pitch()
            + self.code.row_registers * self.row_pitch()
            + columns * self.columns()
    }
}

/// What one thread needs for its blocks.
struct Worker<'a, F: 'static> {
    run: &'a Run<'a, F>,
    /// Values have spans of their own.
    shifted: bool,
    /// The register of each slot.
    home: SmallVec<[*mut F; 32]>,
    /// Where each slot is now: in its register, or where an input or output has it.
    at: SmallVec<[*mut F; 32]>,
    /// Where outputs that share memory are written first.
    stages: SmallVec<[(usize, *mut F); 4]>,
    /// Sums of columns, for each accumulator that has them.
    columns: SmallVec<[*mut F; 4]>,
    /// Results of the tiles of a block, or of a row.
    tiles: SmallVec<[SmallVec<[F; 32]>; 2]>,
}

impl<'a, F: Real> Worker<'a, F> {
    fn new(run: &'a Run<'a, F>, memory: *mut F) -> Self {
        let code = run.code;
        // SAFETY: the memory has the size of all that is taken of it.
        let after = |start: *mut F, n: usize| unsafe { start.add(n) };
        let rows = after(memory, code.full_registers * run.pitch());
        let mut next = after(rows, code.row_registers * run.row_pitch());
        let mut take = |n: usize| {
            let here = next;
            next = after(here, n);
            here
        };
        let staged = (0..run.staged.len()).filter(|&o| run.staged[o]);
        let stages: SmallVec<[(usize, *mut F); 4]> = staged.map(|o| (o, take(run.pitch()))).collect();
        let columns = code.accumulators.iter().map(|a| match a.to {
            Extent::Columns => take(run.columns()),
            _ => std::ptr::null_mut(),
        });
        let columns = columns.collect();
        let place = |p: &Home| match *p {
            Home::Full(r, before) => after(memory, r * run.pitch()).wrapping_offset(before as isize),
            Home::Row(r) => after(rows, r * run.row_pitch()),
            Home::Number(k) => (&raw const code.numbers[k]).cast_mut(),
            Home::Output(o) => stages.iter().find(|s| s.0 == o).map_or(std::ptr::null_mut(), |s| s.1),
            Home::Shared => std::ptr::null_mut(),
        };
        let home: SmallVec<[*mut F; 32]> = code.places.iter().map(place).collect();
        let tiles = SmallVec::from_elem(SmallVec::new(), code.accumulators.len());
        Worker { run, shifted: code.shifted, at: home.clone(), home, stages, columns, tiles }
    }

    fn block(&mut self, number: usize) {
        let (code, shape) = (self.run.code, self.run.shape);
        let block = shape.block(number);
        for (k, a) in code.accumulators.iter().enumerate() {
            self.tiles[k].clear();
            if a.to == Extent::Columns {
                // SAFETY: the memory of this accumulator.
                unsafe { slice_mut(self.columns[k], self.run.columns()) }.fill(F::identity(a.fold));
            }
        }
        let tallest =
            Rectangle { rows: 0..shape.tile_rows.min(shape.rows), cols: 0..shape.tile_cols.min(shape.cols) };
        // SAFETY: a register holds the tallest tile.
        code.first.iter().for_each(|i| unsafe { self.step(i, &tallest, &block) });
        for tile in shape.tiles(block.clone()) {
            if POISONED {
                self.poison();
            }
            for (slot, place) in code.places.iter().enumerate() {
                if let Home::Output(o) = *place
                    && !self.run.staged[o]
                {
                    self.at[slot] = self.output(o, self.start(&tile));
                }
            }
            // SAFETY: slots were set for this tile, or are set by its instructions before they are read.
            code.tile.iter().for_each(|i| unsafe { self.step(i, &tile, &block) });
            let size = tile.rows.len() * tile.cols.len();
            for &(o, stage) in &self.stages {
                // SAFETY: the tile of the output, all of whose other readers are done.
                unsafe {
                    let at = self.start(&tile);
                    let size = size.min(code.lengths[o].saturating_sub(at));
                    std::ptr::copy_nonoverlapping(stage, self.output::<F>(o, at), size);
                }
            }
            if tile.cols.end == block.cols.end {
                self.end_row(&tile, number);
            }
        }
        self.end_block(&block, number);
    }

    /// Says that no register has anything that a new tile may read, but for what is there for all tiles of a block.
    fn poison(&mut self) {
        let (code, run) = (self.run.code, self.run);
        let kept = |slot: &usize| !code.first.iter().any(|i| i.to == *slot);
        for slot in (0..code.places.len()).filter(kept) {
            let (first, n) = match code.places[slot] {
                Home::Full(_, before) => (-(before as isize), run.pitch()),
                Home::Row(_) => (0, run.row_pitch()),
                Home::Number(_) | Home::Output(_) | Home::Shared => continue,
            };
            // SAFETY: the register of the slot, as long as it is.
            poison(unsafe { slice_mut(self.home[slot].wrapping_offset(first), n) });
        }
        for &(_, stage) in &self.stages {
            // SAFETY: the memory of an output that is written when the tile has been read.
            poison(unsafe { slice_mut(stage, run.pitch()) });
        }
    }

    /// The first element of a tile.
    fn start(&self, tile: &Rectangle) -> usize {
        tile.rows.start * self.run.shape.cols + tile.cols.start
    }

    /// Where element `at` of an output of type `T` is, or would be.
    fn output<T>(&self, output: usize, at: usize) -> *mut T {
        self.run.outputs[output].cast::<T>().wrapping_add(at)
    }

    /// # Safety
    /// Slots point to as many elements as their extent has in a tile, and the result of an instruction lies apart from its operands.
    unsafe fn step(&mut self, i: &Instruction<F>, tile: &Rectangle, block: &Rectangle) {
        let (height, width) = (tile.rows.len(), tile.cols.len());
        // The first place relative to the tile, and how many.
        let (mut lead, mut size) = (0, if i.extent == Extent::Full { height * width } else { height });
        if self.shifted && i.extent == Extent::Full {
            (lead, size) = i.span.within(self.start(tile), size);
            if size == 0 {
                return;
            }
        }
        let first = || self.at[i.x[0].slot].wrapping_offset(lead);
        let to = || self.at[i.to].wrapping_offset(lead);
        // SAFETY: by the caller's promise.
        unsafe {
            match i.action {
                Action::Map(loops) => {
                    let full = i.extent == Extent::Full && height > 1;
                    let by_row = full && i.x.iter().any(|x| x.extent == Extent::Row);
                    if !by_row {
                        return self.map(loops, i, lead, 0, size);
                    }
                    (0..height).for_each(|r| self.map(loops, i, (r * width) as isize, r, width));
                }
                Action::Pair(both, second) => both(
                    slice(first(), size),
                    slice_mut(to(), size),
                    slice_mut(self.at[second].wrapping_offset(lead), size),
                ),
                Action::Fold(fold) => {
                    let rows = slice(first(), height * width).chunks_exact(width);
                    let out = slice_mut(to(), height);
                    out.iter_mut().zip(rows).for_each(|(o, row)| *o = F::fold(fold, row));
                }
                Action::Spread => {
                    let x = self.at[i.x[0].slot];
                    match i.x[0].extent {
                        Extent::Row if height > 1 => {
                            let rows = slice_mut(to(), size).chunks_exact_mut(width).zip(slice(x, height));
                            rows.for_each(|(row, &v)| row.fill(v));
                        }
                        _ => slice_mut(to(), size).fill(*x),
                    }
                }
                Action::Shift(s) => self.shift(&self.run.code.shifts[s], i, self.start(tile), lead, size),
                Action::Load(l) => self.load(l, i.to, lead, size, tile),
                Action::Store { output, truth } => {
                    self.store(output, truth, slice(first(), size), i.extent, tile)
                }
                Action::Accumulate(k) => {
                    let (a, x) = (&self.run.code.accumulators[k], slice(first(), size));
                    match a.to {
                        Extent::Columns => {
                            let to = self.columns[k].add(tile.cols.start - block.cols.start);
                            F::merge(a.fold, slice_mut(to, size), x);
                        }
                        // A value of the rows counts once, not for each tile of a long row.
                        _ if a.of == Extent::Row && tile.cols.start > 0 => {}
                        _ => self.tiles[k].push(F::fold(a.fold, x)),
                    }
                }
            }
        }
    }

    /// # Safety
    /// The output has the elements of the tile.
    unsafe fn store(&self, output: usize, truth: bool, x: &[F], extent: Extent, tile: &Rectangle) {
        let at = match extent {
            Extent::Full => self.start(tile),
            // The other tiles of a long row have the same to say.
            _ if tile.cols.start > 0 => return,
            _ => tile.rows.start,
        };
        // SAFETY: by the caller's promise.
        unsafe {
            if truth {
                let out = slice_mut(self.output::<u8>(output, at), x.len());
                out.iter_mut().zip(x).for_each(|(o, &x)| *o = (x != F::ZERO) as u8);
            } else {
                let stage = self.stages.iter().find(|s| s.0 == output);
                let to = stage.map_or_else(|| self.output::<F>(output, at), |s| s.1);
                slice_mut(to, x.len()).copy_from_slice(x);
            }
        }
    }

    /// The `size` elements of an input from `lead` on, counted from the tile's first.
    ///
    /// # Safety
    /// The input has these elements, and the slot's register holds them.
    unsafe fn load(&mut self, l: usize, to: usize, lead: isize, size: usize, tile: &Rectangle) {
        let (run, load) = (self.run, &self.run.code.loads[l]);
        let parts = || [l].into_iter().chain(load.others.iter().copied()).map(|l| &run.loads[l]);
        let (at, size, copies) = match load.reach {
            Reach::One => (0, 1, 1),
            Reach::Column => (tile.cols.start, tile.cols.len(), tile.rows.len()),
            Reach::Row => (tile.rows.start, size, 1),
            Reach::Full => (self.start(tile), size, 1),
        };
        let from = at.wrapping_add_signed(lead);
        let in_place = || parts().find_map(|part| part.in_place::<F>(at, (from, from + size)));
        if copies == 1
            && let Some(there) = in_place()
        {
            self.at[to] = there.cast_mut();
            return;
        }
        self.at[to] = self.home[to];
        let register = self.home[to].wrapping_offset(lead);
        // SAFETY: by the caller's promise.
        unsafe {
            parts().for_each(|part| part.gather(from, slice_mut(register, size)));
            (1..copies).for_each(|r| std::ptr::copy_nonoverlapping(register, register.add(r * size), size));
        }
    }

    /// A value at other places: where it is, if all of these have elements of it, or can be filled there; else a copy.
    ///
    /// # Safety
    /// The value has these elements, and the register of the value or that of the slot holds all places.
    unsafe fn shift(
        &mut self,
        Shifted { shift, beside }: &Shifted,
        i: &Instruction<F>,
        at: usize,
        lead: isize,
        size: usize,
    ) {
        let there = self.at[i.x[0].slot].wrapping_offset(shift.by);
        let first = at.wrapping_add_signed(lead);
        let clip = |place: usize| place.saturating_sub(first).min(size);
        let inside = clip(shift.inside.0)..clip(shift.inside.1);
        self.at[i.to] = if inside.len() == size || *beside { there } else { self.home[i.to] };
        if inside.len() == size {
            return;
        }
        let fill = F::from_f64(shift.fill.get());
        let out = self.at[i.to].wrapping_offset(lead);
        // SAFETY: by the caller's promise.
        unsafe {
            if *beside {
                slice_mut(out, inside.start).fill(fill);
                slice_mut(out.wrapping_add(inside.end), size - inside.end).fill(fill);
                return;
            }
            let out = slice_mut(out, size);
            out.fill(fill);
            if !inside.is_empty() {
                let from = there.wrapping_offset(lead + inside.start as isize);
                out[inside.clone()].copy_from_slice(slice(from, inside.len()));
            }
        }
    }

    /// # Safety
    /// As in [`step`](Worker::step); `row` is that of the row values.
    unsafe fn map(&self, loops: Loops<F>, i: &Instruction<F>, at: isize, row: usize, n: usize) {
        let is_vector = |x: Operand| x.extent == i.extent;
        // SAFETY: by the caller's promise.
        unsafe {
            let vector = |k: usize| slice(self.at[i.x[k].slot].wrapping_offset(at), n);
            let number = |k: usize| match i.x[k].extent {
                Extent::Row => *self.at[i.x[k].slot].add(row),
                _ => *self.at[i.x[k].slot],
            };
            let out = slice_mut(self.at[i.to].wrapping_offset(at), n);
            match loops {
                Loops::One(f) => f(vector(0), out),
                Loops::Two { both, right, left } => match (is_vector(i.x[0]), is_vector(i.x[1])) {
                    (true, true) => both(vector(0), vector(1), out),
                    (true, false) => right(vector(0), number(1), out),
                    (false, _) => left(number(0), vector(1), out),
                },
                Loops::Three { all, middle, last, rest } => match (is_vector(i.x[1]), is_vector(i.x[2])) {
                    (true, true) => all(vector(0), vector(1), vector(2), out),
                    (false, true) => middle(vector(0), number(1), vector(2), out),
                    (true, false) => last(vector(0), vector(1), number(2), out),
                    (false, false) => rest(vector(0), number(1), number(2), out),
                },
            }
        }
    }

    /// After the last tile of a row within a block: the sums of rows that are longer than a tile.
    fn end_row(&mut self, tile: &Rectangle, number: usize) {
        let shape = self.run.shape;
        for (k, a) in self.run.code.accumulators.iter().enumerate().filter(|(_, a)| a.to == Extent::Row) {
            tree(a.fold, &mut self.tiles[k], 1);
            let place = number % shape.col_blocks * shape.rows + tile.rows.start;
            // SAFETY: the partial result of this row in this block.
            unsafe { *self.run.partial[k].add(place) = self.tiles[k][0] };
            self.tiles[k].clear();
        }
    }

    fn end_block(&mut self, block: &Rectangle, number: usize) {
        let shape = self.run.shape;
        for (k, a) in self.run.code.accumulators.iter().enumerate() {
            match a.to {
                Extent::Columns => {
                    // Rows that the block did not have are as they were at the start.
                    let (width, height) = (block.cols.len(), shape.tile_rows);
                    let place = number / shape.col_blocks * shape.cols + block.cols.start;
                    // SAFETY: the memory of this accumulator, and the partial results of this block.
                    unsafe {
                        let all = slice_mut(self.columns[k], width * height);
                        tree(a.fold, all, width);
                        slice_mut(self.run.partial[k].add(place), width).copy_from_slice(&all[..width]);
                    }
                }
                Extent::Row => {}
                _ => {
                    let mut total = F::identity(a.fold);
                    if !self.tiles[k].is_empty() {
                        tree(a.fold, &mut self.tiles[k], 1);
                        total = self.tiles[k][0];
                    }
                    // SAFETY: the partial result of this block.
                    unsafe { *self.run.partial[k].add(number) = total };
                }
            }
        }
    }
}

/// # Safety
/// There are `n` elements that nobody writes to as long as the slice is used.
unsafe fn slice<'a, F>(at: *const F, n: usize) -> &'a [F] {
    // SAFETY: by the caller's promise.
    unsafe { std::slice::from_raw_parts(at, n) }
}

/// # Safety
/// There are `n` elements that nobody else uses as long as the slice is used.
unsafe fn slice_mut<'a, F>(at: *mut F, n: usize) -> &'a mut [F] {
    // SAFETY: by the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(at, n) }
}
