//! Reverse mode: the tape, on which operations on variables leave what the derivatives need.

mod few;
mod idle;
mod many;
mod preaccumulate;
pub(in crate::scalar) mod slot;
mod store;
mod sweep;

pub use few::gradient_at;
pub(super) use idle::with_idle_tape;
pub use idle::{free_tapes, record};
pub(in crate::scalar) use many::Gather;
pub use many::external;
pub(in crate::scalar) use preaccumulate::preaccumulate;
pub use slot::Taped;
pub(in crate::scalar) use store::out_of_memory;

use super::Var;
use many::Kind;
use slot::{Installed, SlotView};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};
use store::Store;

/// Memory for the records of one computation at a time, kept from one to the next.
///
/// The convenience functions ([`gradient`](super::gradient) and so on) use a tape of their own; take one in hand to
/// record several outputs, to sweep several times, or to rewind.
///
/// ```
/// use pullback::scalar::Tape;
/// let mut tape = Tape::new();
/// let (dx, dy) = tape.record(|t| {
///     let (x, y) = (t.input(3.0), t.input(2.0));
///     let z = x * y + y;
///     (t.derivative(z, x), t.derivative(z, y))
/// });
/// assert_eq!((dx, dy), (2.0, 4.0));
/// ```
pub struct Tape<T: Taped = f64> {
    store: Box<Store<T>>,
}

impl<T: Taped> Default for Tape<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Taped> Tape<T> {
    /// An empty tape. It allocates when the first operation is recorded.
    pub fn new() -> Self {
        Tape { store: Box::new(Store::new()) }
    }

    /// Runs `f` with this tape recording on the current thread, from a clean start.
    ///
    /// Variables are of use inside `f` only. A tape started inside `f` takes over until it ends; it must not meet
    /// variables of the outer one (nest their types instead, `Var<Var>`).
    pub fn record<R>(&mut self, f: impl FnOnce(&Recording<'_, T>) -> R) -> R {
        // SAFETY: the store is borrowed mutably for as long as the guard lives, and reached through the guard only. The
        // guard is a local of this function, so that guards nest as calls do.
        let installed = unsafe { Installed::new(&raw mut *self.store, new_generation()) };
        f(&Recording { installed, tape: PhantomData })
    }

    /// Bytes of memory held. The four that a `mul_add` takes besides its record are not counted: other records do not need them.
    pub fn bytes(&self) -> usize {
        self.store.bytes()
    }
}

/// A number that no other recording has had (until 2^32 later ones).
fn new_generation() -> u32 {
    /// So many at a time are taken by a thread: an atomic addition takes as long as some records.
    const BLOCK: u32 = 1 << 10;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local!(static LAST: Cell<u32> = const { Cell::new(BLOCK - 1) });
    let mut next = LAST.get().wrapping_add(1);
    if next.is_multiple_of(BLOCK) {
        next = NEXT.fetch_add(BLOCK, Ordering::Relaxed);
    }
    LAST.set(next);
    next
}

/// A place on a tape that [`Recording::rewind`] can go back to.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    node: u32,
    generation: u32,
}

/// A tape that is recording.
pub struct Recording<'t, T: Taped> {
    installed: Installed<T>,
    tape: PhantomData<&'t mut Tape<T>>,
}

impl<T: Taped> Recording<'_, T> {
    /// A new independent variable.
    pub fn input(&self, value: T) -> Var<T> {
        let mut x = [Var::fixed(value)];
        self.make_inputs(&mut x);
        x[0]
    }

    /// New independent variables.
    pub fn inputs(&self, values: &[T]) -> Vec<Var<T>> {
        let mut x: Vec<Var<T>> = values.iter().map(|&v| Var::fixed(v)).collect();
        self.make_inputs(&mut x);
        x
    }

    /// The inputs of a tape that has none yet: node `k + 1` for `values[k]`.
    pub(super) fn first_inputs(&self, values: &[T], x: &mut Vec<Var<T>>) {
        self.installed.with(|tape| {
            let n = u32::try_from(values.len()).expect("a tape holds at most 2^31 nodes");
            tape.skip_nodes(n);
            let generation = tape.generation();
            x.clear();
            x.extend((0..n).zip(values).map(|(k, &value)| Var::on_node(value, k + 1, generation)));
        });
    }

    /// The derivatives of `y` with respect to all the [first inputs](Self::first_inputs).
    pub(super) fn gradient_of_first(&self, y: Var<T>, gradient: &mut [T]) {
        self.installed.with(|tape| {
            until_sound(|careful| {
                let mut adjoints = self.pull(tape, &[y], &[T::constant(1.0)], careful);
                let any_nan = take(&mut adjoints[1..], gradient);
                clear_inputs::<T, 1>(tape.store(), adjoints.as_chunks_mut().0, gradient.len() + 1);
                tape.store().adjoints = adjoints;
                any_nan
            });
        });
    }

    /// Sweeps with the given seeds. What is left of the adjoints are those of the inputs.
    fn pull(&self, tape: &SlotView<'_, T>, outputs: &[Var<T>], seeds: &[T], careful: bool) -> Vec<T> {
        let (from, to) = (tape.store().first(), tape.node());
        let mut adjoints = adjoints_of(tape.store(), to as usize);
        for (y, &seed) in outputs.iter().zip(seeds) {
            check_output(tape, *y);
            adjoints[y.node() as usize] += y.scale().chain_mul(seed);
        }
        let _paused = tape.pause();
        // SAFETY: all nodes before `to` were recorded.
        unsafe { sweep::single(tape.store(), &mut adjoints, from, to, careful) };
        adjoints[0] = T::constant(0.0);
        adjoints
    }

    /// Makes independent variables of the values of `x`.
    pub fn make_inputs(&self, x: &mut [Var<T>]) {
        let generation = self.installed.generation();
        let fresh = self.installed.with(|tape| {
            let first = tape.is_fresh().then(|| tape.node());
            if first.is_some() {
                tape.skip_nodes(u32::try_from(x.len()).expect("a tape holds at most 2^31 nodes"));
            }
            first
        });
        let mut node = fresh.unwrap_or(0);
        for x in x {
            if fresh.is_none() {
                node = many::push_kept::<T>();
                self.installed.with(|tape| tape.store().late_inputs.push(node));
            }
            *x = Var::on_node(x.inner(), node, generation);
            node += 1;
        }
    }

    /// The derivative of `y` with respect to the input `x`.
    #[track_caller]
    pub fn derivative(&self, y: Var<T>, x: Var<T>) -> T {
        let mut d = [T::constant(0.0)];
        self.pullback(&[y], &[T::constant(1.0)], &[x], &mut d);
        d[0]
    }

    /// The derivatives of `y` with respect to the inputs `x`, into `gradient`.
    #[track_caller]
    pub fn gradient(&self, y: Var<T>, x: &[Var<T>], gradient: &mut [T]) {
        self.pullback(&[y], &[T::constant(1.0)], x, gradient);
    }

    /// The derivatives of `Σ seeds[k] outputs[k]` with respect to the inputs `x`, into `gradient`.
    #[track_caller]
    pub fn pullback(&self, outputs: &[Var<T>], seeds: &[T], x: &[Var<T>], gradient: &mut [T]) {
        assert_eq!(outputs.len(), seeds.len(), "pullback: one seed for each output");
        assert_eq!(x.len(), gradient.len(), "pullback: the gradient needs one place for each input");
        self.installed.with(|tape| {
            self.check_inputs(tape, x);
            until_sound(|careful| {
                let mut adjoints = self.pull(tape, outputs, seeds, careful);
                for (x, d) in x.iter().zip(&mut *gradient) {
                    *d = adjoints[x.node() as usize];
                }
                clear_inputs::<T, 1>(tape.store(), adjoints.as_chunks_mut().0, 0);
                tape.store().adjoints = adjoints;
                any_nan(gradient)
            });
        });
    }

    /// The derivatives of all outputs with respect to the inputs `x`, row by row into `jacobian`.
    ///
    /// Several rows are swept at once. With more outputs than inputs the tape is walked forward instead, several
    /// columns at once.
    #[track_caller]
    pub fn jacobian(&self, outputs: &[Var<T>], x: &[Var<T>], jacobian: &mut [T]) {
        assert_eq!(
            jacobian.len(),
            outputs.len() * x.len(),
            "jacobian: outputs times inputs places are needed"
        );
        if outputs.is_empty() || x.is_empty() {
            return;
        }
        self.installed.with(|tape| {
            self.check_inputs(tape, x);
            outputs.iter().for_each(|&y| check_output(tape, y));
            let external = tape.store().many.iter().any(|m| matches!(m.kind, Kind::Call(..)));
            if x.len() < outputs.len() && !external {
                until_sound(|careful| {
                    for start in (0..x.len()).step_by(8) {
                        self.columns::<8>(tape, outputs, x, start, jacobian, careful);
                    }
                    any_nan(jacobian)
                });
                return;
            }
            for (outputs, rows) in outputs.chunks(8).zip(jacobian.chunks_mut(8 * x.len())) {
                until_sound(|careful| {
                    match outputs.len() {
                        1 => self.rows::<1>(tape, outputs, x, rows, careful),
                        2 => self.rows::<2>(tape, outputs, x, rows, careful),
                        3 | 4 => self.rows::<4>(tape, outputs, x, rows, careful),
                        _ => self.rows::<8>(tape, outputs, x, rows, careful),
                    }
                    any_nan(rows)
                });
            }
        });
    }

    /// At most `W` rows of a Jacobian, by one sweep.
    fn rows<const W: usize>(
        &self,
        tape: &SlotView<'_, T>,
        outputs: &[Var<T>],
        x: &[Var<T>],
        rows: &mut [T],
        careful: bool,
    ) {
        let (from, to) = (tape.store().first(), tape.node());
        let mut flat = adjoints_of(tape.store(), to as usize * W);
        let adjoints = flat.as_chunks_mut::<W>().0;
        for (w, y) in outputs.iter().enumerate() {
            adjoints[y.node() as usize][w] += y.scale();
        }
        {
            let _paused = tape.pause();
            // SAFETY: all nodes before `to` were recorded.
            unsafe { sweep::wide(tape.store(), adjoints, from, to, careful) };
        }
        adjoints[0] = [T::constant(0.0); W];
        for (w, row) in rows.chunks_mut(x.len()).enumerate() {
            for (x, d) in x.iter().zip(row) {
                *d = adjoints[x.node() as usize][w];
            }
        }
        clear_inputs(tape.store(), adjoints, 0);
        tape.store().adjoints = flat;
    }

    /// The columns `start..start + W` of a Jacobian, by one walk forward.
    fn columns<const W: usize>(
        &self,
        tape: &SlotView<'_, T>,
        outputs: &[Var<T>],
        x: &[Var<T>],
        start: usize,
        jacobian: &mut [T],
        careful: bool,
    ) {
        let (from, to) = (tape.store().first(), tape.node());
        let mut flat = adjoints_of(tape.store(), to as usize * W);
        let tangents = flat.as_chunks_mut::<W>().0;
        let n = x.len();
        for (w, x) in x[start..].iter().take(W).enumerate() {
            tangents[x.node() as usize][w] = T::constant(1.0);
        }
        tangents[0] = [T::constant(0.0); W];
        // SAFETY: all nodes before `to` were recorded; the caller looked for external functions.
        unsafe { sweep::forward(tape.store(), tangents, from, to, careful) };
        for (y, row) in outputs.iter().zip(jacobian.chunks_mut(n)) {
            for (w, d) in row[start..].iter_mut().take(W).enumerate() {
                *d = if y.is_constant() {
                    T::constant(0.0)
                } else {
                    y.scale().chain_mul(tangents[y.node() as usize][w])
                };
            }
        }
        tangents[..to as usize].fill([T::constant(0.0); W]);
        tape.store().adjoints = flat;
    }

    fn check_inputs(&self, tape: &SlotView<'_, T>, x: &[Var<T>]) {
        let (store, generation) = (tape.store(), tape.generation());
        let first = store.first();
        for x in x {
            let node = x.node();
            if x.generation() != generation && node != 0 {
                slot::foreign();
            }
            let is_input = node < first || store.late_inputs.binary_search(&node).is_ok();
            assert!(
                is_input,
                "derivatives are taken with respect to inputs of the tape, not to what was computed from them"
            );
        }
    }

    /// Where the tape is now.
    pub fn position(&self) -> Position {
        self.installed.with(|tape| Position { node: tape.node(), generation: tape.generation() })
    }

    /// Forgets everything recorded since `position`. Variables made since then must not be used again; unlike after
    /// [`reset`](Self::reset), it is not noticed if they are.
    #[track_caller]
    pub fn rewind(&self, position: Position) {
        self.installed.with(|tape| {
            assert!(
                position.generation == tape.generation() && position.node <= tape.node(),
                "rewind: the position is not on this tape any more"
            );
            tape.rewind(position.node, None);
        });
    }

    /// Forgets everything, inputs too, and keeps the memory.
    pub fn reset(&self) {
        self.installed.with(|tape| tape.rewind(1, Some(new_generation())));
    }

    /// The number of recorded operations, late inputs included.
    pub fn records(&self) -> usize {
        self.installed.with(|tape| (tape.node() - tape.store().first()) as usize)
    }
}

/// Whether some part is NaN. All are looked at, without a branch for each.
fn any_nan<T: Taped>(derivatives: &[T]) -> bool {
    let mut sums = [T::constant(-0.0); 4];
    let (fours, rest) = derivatives.as_chunks::<4>();
    for four in fours {
        (0..4).for_each(|k| sums[k] = sums[k].joined(four[k]));
    }
    rest.iter().for_each(|&d| sums[0] = sums[0].joined(d));
    sums[0].joined(sums[2]).have_nan(sums[1].joined(sums[3]))
}

/// Walks once, and again with care if the results have NaN: most often it is from the first walk, where a derivative of zero met an
/// infinite one.
fn until_sound(mut walk: impl FnMut(bool) -> bool) {
    if walk(false) {
        std::hint::cold_path();
        walk(true);
    }
}

/// Stops the program if `y` is not on the tape: its seed would stay behind in the adjoints.
fn check_output<T: Taped>(tape: &SlotView<'_, T>, y: Var<T>) {
    tape.check(y);
    assert!(y.node() < tape.node(), "the output of a derivative is not on this tape");
}

/// The adjoints of the store, zero, at least `n` of them. The caller puts them back; if it unwinds instead, the next
/// sweep gets new ones.
fn adjoints_of<T: Taped>(store: &mut Store<T>, n: usize) -> Vec<T> {
    let mut adjoints = std::mem::take(&mut store.adjoints);
    if adjoints.len() < n {
        drop(adjoints);
        // A new zeroed block costs nothing until it is touched, where growing the old one would copy.
        adjoints = store::zeros(n.next_multiple_of(1 << 12));
    }
    adjoints
}

/// Takes the adjoints of inputs, of which zeros are left, in one pass; whether some part is NaN.
fn take<T: Taped>(adjoints: &mut [T], into: &mut [T]) -> bool {
    let adjoints = &mut adjoints[..into.len()];
    let mut sums = [T::constant(-0.0); 4];
    let ((fours, rest), (into, last)) = (adjoints.as_chunks_mut::<4>(), into.as_chunks_mut::<4>());
    for (four, into) in fours.iter_mut().zip(into) {
        *into = *four;
        (0..4).for_each(|k| sums[k] = sums[k].joined(four[k]));
        *four = [T::constant(0.0); 4];
    }
    for (adjoint, into) in rest.iter_mut().zip(last) {
        *into = std::mem::replace(adjoint, T::constant(0.0));
        sums[0] = sums[0].joined(*into);
    }
    sums[0].joined(sums[2]).have_nan(sums[1].joined(sums[3]))
}

/// Makes the adjoints of inputs zero, the first ones from node `from` on and the late ones.
fn clear_inputs<T: Taped, const W: usize>(store: &Store<T>, adjoints: &mut [[T; W]], from: usize) {
    let zero = [T::constant(0.0); W];
    adjoints[from..store.first() as usize].fill(zero);
    for &late in &store.late_inputs {
        adjoints[late as usize] = zero;
    }
}
