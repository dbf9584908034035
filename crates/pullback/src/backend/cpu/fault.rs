//! Deliberate faults in the planner: see [`fault`](crate::graph::fault).

use super::storage::Storage;
use super::work::{Program, Work};
use crate::graph::fault::{Fault, planted};
use crate::graph::lower::Root;

/// Puts a fault of the planner into kernels.
pub(super) fn in_program(program: &mut Program) {
    match planted() {
        Some(Fault::TransposedView) => {
            let operands = program.kernels.iter().flat_map(|k| &k.operands).chain(&program.outputs);
            for operand in operands {
                let Some(window) = operand.window.map(|w| &mut program.windows[w]) else { continue };
                let shape = &operand.aval.shape;
                if let Some(k) = (1..shape.len()).find(|&k| shape[k] == shape[k - 1] && shape[k] > 1) {
                    window.strides.swap(k, k - 1);
                }
            }
        }
        Some(Fault::SwappedInputs) => {
            for kernel in program.kernels.iter_mut().filter(|k| matches!(k.work, Work::Op(_))) {
                if let [a, b] = &mut kernel.operands[..]
                    && a.aval == b.aval
                {
                    std::mem::swap(a, b);
                }
            }
        }
        Some(Fault::SwappedResults) => {
            let groups = program.kernels.iter().filter(|k| matches!(k.work, Work::Fused(_)));
            let pairs = groups.flat_map(|k| k.results.clone().zip(k.results.clone().skip(1)));
            let Some((a, b)) = pairs.into_iter().find(|&(a, b)| program.registers[a] == program.registers[b])
            else {
                return;
            };
            let operands = program.kernels.iter_mut().flat_map(|k| &mut k.operands);
            for operand in operands.chain(&mut program.outputs) {
                operand.root = match operand.root {
                    Root::Register(r) if r == a => Root::Register(b),
                    Root::Register(r) if r == b => Root::Register(a),
                    other => other,
                };
            }
        }
        _ => {}
    }
}

/// Puts a fault of the planner into memory.
pub(super) fn in_storage(storage: &mut Storage, program: &Program) {
    let Some(fault) = planted() else { return };
    for (at, kernel) in program.kernels.iter().enumerate() {
        let reads_again = |r: usize| program.kernels[at + 1..].iter().any(|k| k.reads().any(|x| x == r));
        if fault == Fault::FreedEarly && at > 0 {
            let early = kernel.reads().find(|r| storage.frees[at].contains(r));
            let written = |r: &usize| !program.kernels[at - 1].results.contains(r);
            if let Some(r) = early.filter(written) {
                storage.frees[at - 1].push(r);
            }
        }
        if fault != Fault::OverwrittenValue {
            continue;
        }
        let taken = |r: usize| storage.over[at].iter().any(|(_, result)| *result == r);
        let alias = kernel.operands.iter().enumerate().find_map(|(k, operand)| {
            let Root::Register(r) = operand.root else { return None };
            let mut results = kernel.results.clone();
            let result = results.find(|&x| program.registers[x] == operand.aval && !taken(x))?;
            let escapes = program.outputs.iter().any(|o| o.root == Root::Register(r));
            let fits = program.registers[r] == operand.aval && r >= program.donated.len() && !escapes;
            let once = kernel.reads().filter(|&x| x == r).count() == 1;
            (fits && once && reads_again(r)).then_some((k, result))
        });
        if let Some(alias) = alias {
            storage.over[at].push(alias);
        }
    }
}
