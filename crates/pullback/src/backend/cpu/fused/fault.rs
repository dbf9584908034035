//! Deliberate faults in the instructions of a group: see [`fault`](crate::graph::fault).

use super::code::{Action, Code, Home};
use super::function::Loops;
use super::geometry::Geometry;
use super::lower::Reach;
use super::space::Extent;
use super::{AnyCode, Real};
use crate::graph::fault::{Fault, planted};
use crate::graph::operands::Exact;
use crate::ops::AxisMap;
use crate::ops::Reduction;

/// A program, with the fault that there is.
pub(super) fn in_program(code: &mut AnyCode, geometry: &mut Geometry) {
    let Some(fault) = planted() else { return };
    match code {
        AnyCode::F32(code) => in_code(fault, code),
        AnyCode::F64(code) => in_code(fault, code),
    }
    if fault == Fault::MissingRow && geometry.rows > 1 {
        geometry.rows -= 1;
    }
}

fn in_code<F: Real>(fault: Fault, code: &mut Code<F>) {
    match fault {
        Fault::SwappedRegisters => {
            for i in code.tile.iter_mut().filter(|i| matches!(i.action, Action::Map(Loops::Two { .. }))) {
                if i.x[0].extent == i.x[1].extent {
                    i.x.swap(0, 1);
                }
            }
        }
        Fault::StaleRegister if !code.shifted => {
            let full = |slot: usize| matches!(code.places.get(slot), Some(Home::Full(..)));
            let mut seen: Vec<usize> = Vec::new();
            for i in code.tile.iter_mut() {
                let x = i.x[0];
                if matches!(i.action, Action::Map(_))
                    && x.extent == Extent::Full
                    && full(x.slot)
                    && let Some(&other) = seen.iter().rev().find(|&&s| s != x.slot)
                {
                    i.x[0].slot = other;
                    return;
                }
                if i.extent == Extent::Full && full(i.to) {
                    seen.push(i.to);
                }
            }
        }
        Fault::SharedRegister => {
            for i in code.tile.iter().filter(|i| matches!(i.action, Action::Map(Loops::Two { .. }))) {
                let [a, b] = [i.x[0].slot, i.x[1].slot];
                let both = (code.places.get(a), code.places.get(b));
                if let (Some(&Home::Full(first, before)), Some(&Home::Full(second, own))) = both
                    && first != second
                    && before == own
                {
                    code.places[b] = code.places[a];
                    return;
                }
            }
        }
        Fault::ReadOnce if !code.shifted => {
            let whole = |a: &Action<F>| matches!(a, Action::Load(l) if code.loads[*l].reach == Reach::Full);
            if let Some(k) = code.tile.iter().position(|i| whole(&i.action)) {
                let load = code.tile.remove(k);
                code.first.push(load);
            }
        }
        Fault::MissingStore => {
            let store = code.tile.iter().position(|i| matches!(i.action, Action::Store { .. }));
            store.map(|k| code.tile.remove(k));
        }
        Fault::MissingAccumulation => {
            let sums = &code.accumulators;
            let whole = |a: &Action<F>| matches!(a, Action::Accumulate(k) if sums[*k].to != Extent::Row);
            code.tile.iter().position(|i| whole(&i.action)).map(|k| code.tile.remove(k));
        }
        Fault::WrongReduction => {
            code.accumulators.iter_mut().for_each(|a| a.fold = Reduction::Max);
            for i in &mut code.tile {
                if let Action::Fold(fold) = &mut i.action {
                    *fold = Reduction::Max;
                }
            }
        }
        Fault::WidePad => {
            for s in &mut code.shifts {
                s.shift.inside.0 += usize::from(s.shift.inside.0 < s.shift.inside.1);
            }
        }
        Fault::WrongPad => {
            for s in &mut code.shifts {
                s.shift.fill = Exact::new(s.shift.fill.get() + 1.0);
            }
        }
        Fault::TransposedInput => {
            for load in &mut code.loads {
                let plain = |a: &AxisMap| a.of.is_some() && a.start == 0 && a.step == 1 && a.is_full();
                let axes = &mut load.view.axes;
                let equal = |k: &usize| {
                    let (a, b) = (&axes[*k - 1], &axes[*k]);
                    a.len == b.len && plain(a) && plain(b)
                };
                if let Some(k) = (1..axes.len()).find(equal) {
                    axes.swap(k - 1, k);
                }
            }
        }
        _ => {}
    }
}
