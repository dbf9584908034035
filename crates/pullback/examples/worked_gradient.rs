//! A gradient worked out by hand and by machine: the forward primal trace and the reverse adjoint trace of
//! `y = x1 x2 + sin(x1)` at (2, 3).
//!
//! Run it with `cargo run --release --example worked_gradient`.

use pullback::prelude::*;

/// One step of the computation: its name, what is written for it in both tables, and its value.
struct Step {
    name: &'static str,
    formula: &'static str,
    /// How the adjoint follows from those of the values that this one goes into.
    adjoint: &'static str,
    value: Tensor,
}

fn main() {
    let x1 = Tensor::scalar(2.0).requires_grad();
    let x2 = Tensor::scalar(3.0).requires_grad();
    let product = &x1 * &x2;
    let sine = x1.sin();
    let y = &product + &sine;

    let step = |name, formula, adjoint, value: &Tensor| Step { name, formula, adjoint, value: value.clone() };
    let trace = [
        step("x1", "input", "v1' x2 + v2' cos(x1)", &x1),
        step("x2", "input", "v1' x1", &x2),
        step("v1", "x1 x2", "y' 1", &product),
        step("v2", "sin(x1)", "y' 1", &sine),
        step("y", "v1 + v2", "seed", &y),
    ];

    // Leaves gather their gradients anyway; values on the way do so on request.
    [&product, &sine, &y].iter().for_each(|v| v.retain_grad());
    y.backward();

    println!("y = x1 x2 + sin(x1) at x1 = 2, x2 = 3\n");
    println!("Forward: every value from those above it");
    table(
        ["name", "formula", "value"],
        trace.iter().map(|s| (s.name.to_string(), s.formula, s.value.item())),
    );
    println!("\nReverse: every adjoint v' = dy/dv from those above it");
    let adjoint = |s: &Step| s.value.grad().map_or(0.0, |g| g.item());
    table(
        ["name", "formula", "adjoint"],
        trace.iter().rev().map(|s| (format!("{}'", s.name), s.adjoint, adjoint(s))),
    );

    let [d1, d2] = [&x1, &x2].map(|x| x.grad().map_or(0.0, |g| g.item()));
    println!("\nGradient: dy/dx1 = x2 + cos(x1) = {d1:.6}");
    println!("          dy/dx2 = x1           = {d2:.6}");
}

/// Three columns, each as wide as its longest cell.
fn table(titles: [&str; 3], rows: impl Iterator<Item = (String, &'static str, f64)>) {
    let rows: Vec<[String; 3]> = rows.map(|(name, is, v)| [name, is.into(), format!("{v:.6}")]).collect();
    let width = |k: usize| rows.iter().map(|r| r[k].len()).chain([titles[k].len()]).max().unwrap_or(0);
    let (a, b, c) = (width(0), width(1), width(2));
    println!("  {:<a$}  {:<b$}  {:>c$}", titles[0], titles[1], titles[2]);
    println!("  {}  {}  {}", "-".repeat(a), "-".repeat(b), "-".repeat(c));
    for [name, is, value] in &rows {
        println!("  {name:<a$}  {is:<b$}  {value:>c$}");
    }
}
