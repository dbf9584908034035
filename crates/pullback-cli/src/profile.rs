//! `pullback run --profile`: where the time goes, by lines of the graph file.

use crate::failure::Result;
use crate::model::Model;
use pullback::{Place, Tensor, compile};
use std::time::{Duration, Instant};

/// Runs of which the shortest time counts, after one that warms up.
const RUNS: usize = 5;

/// The lines on which the steps of a graph begin, from 1: `%0 = ..` in the outermost braces.
pub fn step_lines(text: &str) -> Vec<usize> {
    let (mut braces, mut brackets, mut begins) = (0, 0, false);
    let mut lines = Vec::new();
    for (k, line) in text.lines().enumerate() {
        let line = line.split("//").next().unwrap_or("");
        let mut quoted = false;
        for (at, c) in line.char_indices() {
            match c {
                '"' => quoted = !quoted,
                _ if quoted => {}
                '{' => braces += 1,
                '}' => braces -= 1,
                '(' => brackets += 1,
                ')' => brackets -= 1,
                '%' => begins = braces == 1 && brackets == 0 && line[at..].split(['=', '(']).count() > 1,
                '=' if begins => {
                    lines.push(k + 1);
                    begins = false;
                }
                _ => {}
            }
        }
    }
    lines
}

/// A row: the time of one run, and what took it.
type Row = (Duration, String);

/// The table, the slowest first.
pub fn table(model: &Model, inputs: &[Tensor], lines: &[usize], compiled: bool) -> Result<String> {
    let mut rows = if compiled { kernels(model, inputs)? } else { steps(model, inputs, lines)? };
    let total: Duration = rows.iter().map(|r| r.0).sum();
    rows.sort_by_key(|r| std::cmp::Reverse(r.0));
    let share = |t: Duration| 100.0 * t.as_secs_f64() / total.as_secs_f64().max(1e-12);
    let micros = |t: Duration| t.as_nanos() as f64 / 1e3;
    let mut out =
        format!("{:>12}  {:>5}  {}\n", "microseconds", "%", if compiled { "kernel" } else { "line" });
    for (time, what) in &rows {
        out.push_str(&format!("{:>12.2}  {:>5.1}  {what}\n", micros(*time), share(*time)));
    }
    out.push_str(&format!("{:>12.2}         in all\n", micros(total)));
    Ok(out)
}

/// Each step of the file by itself.
fn steps(model: &Model, inputs: &[Tensor], lines: &[usize]) -> Result<Vec<Row>> {
    let graph = &model.graph;
    let mut least = vec![Duration::MAX; graph.steps().len()];
    for run in 0..=RUNS {
        let mut values: Vec<Vec<Tensor>> = Vec::with_capacity(least.len());
        for (k, step) in graph.steps().enumerate() {
            let arg = |place: Place| match place {
                Place::Input(i) => inputs[i].clone(),
                Place::Constant(i) => graph.constants()[i].clone(),
                Place::Step(i, slot) => values[i][slot].clone(),
            };
            let args: Vec<Tensor> = step.args().into_iter().map(arg).collect();
            let start = Instant::now();
            let made = step.apply(&args)?;
            if run > 0 {
                least[k] = least[k].min(start.elapsed());
            }
            values.push(made);
        }
    }
    // The lines of a graph that the parser has read are those of its steps, one each.
    let place = |k: usize| match lines.len() == least.len() {
        true => format!("{}:{}", model.title, lines[k]),
        false => model.title.clone(),
    };
    Ok(graph
        .steps()
        .enumerate()
        .map(|(k, s)| (least[k], format!("{}  %{k} = {}", place(k), s.name())))
        .collect())
}

/// What the compiler has made of them: a kernel may be of several lines.
fn kernels(model: &Model, inputs: &[Tensor]) -> Result<Vec<Row>> {
    let graph = &model.graph;
    let compiled = compile(|x: &Vec<Tensor>| graph.run(x).expect("it is well formed"));
    let profile = compiled.profile(&inputs.to_vec())?;
    Ok(profile.rows.iter().map(|r| (r.time, format!("{} × {}", r.count, r.kernel))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_found_on_their_lines() {
        let text = "// a = b\ngraph(x0: f64[2],\n  x1: f64[2]) {\n  c0 = constant 2.0 : f64[2]\n  %0 = mul(x0, c0) : f64[2]\n\n  \
                    // %9 = nothing\n  %1 = cond(x1,\n    %0) \"a = %7\" : (f64[2])\n    graph(x0: f64[2]) {\n      %0 = exp(x0) : f64[2]\n      \
                    return %0\n    }\n  %2 = sum(%1) {axes: [0]} : f64[] %3 = exp(%2) : f64[]\n  return %3\n}\n";
        assert_eq!(step_lines(text), [5, 8, 14, 14]);
    }
}
