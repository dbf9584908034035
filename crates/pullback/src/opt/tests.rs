//! What each pass does, on printed graphs.

mod bodies;
mod growth;
mod moves;

use super::*;
use crate::prelude::*;

/// The text of a graph after one pass and the removal of dead code.
fn after(name: &str, options: &Options, text: &str) -> String {
    let graph: Graph = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    let clean = laws::after(&[name, "dce"], &graph, options, 0);
    clean.verify().unwrap();
    clean.to_string()
}

/// The body of the printed result, one line an operation, with the operations of the text inside `graph(header) { .. }`.
#[track_caller]
fn check_with(options: &Options, pass: &str, header: &str, before: &[&str], expected: &[&str]) {
    let wrap = |lines: &[&str]| format!("graph({header}) {{\n  {}\n}}", lines.join("\n  "));
    assert_eq!(after(pass, options, &wrap(before)), wrap(expected));
}

#[track_caller]
fn check(pass: &str, header: &str, before: &[&str], expected: &[&str]) {
    check_with(&Options::default(), pass, header, before, expected);
}

#[track_caller]
fn check_fast(pass: &str, header: &str, before: &[&str], expected: &[&str]) {
    let fast = Options { fast_math: true, ..Options::default() };
    check_with(&fast, pass, header, before, expected);
    check_with(&Options::default(), pass, header, before, before);
}

const X: &str = "x0: f64[3]";

#[test]
fn constants_fold_and_stay_splat() {
    check(
        "fold",
        "x0: f64[5000]",
        &[
            "c0 = constant 2.0 : f64[5000]",
            "c1 = constant 3.0 : f64[5000]",
            "%0 = mul(c0, c1) : f64[5000]",
            "%1 = add(x0, %0) : f64[5000]",
            "return %1",
        ],
        &["c0 = constant 6.0 : f64[5000]", "%0 = add(x0, c0) : f64[5000]", "return %0"],
    );
    check(
        "fold",
        X,
        &[
            "c0 = constant [1.0, 2.0, 3.0] : f64[3]",
            "%0 = sum(c0) {axes: [0]} : f64[]",
            "%1 = broadcast_to(%0) {to: [3]} : f64[3]",
            "%2 = add(x0, %1) : f64[3]",
            "return %2",
        ],
        &["c0 = constant 6.0 : f64[3]", "%0 = add(x0, c0) : f64[3]", "return %0"],
    );
}

#[test]
fn a_constant_that_fails_is_left_to_fail() {
    let text = ["c0 = constant 0 : i64[]", "%0 = div(c0, c0) : i64[]", "return %0"];
    check("fold", "", &text, &text);
}

#[test]
fn a_captured_parameter_is_not_folded() {
    let w = Tensor::from([1.0, 2.0]).requires_grad();
    let text = "graph(x0: f64[2]) {\n c0 = constant 0.0 : f64[2]\n %0 = exp(c0) : f64[2]\n %1 = mul(x0, %0) : f64[2]\n return %1\n}";
    let mut g: Graph = text.parse().unwrap();
    g.consts[0] = w.clone();
    let g = g.optimize();
    assert_eq!(g.len(), 2);
    g.run(&[Tensor::ones([2])]).unwrap()[0].sum().backward();
    assert_eq!(w.grad().unwrap().to_vec::<f64>(), w.exp().to_vec::<f64>());
}

#[test]
fn operations_that_change_nothing_go() {
    let gone = |line: &str| {
        check("simplify", X, &["c0 = constant 1.0 : f64[3]", line, "return %0"], &["return x0"]);
    };
    gone("%0 = mul(x0, c0) : f64[3]");
    gone("%0 = mul(c0, x0) : f64[3]");
    gone("%0 = div(x0, c0) : f64[3]");
    gone("%0 = gate(x0, c0) : f64[3]");
    gone("%0 = identity(x0) : f64[3]");
    gone("%0 = maximum(x0, x0) : f64[3]");
    gone("%0 = cast(x0) {to: f64} : f64[3]");
    check("simplify", X, &["%0 = neg(x0) : f64[3]", "%1 = neg(%0) : f64[3]", "return %1"], &["return x0"]);
}

#[test]
fn zeros_of_either_sign_are_kept_exactly() {
    let with = |zero: &str, line: &str| {
        let text = ["graph(x0: f64[3]) {", &format!("c0 = constant {zero} : f64[3]"), line, "return %0", "}"]
            .join("\n");
        after("simplify", &Options::default(), &text).contains("return x0")
    };
    assert!(with("-0.0", "%0 = add(x0, c0) : f64[3]"));
    assert!(!with("0.0", "%0 = add(x0, c0) : f64[3]"));
    assert!(with("0.0", "%0 = sub(x0, c0) : f64[3]"));
    assert!(!with("-0.0", "%0 = sub(x0, c0) : f64[3]"));
    // A value that cannot be -0.
    check(
        "simplify",
        X,
        &["c0 = constant 0.0 : f64[3]", "%0 = exp(x0) : f64[3]", "%1 = add(%0, c0) : f64[3]", "return %1"],
        &["%0 = exp(x0) : f64[3]", "return %0"],
    );
}

#[test]
fn what_holds_only_for_numbers_asks_for_fast_math() {
    check_fast(
        "simplify",
        X,
        &["%0 = sub(x0, x0) : f64[3]", "return %0"],
        &["c0 = constant 0.0 : f64[3]", "return c0"],
    );
    check_fast(
        "simplify",
        X,
        &["%0 = div(x0, x0) : f64[3]", "return %0"],
        &["c0 = constant 1.0 : f64[3]", "return c0"],
    );
    check_fast(
        "simplify",
        X,
        &["c0 = constant 0.0 : f64[3]", "%0 = mul(x0, c0) : f64[3]", "return %0"],
        &["c0 = constant 0.0 : f64[3]", "return c0"],
    );
    check_fast(
        "simplify",
        X,
        &["%0 = sub(x0, x0) : f64[3]", "%1 = neg(%0) : f64[3]", "return %1"],
        &["c0 = constant 0.0 : f64[3]", "%0 = neg(c0) : f64[3]", "return %0"],
    );
    check(
        "simplify",
        "x0: i64[3]",
        &["%0 = sub(x0, x0) : i64[3]", "return %0"],
        &["c0 = constant 0 : i64[3]", "return c0"],
    );
}

#[test]
fn negations_join_sums_and_products() {
    let two = "x0: f64[3], x1: f64[3]";
    check(
        "simplify",
        two,
        &["%0 = neg(x0) : f64[3]", "%1 = add(%0, x1) : f64[3]", "return %1"],
        &["%0 = sub(x1, x0) : f64[3]", "return %0"],
    );
    check(
        "simplify",
        two,
        &["%0 = neg(x0) : f64[3]", "%1 = sub(x1, %0) : f64[3]", "return %1"],
        &["%0 = add(x1, x0) : f64[3]", "return %0"],
    );
    check(
        "simplify",
        two,
        &["c0 = constant 3.0 : f64[3]", "%0 = mul(x0, c0) : f64[3]", "%1 = neg(%0) : f64[3]", "return %1"],
        &["c0 = constant -3.0 : f64[3]", "%0 = mul(x0, c0) : f64[3]", "return %0"],
    );
    check(
        "simplify",
        two,
        &["%0 = neg(x0) : f64[3]", "%1 = neg(x1) : f64[3]", "%2 = mul(%0, %1) : f64[3]", "return %2"],
        &["%0 = mul(x0, x1) : f64[3]", "return %0"],
    );
}

#[test]
fn the_gate_of_a_known_factor_is_a_product() {
    check(
        "simplify",
        X,
        &["c0 = constant 2.0 : f64[3]", "%0 = gate(c0, x0) : f64[3]", "return %0"],
        &["c0 = constant 2.0 : f64[3]", "%0 = mul(x0, c0) : f64[3]", "return %0"],
    );
    check(
        "simplify",
        X,
        &["c0 = constant 0.0 : f64[3]", "%0 = gate(c0, x0) : f64[3]", "return %0"],
        &["c0 = constant 0.0 : f64[3]", "return c0"],
    );
    // -0 times a negative number would change its sign.
    let text = ["c0 = constant -2.0 : f64[3]", "%0 = gate(x0, c0) : f64[3]", "return %0"];
    check("simplify", X, &text, &text);
}

#[test]
fn choices_with_a_known_mask() {
    let two = "x0: f64[3], x1: f64[3], x2: bool[3]";
    check(
        "simplify",
        two,
        &["c0 = constant true : bool[3]", "%0 = where(c0, x0, x1) : f64[3]", "return %0"],
        &["return x0"],
    );
    check(
        "simplify",
        two,
        &["%0 = not(x2) : bool[3]", "%1 = where(%0, x0, x1) : f64[3]", "return %1"],
        &["%0 = where(x2, x1, x0) : f64[3]", "return %0"],
    );
    check(
        "simplify",
        two,
        &["c0 = constant true : bool[3]", "%0 = logic(x2, c0) {connective: and} : bool[3]", "return %0"],
        &["return x2"],
    );
}

#[test]
fn casts_through_a_wider_type() {
    check(
        "simplify",
        "x0: f32[3]",
        &["%0 = cast(x0) {to: f64} : f64[3]", "%1 = cast(%0) {to: f32} : f32[3]", "return %1"],
        &["return x0"],
    );
    let narrow = ["%0 = cast(x0) {to: f16} : f16[3]", "%1 = cast(%0) {to: f32} : f32[3]", "return %1"];
    check("simplify", "x0: f32[3]", &narrow, &narrow);
}

#[test]
fn division_by_a_power_of_two_is_a_product() {
    check(
        "simplify",
        X,
        &["c0 = constant 8.0 : f64[3]", "%0 = div(x0, c0) : f64[3]", "return %0"],
        &["c0 = constant 0.125 : f64[3]", "%0 = mul(x0, c0) : f64[3]", "return %0"],
    );
    check_fast(
        "strength",
        X,
        &["c0 = constant 10.0 : f64[3]", "%0 = div(x0, c0) : f64[3]", "return %0"],
        &["c0 = constant 0.1 : f64[3]", "%0 = mul(x0, c0) : f64[3]", "return %0"],
    );
}

#[test]
fn powers() {
    check(
        "strength",
        X,
        &["c0 = constant 1.0 : f64[3]", "%0 = pow(x0, c0) : f64[3]", "return %0"],
        &["return x0"],
    );
    check_fast(
        "strength",
        X,
        &["c0 = constant 2.0 : f64[3]", "%0 = pow(x0, c0) : f64[3]", "return %0"],
        &["%0 = square(x0) : f64[3]", "return %0"],
    );
    check_fast(
        "strength",
        X,
        &["c0 = constant 3.0 : f64[3]", "%0 = pow(x0, c0) : f64[3]", "return %0"],
        &["%0 = square(x0) : f64[3]", "%1 = mul(%0, x0) : f64[3]", "return %1"],
    );
}

#[test]
fn equal_values_are_computed_once() {
    check(
        "cse",
        "x0: f64[3], x1: f64[3]",
        &[
            "c0 = constant 2.0 : f64[3]",
            "c1 = constant 2.0 : f64[3]",
            "%0 = mul(x0, c0) : f64[3]",
            "%1 = mul(c1, x0) : f64[3]",
            "%2 = sub(x0, x1) : f64[3]",
            "%3 = sub(x1, x0) : f64[3]",
            "return %0, %1, %2, %3",
        ],
        &[
            "c0 = constant 2.0 : f64[3]",
            "%0 = mul(x0, c0) : f64[3]",
            "%1 = sub(x0, x1) : f64[3]",
            "%2 = sub(x1, x0) : f64[3]",
            "return %0, %0, %1, %2",
        ],
    );
    // Zeros of different signs are different, and so are bounds.
    let text = [
        "c0 = constant 0.0 : f64[3]",
        "c1 = constant -0.0 : f64[3]",
        "%0 = div(x0, c0) : f64[3]",
        "%1 = div(x0, c1) : f64[3]",
        "%2 = clamp(x0) {low: 0, high: 1} : f64[3]",
        "%3 = clamp(x0) {low: -0, high: 1} : f64[3]",
        "return %0, %1, %2, %3",
    ];
    check("cse", X, &text, &text);
}

#[test]
fn parameters_of_equal_values_stay_apart() {
    let (v, w) = (Tensor::from([1.0, 2.0]).requires_grad(), Tensor::from([1.0, 2.0]).requires_grad());
    let g = trace(|x: &Tensor| x * v.exp() + x * w.sin().exp(), &Tensor::zeros([2])).optimize();
    g.run(&[Tensor::ones([2])]).unwrap()[0].sum().backward();
    assert_ne!(v.grad().unwrap().to_vec::<f64>(), w.grad().unwrap().to_vec::<f64>());
}

#[test]
fn dead_code_goes_and_inputs_stay() {
    check(
        "dce",
        "x0: f64[3], x1: f64[3]",
        &["c0 = constant 7.0 : f64[3]", "%0 = mul(x1, c0) : f64[3]", "%1 = exp(x0) : f64[3]", "return %1"],
        &["%0 = exp(x0) : f64[3]", "return %0"],
    );
}

#[test]
fn stop_gradient_stays_where_a_derivative_may_follow() {
    let text = ["%0 = stop_gradient(x0) : f64[3]", "return %0"];
    check("simplify", X, &text, &text);
    let last = Options { differentiable: false, ..Options::default() };
    check_with(&last, "simplify", X, &text, &["return x0"]);
}

#[test]
fn the_report_counts() {
    let g = trace(|x: &Tensor| (x * 1.0).sin() + (x * 1.0).sin(), &Tensor::zeros([3]));
    let (best, report) = g.optimize_with(&Options::default());
    assert_eq!(report.before.operations, g.len() as u64);
    assert_eq!(report.after.operations, best.len() as u64);
    let removed: isize = report.passes.iter().map(|p| p.removed).sum();
    assert_eq!(removed, (g.len() - best.len()) as isize);
    assert!(report.to_string().contains("2 operations of 5"), "{report}");
}

#[test]
fn a_pass_that_is_not_accepted_leaves_no_trace_and_the_others_go_on() {
    let g = trace(|x: &Tensor| (x * 1.0).sin() + (x * 1.0).sin(), &Tensor::zeros([3]));
    let options = Options::default();
    let sines = |g: &Graph| g.to_string().matches("sin(").count();
    let mut report = Report::new(g.statistics());
    let best = pipeline::optimised(&g, &options, &mut report, |g| sines(g) == 2);
    assert_eq!((best.len(), sines(&best)), (3, 2), "{best}");
    assert!(report.passes.iter().any(|p| p.name == "simplify" && p.removed == 2));
    assert!(report.passes.iter().all(|p| p.name != "cse"));
}
