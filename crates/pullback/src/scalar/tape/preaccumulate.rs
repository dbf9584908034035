//! Replacing a stretch of tape by the derivatives of its results.

use super::many::{Gather, Kind};
use super::slot::{self, Taped};
use super::store::{MANY, THIRD};
use super::{adjoints_of, sweep, until_sound};
use crate::scalar::Var;

/// Runs `f`, which returns variables, and puts their derivatives with respect to the earlier nodes that `f` used on
/// the tape in place of the operations of `f`.
///
/// That pays where a long computation has few inputs and few results: it is swept here once for each result, and
/// the tape keeps one record for each.
pub(in crate::scalar) fn preaccumulate<T: Taped, O: AsMut<[Var<T>]>>(f: impl FnOnce() -> O) -> O {
    if !slot::is_recording::<T>() {
        return f();
    }
    let from = slot::with_current::<T, _>(|tape| tape.node());
    let mut results = f();
    let outputs = results.as_mut();
    let rows = slot::with_current::<T, _>(|tape| {
        let to = tape.node();
        let store = tape.store();
        let special = store.many.iter().rev().take_while(|m| m.node >= from);
        if to == from || !special.clone().all(|m| matches!(m.kind, Kind::Sum(_))) {
            return None;
        }
        // The earlier nodes that the stretch reads.
        let mut used = Vec::new();
        for m in special {
            used.extend_from_slice(&store.terms.nodes[m.terms.clone()]);
        }
        // SAFETY: all nodes before `to` were recorded.
        for stretch in unsafe { store.forward(from, to) } {
            for (record, node) in
                stretch.records.iter().zip(stretch.first as usize..).filter(|(r, _)| r.a != MANY)
            {
                // SAFETY: that is its node.
                used.extend([record.a & !THIRD, record.b, unsafe { stretch.third(record, node) }]);
            }
        }
        used.retain(|&node| 0 < node && node < from);
        used.sort_unstable();
        used.dedup();

        let mut adjoints = adjoints_of(store, to as usize);
        let mut rows = Vec::with_capacity(outputs.len());
        for y in outputs.iter() {
            // A variable of another tape stays as it is, and is an error where it meets one of this.
            if y.node() < from || y.generation() != tape.generation() {
                rows.push(None);
                continue;
            }
            let mut row = Vec::new();
            until_sound(|careful| {
                adjoints[y.node() as usize] += y.scale();
                // SAFETY: all nodes before `to` were recorded.
                unsafe { sweep::single(store, &mut adjoints, from, to, careful) };
                let zero = T::constant(0.0);
                let mut take = |node: u32| std::mem::replace(&mut adjoints[node as usize], zero);
                row = used.iter().map(|&node| (node, take(node))).collect();
                row.iter().any(|(_, d)| d.has_nan())
            });
            rows.push(Some(row));
        }
        store.adjoints = adjoints;
        tape.rewind(from, None);
        Some(rows)
    });
    for (y, row) in outputs.iter_mut().zip(rows.into_iter().flatten()) {
        if let Some(row) = row {
            let generation = y.generation();
            let one = T::constant(1.0);
            let terms = row.iter().map(|&(node, p)| (Var::on_node(one, node, generation), p));
            *y = Gather::new(terms).finish(y.inner(), one);
        }
    }
    results
}
