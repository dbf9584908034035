//! Which names of a program are inputs, and which of these count something.

use crate::problem::Problem;
use crate::program::{CONSTANTS, Index, Node, Program, Statement};
use crate::vocabulary::is_function;

/// Finds out which names are inputs, and which of these count something.
pub(crate) fn names(mut program: Program) -> Result<Program, Problem> {
    let mut lets: Vec<&str> = Vec::new();
    let (mut inputs, mut counts): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for s in &program.statements {
        // Loop variables with the node after which they are unknown again; stretches of nodes that count.
        let mut loops: Vec<(usize, &str)> = Vec::new();
        let counting = counting(&program.nodes, s);
        for k in s.start..=s.end {
            loops.retain(|l| l.0 >= k);
            match &program.nodes[k] {
                Node::Loop { variable, body, .. } => loops.push((*body, variable)),
                Node::Name(n) => {
                    let known = lets.contains(&n.as_str()) || loops.iter().any(|l| l.1 == n);
                    if known || CONSTANTS.iter().any(|c| c.0 == n) {
                        continue;
                    }
                    if is_function(n) {
                        return Err(Problem::at(
                            program.spans[k],
                            format!("`{n}` is a function: write {n}(..)"),
                        ));
                    }
                    if !inputs.contains(n) {
                        inputs.push(n.clone());
                    }
                    if counting.iter().any(|c| c.0 <= k && k <= c.1) && !counts.contains(n) {
                        counts.push(n.clone());
                    }
                }
                _ => {}
            }
        }
        if let (true, Some(name)) = (s.is_let, &s.name) {
            lets.push(name);
        }
    }
    program.inputs = inputs;
    program.counts = counts;
    Ok(program)
}

/// The ranges of nodes that are bounds of sums or positions.
fn counting(nodes: &[Node], s: &Statement) -> Vec<(usize, usize)> {
    let mut first: Vec<usize> = Vec::with_capacity(s.end + 1 - s.start);
    let mut out = Vec::new();
    for (k, node) in nodes.iter().enumerate().take(s.end + 1).skip(s.start) {
        let begin = |of: usize, first: &[usize]| first[of - s.start];
        let own = match node {
            Node::Number(_) | Node::Name(_) => k,
            Node::Apply(_, x) | Node::Call(_, x) | Node::Matrix(_, x) => {
                x.first().map_or(k, |x| begin(*x, &first))
            }
            Node::Compare(_, a, _) | Node::Logic(_, a, _) | Node::Not(a) => begin(*a, &first),
            Node::Index(x, places) => {
                for p in places {
                    if let Index::At(p) = p {
                        out.push((begin(*p, &first), *p));
                    }
                }
                begin(*x, &first)
            }
            Node::Choice { condition, .. } => begin(*condition, &first),
            Node::If(choice) => begin(*choice, &first),
            Node::Loop { from, to, .. } => {
                out.push((begin(*from, &first), *from));
                out.push((begin(*to, &first), *to));
                begin(*from, &first)
            }
            Node::Sum(at) => begin(*at, &first),
        };
        first.push(own);
    }
    out
}
