//! Trimming: graphs inside of loops, branches and calls lose the inputs that they do not read, the outputs that nobody reads, and loops the
//! states that do not change or do not matter.

use super::Options;
use super::rewrite::{NOWHERE, Refs, Rewrite, rewrite_blocks};
use crate::graph::constant;
use crate::graph::{Body, Builder, Call, Cond, Graph, Ref, Scan, Step};
use crate::ops::Aval;
use crate::tensor::Tensor;
use std::sync::Arc;

pub(super) fn trim(graph: &Graph, _: &Options) -> Graph {
    let read = slots_read(graph);
    let mut at = 0;
    rewrite_blocks(graph, |w, step| {
        let read = &read[at];
        at += 1;
        if !read.contains(&true) {
            return None;
        }
        match step.op.body()? {
            Body::Fused(_) => None,
            Body::Call(of) => call(w, step, read, of),
            Body::Cond(of) => cond(w, step, read, of),
            Body::Scan(of) => scan(w, step, read, of),
        }
    })
}

/// Which outputs of each operation are read.
fn slots_read(graph: &Graph) -> Vec<Vec<bool>> {
    let mut read: Vec<Vec<bool>> = graph.steps.iter().map(|s| vec![false; s.avals.len()]).collect();
    for a in graph.steps.iter().flat_map(|s| &s.args).chain(&graph.outputs) {
        if let Ref::Step(k, slot) = *a {
            read[k][slot] = true;
        }
    }
    read
}

/// What becomes of an input of a body.
#[derive(Clone)]
enum Fate {
    /// It is the input of this number.
    Input(usize),
    Const(Tensor),
    /// Nothing reads it.
    Gone,
}

/// Which inputs the outputs of a body depend on.
fn inputs_read(body: &Graph, outputs: &[Ref]) -> Vec<bool> {
    let mut inputs = vec![false; body.inputs.len()];
    let mut live = vec![false; body.len()];
    let mark = |a: &Ref, live: &mut [bool], inputs: &mut [bool]| match *a {
        Ref::Step(k, _) => live[k] = true,
        Ref::Input(k) => inputs[k] = true,
        Ref::Const(_) => {}
    };
    outputs.iter().for_each(|a| mark(a, &mut live, &mut inputs));
    for k in (0..body.len()).rev() {
        if live[k] {
            body.steps[k].args.iter().for_each(|a| mark(a, &mut live, &mut inputs));
        }
    }
    inputs
}

/// The body with other inputs, and these of its outputs.
fn rebuilt(body: &Graph, fates: &[Fate], outputs: &[Ref]) -> Graph {
    let mut types: Vec<Option<Aval>> = Vec::new();
    for (k, fate) in fates.iter().enumerate() {
        if let Fate::Input(n) = *fate {
            types.resize(types.len().max(n + 1), None);
            types[n].get_or_insert_with(|| body.inputs[k].clone());
        }
    }
    let types = types.into_iter().map(|t| t.expect("inputs are numbered without gaps")).collect();
    let mut out = Builder::new(types);
    body.consts.iter().for_each(|c| {
        out.constant(c.clone());
    });
    let place: Vec<Option<Ref>> = fates
        .iter()
        .map(|fate| match fate {
            Fate::Input(n) => Some(Ref::Input(*n)),
            Fate::Const(t) => Some(out.constant(t.clone())),
            Fate::Gone => None,
        })
        .collect();
    // A dead operation may read what is gone, until it is dropped.
    let moved = |a: &Ref| match *a {
        Ref::Input(k) => place[k].unwrap_or(NOWHERE),
        other => other,
    };
    for step in &body.steps {
        out.place(Step { args: step.args.iter().map(moved).collect(), ..step.clone() });
    }
    let outputs = outputs.iter().map(moved).collect();
    let names =
        body.names.iter().map(|(n, a)| (n.clone(), moved(a))).filter(|(_, a)| *a != NOWHERE).collect();
    out.finish(outputs, names).pruned()
}

/// Decides on inputs one after the other, and gathers the operands of those that stay.
struct Plan {
    fates: Vec<Fate>,
    args: Vec<Ref>,
    changed: bool,
}

impl Plan {
    fn new() -> Plan {
        Plan { fates: Vec::new(), args: Vec::new(), changed: false }
    }

    fn keep(&mut self, arg: Ref) {
        self.fates.push(Fate::Input(self.args.len()));
        self.args.push(arg);
    }

    fn keep_if(&mut self, read: bool, arg: Ref) {
        match read {
            true => self.keep(arg),
            false => self.fates.push(Fate::Gone),
        }
    }

    /// Keeps an input that is read, unless its operand is a repeated number, which goes into the body, or is there already among
    /// those from `from` on.
    fn offer(&mut self, w: &Rewrite, arg: Ref, read: bool, from: usize) {
        let known = self.args[from.min(self.args.len())..].iter().position(|&a| a == arg);
        let literal = match arg {
            Ref::Const(k) => Some(&w.out.graph().consts[k]).filter(|t| constant::is_splat(t)),
            _ => None,
        };
        self.changed = true;
        match (read, literal, known) {
            (false, ..) => self.fates.push(Fate::Gone),
            (true, Some(t), _) => self.fates.push(Fate::Const(t.clone())),
            (true, None, Some(k)) => self.fates.push(Fate::Input(from + k)),
            (true, None, None) => {
                self.keep(arg);
                self.changed = false;
            }
        }
    }
}

/// The values for old outputs from the new step, which has those that are read.
fn spread(step: Refs, read: &[bool]) -> Refs {
    let mut next = step.iter();
    read.iter().map(|&r| if r { *next.next().expect("every output that is read") } else { NOWHERE }).collect()
}

fn kept<T: Clone>(all: &[T], read: &[bool]) -> Vec<T> {
    all.iter().zip(read).filter(|(_, r)| **r).map(|(a, _)| a.clone()).collect()
}

fn call(w: &mut Rewrite, step: &Step, read: &[bool], of: Call) -> Option<Refs> {
    let outputs = kept(&of.body.outputs, read);
    let used = inputs_read(&of.body, &outputs);
    let mut plan = Plan::new();
    let mut changed = read.contains(&false);
    for (&arg, used) in step.args.iter().zip(used) {
        plan.offer(w, arg, used, 0);
        changed |= plan.changed;
    }
    changed.then(|| {
        let body = Arc::new(rebuilt(&of.body, &plan.fates, &outputs));
        let new = w.push_body(Body::Call(Call { body, ..of }), &plan.args);
        spread(new, read)
    })
}

fn cond(w: &mut Rewrite, step: &Step, read: &[bool], of: Cond) -> Option<Refs> {
    let Cond { then, otherwise, inputs } = of;
    let (first, second) = (kept(&then.outputs, read), kept(&otherwise.outputs, read));
    let (used_first, used_second) = (inputs_read(&then, &first), inputs_read(&otherwise, &second));
    let (common, own) = step.args[1..].split_at(inputs);
    let (own_first, own_second) = own.split_at(then.inputs.len() - inputs);
    let mut changed = read.contains(&false);
    let mut plan = Plan::new();
    for (k, &arg) in common.iter().enumerate() {
        plan.offer(w, arg, used_first[k] || used_second[k], 0);
        changed |= plan.changed;
    }
    let shared = plan.args.len();
    let branch = |own: &[Ref], used: &[bool], changed: &mut bool| {
        let mut branch = Plan { fates: plan.fates.clone(), args: plan.args.clone(), changed: false };
        for (k, &arg) in own.iter().enumerate() {
            branch.offer(w, arg, used[inputs + k], 0);
            *changed |= branch.changed;
        }
        branch
    };
    let (one, two) =
        (branch(own_first, &used_first, &mut changed), branch(own_second, &used_second, &mut changed));
    changed.then(|| {
        let then = Arc::new(rebuilt(&then, &one.fates, &first));
        let otherwise = Arc::new(rebuilt(&otherwise, &two.fates, &second));
        let args = [&step.args[..1], &one.args, &two.args[shared..]].concat();
        let new = w.push_body(Body::Cond(Cond { then, otherwise, inputs: shared }), &args);
        spread(new, read)
    })
}

fn scan(w: &mut Rewrite, step: &Step, read: &[bool], of: Scan) -> Option<Refs> {
    let body = &of.body;
    // A state that never changes is a shared input, and its last value is its first.
    let still: Vec<bool> = (0..of.state).map(|j| body.outputs[j] == Ref::Input(j)).collect();
    let out_read = |j: usize| if j < of.state { read[j] && !still[j] } else { of.stacks && read[j] };
    // A state matters if it is read after the loop, or by something that matters.
    let mut needed: Vec<bool> = (0..body.outputs.len()).map(out_read).collect();
    let used = loop {
        let used = inputs_read(body, &kept(&body.outputs, &needed));
        let more: Vec<usize> = (0..of.state).filter(|&j| used[j] && !still[j] && !needed[j]).collect();
        if more.is_empty() {
            break used;
        }
        more.into_iter().for_each(|j| needed[j] = true);
    };
    let mut plan = Plan::new();
    let mut changed = needed.contains(&false);
    for (&arg, &needed) in step.args.iter().zip(&needed[..of.state]) {
        plan.keep_if(needed, arg);
    }
    let state = plan.args.len();
    let (items, others) = step.args[of.state..].split_at(of.items);
    let (items_used, others_used) = used[of.state..].split_at(of.items);
    for (&arg, &used) in items.iter().zip(items_used) {
        plan.keep_if(used, arg);
        changed |= !used;
    }
    let shared = plan.args.len();
    for (&arg, &used) in others.iter().zip(others_used) {
        plan.offer(w, arg, used, shared);
        changed |= plan.changed;
    }
    if !changed {
        return None;
    }
    for j in (0..of.state).filter(|&j| still[j] && used[j]) {
        plan.offer(w, step.args[j], true, shared);
        plan.fates[j] = plan.fates.pop().expect("it was just decided");
    }
    let new = if state == 0 && !needed[of.state..].contains(&true) {
        Refs::new()
    } else {
        let body = Arc::new(rebuilt(body, &plan.fates, &kept(&body.outputs, &needed)));
        let items = shared - state;
        w.push_body(Body::Scan(Scan { body, state, items, steps: of.steps, stacks: of.stacks }), &plan.args)
    };
    let mut next = new.iter();
    let values = (0..step.avals.len()).map(|j| match (needed[j], j < of.state) {
        (true, _) => *next.next().expect("every output that is needed"),
        (false, true) if still[j] => step.args[j],
        _ => NOWHERE,
    });
    Some(values.collect())
}
