//! The walks over the records: adjoints backward, tangents forward.
//!
//! Each of them comes in two forms. The plain one multiplies, and where an infinite derivative meets one of zero it leaves NaN. Where that
//! is found in a result, the walk is made again by the careful one, with [`Real::chain_mul`](crate::scalar::Real): it takes longer,
//! and differs only there.

use super::many::Kind;
use super::slot::Taped;
use super::store::{MANY, Record, Store, THIRD};
#[cfg(target_arch = "x86_64")]
use crate::kernels::isa::{Isa, isa};

/// Pulls the adjoints of the nodes `from..to` back to the nodes before `from` and to inputs.
///
/// Each adjoint is set to zero as it is read, so that the array is clean again for the next sweep, but for
/// the inputs. The adjoint of the node before the current one is read ahead and summed up in a register: in a chain of
/// operations, a round through memory for each would take longer than the arithmetic.
///
/// # Safety
/// The records up to node `to` must have been written.
pub(super) unsafe fn single<T: Taped>(
    store: &Store<T>,
    adjoints: &mut [T],
    from: u32,
    to: u32,
    careful: bool,
) {
    if careful {
        // SAFETY: the caller's promise.
        return unsafe { single_on::<T, false, true>(store, adjoints, from, to) };
    }
    #[cfg(target_arch = "x86_64")]
    {
        /// # Safety
        /// As for `single`.
        #[target_feature(enable = "fma")]
        unsafe fn with_fma<T: Taped>(store: &Store<T>, adjoints: &mut [T], from: u32, to: u32) {
            // SAFETY: the caller's promise.
            unsafe { single_on::<T, true, false>(store, adjoints, from, to) }
        }
        if isa() >= Isa::V3 {
            // SAFETY: the processor has the instruction; the rest is the caller's promise.
            return unsafe { with_fma(store, adjoints, from, to) };
        }
    }
    // SAFETY: the caller's promise.
    unsafe { single_on::<T, { cfg!(target_arch = "aarch64") }, false>(store, adjoints, from, to) }
}

/// # Safety
/// As for [`single`].
#[inline(always)]
unsafe fn single_on<T: Taped, const FUSED: bool, const CAREFUL: bool>(
    store: &Store<T>,
    adjoints: &mut [T],
    from: u32,
    to: u32,
) {
    let zero = T::constant(0.0);
    // SAFETY: the caller's promise.
    for stretch in unsafe { store.backward(from, to) } {
        let mut k = stretch.first as usize + stretch.records.len();
        assert!(k <= adjoints.len());
        let mut g = std::mem::replace(&mut adjoints[k - 1], zero);
        for record in stretch.records.iter().rev() {
            k -= 1;
            let (a, b) = (record.a as usize, record.b as usize);
            // A record of a stale variable may name any node, and those with a mark are beyond all of them.
            if a >= k || b >= k {
                // SAFETY: `k` is its node.
                let (a, c) = ((record.a & !THIRD) as usize, unsafe { stretch.third(record, k) } as usize);
                if c == 0 || a >= k || b >= k || c >= k {
                    adjoints[k] = g;
                    elsewhere::<T, CAREFUL>(store, record, adjoints, k);
                    g = std::mem::replace(&mut adjoints[k - 1], zero);
                    continue;
                }
                // SAFETY: `k` is less than the length, and not 0: node 0 has no record. All nodes are less than `k`.
                unsafe {
                    let mut next = std::mem::replace(adjoints.get_unchecked_mut(k - 1), zero);
                    if !g.is_nothing() {
                        add::<T, FUSED, CAREFUL>(&mut next, adjoints, k, a, record.pa, g);
                        add::<T, FUSED, CAREFUL>(&mut next, adjoints, k, b, record.pb, g);
                        let sum = if c + 1 == k { &mut next } else { adjoints.get_unchecked_mut(c) };
                        *sum += g;
                    }
                    g = next;
                }
                continue;
            }
            // SAFETY: `k` is less than the length, and not 0: node 0 has no record.
            let mut next = std::mem::replace(unsafe { adjoints.get_unchecked_mut(k - 1) }, zero);
            if !g.is_nothing() {
                // SAFETY: both nodes are less than `k`.
                unsafe {
                    add::<T, FUSED, CAREFUL>(&mut next, adjoints, k, a, record.pa, g);
                    add::<T, FUSED, CAREFUL>(&mut next, adjoints, k, b, record.pb, g);
                }
            }
            g = next;
        }
        // The slice below, or the nodes before `from`, find it in memory.
        adjoints[k - 1] = g;
    }
}

/// Adds `p * g` to the adjoint of a node, which is in `next` if it is the one before `k`. Not a closure: for large `T` those are
/// called, and compiled without the instruction.
///
/// # Safety
/// There must be an adjoint of the node.
#[inline(always)]
unsafe fn add<T: Taped, const FUSED: bool, const CAREFUL: bool>(
    next: &mut T,
    adjoints: &mut [T],
    k: usize,
    node: usize,
    p: T,
    g: T,
) {
    // Two branches: one sum of either would have to be in memory.
    if node + 1 == k {
        *next = plus::<T, FUSED, CAREFUL>(*next, p, g);
    } else {
        // SAFETY: the caller's promise.
        let sum = unsafe { adjoints.get_unchecked_mut(node) };
        *sum = plus::<T, FUSED, CAREFUL>(*sum, p, g);
    }
}

#[inline(always)]
fn plus<T: Taped, const FUSED: bool, const CAREFUL: bool>(sum: T, p: T, g: T) -> T {
    if CAREFUL { sum + p.chain_mul(g) } else { sum.plus_product::<FUSED>(p, g) }
}

/// A record that is described elsewhere. One that names a node not before its own is of a stale variable, and ends here.
#[cold]
#[inline(never)]
fn elsewhere<T: Taped, const CAREFUL: bool>(
    store: &Store<T>,
    record: &Record<T>,
    adjoints: &mut [T],
    k: usize,
) {
    assert!(record.a == MANY, "an operation on the tape read a variable that was not on it");
    let (below, here) = adjoints.split_at_mut(k);
    many::<T, 1, CAREFUL>(store, record, below.as_chunks_mut().0, here.as_chunks_mut().0);
}

/// As [`single`], with `W` adjoints for each node. There is no carry: the work for one node covers the way to memory.
///
/// # Safety
/// The same.
pub(super) unsafe fn wide<T: Taped, const W: usize>(
    store: &Store<T>,
    adjoints: &mut [[T; W]],
    from: u32,
    to: u32,
    careful: bool,
) {
    let walk = if careful { wide_on::<T, W, true> } else { wide_on::<T, W, false> };
    // SAFETY: the caller's promise.
    unsafe { walk(store, adjoints, from, to) }
}

/// # Safety
/// As for [`single`].
unsafe fn wide_on<T: Taped, const W: usize, const CAREFUL: bool>(
    store: &Store<T>,
    adjoints: &mut [[T; W]],
    from: u32,
    to: u32,
) {
    let zero = [T::constant(0.0); W];
    // SAFETY: the caller's promise.
    for stretch in unsafe { store.backward(from, to) } {
        for (k, record) in stretch.records.iter().enumerate().rev() {
            let (below, here) = adjoints.split_at_mut(stretch.first as usize + k);
            if record.a == MANY {
                many::<T, W, CAREFUL>(store, record, below, here);
                continue;
            }
            let g = std::mem::replace(&mut here[0], zero);
            if g.iter().all(|g| g.is_nothing()) {
                continue;
            }
            add_scaled::<T, W, CAREFUL>(&mut below[(record.a & !THIRD) as usize], record.pa, &g);
            add_scaled::<T, W, CAREFUL>(&mut below[record.b as usize], record.pb, &g);
            // SAFETY: that is its node.
            if let c @ 1.. = unsafe { stretch.third(record, stretch.first as usize + k) } {
                let sums = &mut below[c as usize];
                (0..W).for_each(|w| sums[w] += g[w]);
            }
        }
    }
}

#[inline(always)]
fn add_scaled<T: Taped, const W: usize, const CAREFUL: bool>(sum: &mut [T; W], p: T, g: &[T; W]) {
    for w in 0..W {
        sum[w] += times::<T, CAREFUL>(p, g[w]);
    }
}

#[inline(always)]
fn times<T: Taped, const CAREFUL: bool>(p: T, g: T) -> T {
    if CAREFUL { p.chain_mul(g) } else { p.ungated_mul(g) }
}

/// The rule of an operation on many nodes; `here` starts with its own adjoints.
#[cold]
#[inline(never)]
fn many<T: Taped, const W: usize, const CAREFUL: bool>(
    store: &Store<T>,
    record: &Record<T>,
    below: &mut [[T; W]],
    here: &mut [[T; W]],
) {
    let zero = T::constant(0.0);
    let entry = &store.many[record.b as usize];
    let terms =
        || store.terms.partials[entry.terms.clone()].iter().zip(&store.terms.nodes[entry.terms.clone()]);
    match &entry.kind {
        Kind::Keep => {}
        Kind::Sum(factor) => {
            let g = std::mem::replace(&mut here[0], [zero; W]).map(|g| times::<T, CAREFUL>(g, *factor));
            if !g.iter().all(|g| g.is_nothing()) {
                for (&p, &node) in terms() {
                    add_scaled::<T, W, CAREFUL>(&mut below[node as usize], p, &g);
                }
            }
        }
        Kind::Call(outputs, pullback) => {
            let here = &mut here[..*outputs as usize];
            for w in 0..W {
                let g: Vec<T> = here.iter().map(|g| g[w]).collect();
                if g.iter().all(|g| g.is_nothing()) {
                    continue;
                }
                let mut inputs = vec![zero; entry.terms.len()];
                pullback(&g, &mut inputs);
                for ((&c, &node), d) in terms().zip(inputs) {
                    if node != 0 {
                        below[node as usize][w] += times::<T, CAREFUL>(c, d);
                    }
                }
            }
            here.fill([zero; W]);
        }
    }
}

/// Pushes `W` tangents for each node forward over the records of the nodes `from..to`. The inputs hold theirs.
///
/// # Safety
/// The records up to node `to` must have been written. None may be an external function.
pub(super) unsafe fn forward<T: Taped, const W: usize>(
    store: &Store<T>,
    tangents: &mut [[T; W]],
    from: u32,
    to: u32,
    careful: bool,
) {
    let walk = if careful { forward_on::<T, W, true> } else { forward_on::<T, W, false> };
    // SAFETY: the caller's promise.
    unsafe { walk(store, tangents, from, to) }
}

/// # Safety
/// As for [`forward`].
unsafe fn forward_on<T: Taped, const W: usize, const CAREFUL: bool>(
    store: &Store<T>,
    tangents: &mut [[T; W]],
    from: u32,
    to: u32,
) {
    // SAFETY: the caller's promise.
    for stretch in unsafe { store.forward(from, to) } {
        for (k, record) in stretch.records.iter().enumerate() {
            let (below, here) = tangents.split_at_mut(stretch.first as usize + k);
            if record.a != MANY {
                let (a, b) = (&below[(record.a & !THIRD) as usize], &below[record.b as usize]);
                here[0] = std::array::from_fn(|w| {
                    times::<T, CAREFUL>(record.pa, a[w]) + times::<T, CAREFUL>(record.pb, b[w])
                });
                // SAFETY: that is its node.
                if let c @ 1.. = unsafe { stretch.third(record, stretch.first as usize + k) } {
                    let c = &below[c as usize];
                    (0..W).for_each(|w| here[0][w] += c[w]);
                }
                continue;
            }
            let entry = &store.many[record.b as usize];
            if let Kind::Sum(factor) = entry.kind {
                let nodes = &store.terms.nodes[entry.terms.clone()];
                here[0] = [T::constant(0.0); W];
                for (&p, &node) in store.terms.partials[entry.terms.clone()].iter().zip(nodes) {
                    let p = times::<T, CAREFUL>(p, factor);
                    add_scaled::<T, W, CAREFUL>(&mut here[0], p, &below[node as usize]);
                }
            }
        }
    }
}
