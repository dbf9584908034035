//! What fusion does, on printed graphs.

use super::*;
use crate::opt::laws::{after, fused as grouped};
use crate::prelude::*;

/// Fuses a graph given by its lines, and compares the lines of the result.
#[track_caller]
fn check(header: &str, before: &[&str], expected: &[&str]) {
    check_with(0, header, before, expected);
}

#[track_caller]
fn check_with(spare: u64, header: &str, before: &[&str], expected: &[&str]) {
    let wrap = |lines: &[&str]| format!("graph({header}) {{\n  {}\n}}", lines.join("\n  "));
    let graph: Graph = wrap(before).parse().unwrap_or_else(|e| panic!("{e}"));
    let fused = after(&["share", "fuse"], &graph, &Options::default(), spare);
    fused.verify().unwrap();
    assert!(fused.len() <= graph.len());
    let text = fused.to_string();
    assert_eq!(text, wrap(expected));
    assert_eq!(text.parse::<Graph>().unwrap().to_string(), text, "a group is read back");
}

#[test]
fn a_chain_becomes_one_operation() {
    check(
        "x0: f32[4], x1: f32[4]",
        &[
            "%0 = mul(x0, x1) : f32[4]",
            "%1 = exp(%0) : f32[4]",
            "%2 = sum(%1) {axes: [0]} : f32[]",
            "return %2",
        ],
        &[
            "%0 = fused(x0, x1) : (f32[])",
            "  graph(x0: f32[4], x1: f32[4]) {",
            "    %0 = mul(x0, x1) : f32[4]",
            "    %1 = exp(%0) : f32[4]",
            "    %2 = sum(%1) {axes: [0]} : f32[]",
            "    return %2",
            "  }",
            "return %0",
        ],
    );
}

#[test]
fn what_is_used_outside_is_an_output() {
    check(
        "x0: f32[4, 4]",
        &[
            "%0 = tanh(x0) : f32[4, 4]",
            "%1 = neg(%0) : f32[4, 4]",
            "%2 = matmul(%0, %0) : f32[4, 4]",
            "return %1, %2",
        ],
        &[
            "%0 = fused(x0) : (f32[4, 4], f32[4, 4])",
            "  graph(x0: f32[4, 4]) {",
            "    %0 = tanh(x0) : f32[4, 4]",
            "    %1 = neg(%0) : f32[4, 4]",
            "    return %0, %1",
            "  }",
            "%1 = matmul(%0, %0) : f32[4, 4]",
            "return %0.1, %1",
        ],
    );
}

#[test]
fn what_only_the_backward_pass_needs_is_computed_there() {
    check(
        "x0: f32[4, 4]",
        &[
            "c0 = constant 1.0 : f32[4, 4]",
            "%0 = exp(x0) : f32[4, 4]",
            "%1 = tanh(%0) : f32[4, 4]",
            "%2 = matmul(%1, %1) : f32[4, 4]",
            "%3 = sub(c0, %1) : f32[4, 4]",
            "%4 = gate(%2, %3) : f32[4, 4]",
            "return %4",
        ],
        &[
            "%0 = fused(x0) : (f32[4, 4])",
            "  graph(x0: f32[4, 4]) {",
            "    %0 = exp(x0) : f32[4, 4]",
            "    %1 = tanh(%0) : f32[4, 4]",
            "    return %1",
            "  }",
            "%1 = matmul(%0, %0) : f32[4, 4]",
            "%2 = fused(%0, %1) : (f32[4, 4])",
            "  graph(x0: f32[4, 4], x1: f32[4, 4]) {",
            "    c0 = constant 1.0 : f32[4, 4]",
            "    %0 = sub(c0, x0) : f32[4, 4]",
            "    %1 = gate(x1, %0) : f32[4, 4]",
            "    return %1",
            "  }",
            "return %2",
        ],
    );
}

#[test]
fn nothing_is_computed_both_before_and_after_a_group() {
    // The first and the last operation cannot be one: the product in between reads the one, and is read by the other.
    let lines = [
        "%0 = exp(x0) : f32[4, 4]",
        "%1 = matmul(%0, %0) : f32[4, 4]",
        "%2 = add(%0, %1) : f32[4, 4]",
        "return %2",
    ];
    check("x0: f32[4, 4]", &lines, &lines);
}

#[test]
fn views_and_numbers_go_into_the_group_and_rows_are_seen_whole() {
    check(
        "x0: f32[5, 8]",
        &[
            "c0 = constant 0.5 : f32[5, 8]",
            "%0 = max(x0) {axes: [1]} : f32[5]",
            "%1 = reshape(%0) {to: [5, 1]} : f32[5, 1]",
            "%2 = broadcast_to(%1) {to: [5, 8]} : f32[5, 8]",
            "%3 = sub(x0, %2) : f32[5, 8]",
            "%4 = mul(%3, c0) : f32[5, 8]",
            "return %4",
        ],
        &[
            "%0 = fused(x0) : (f32[5, 8])",
            "  graph(x0: f32[5, 8]) {",
            "    c0 = constant 0.5 : f32[5, 8]",
            "    %0 = max(x0) {axes: [1]} : f32[5]",
            "    %1 = reshape(%0) {to: [5, 1]} : f32[5, 1]",
            "    %2 = broadcast_to(%1) {to: [5, 8]} : f32[5, 8]",
            "    %3 = sub(x0, %2) : f32[5, 8]",
            "    %4 = mul(%3, c0) : f32[5, 8]",
            "    return %4",
            "  }",
            "return %0",
        ],
    );
}

#[test]
fn operations_that_read_the_same_value_are_joined() {
    check(
        "x0: f64[9]",
        &["%0 = exp(x0) : f64[9]", "%1 = sin(x0) : f64[9]", "return %0, %1"],
        &[
            "%0 = fused(x0) : (f64[9], f64[9])",
            "  graph(x0: f64[9]) {",
            "    %0 = exp(x0) : f64[9]",
            "    %1 = sin(x0) : f64[9]",
            "    return %0, %1",
            "  }",
            "return %0, %0.1",
        ],
    );
}

#[test]
fn what_has_no_common_space_stays_apart() {
    // A sum over the first axis is complete only at the end of a group, so that nothing in it can use the sum.
    let lines = [
        "%0 = sum(x0) {axes: [0]} : f32[8]",
        "%1 = broadcast_to(%0) {to: [5, 8]} : f32[5, 8]",
        "%2 = sub(x0, %1) : f32[5, 8]",
        "return %2",
    ];
    check("x0: f32[5, 8]", &lines, &lines);
    // Neither have rows that are too long to be kept, numbers of different types, or integers.
    let lines = [
        "%0 = sum(x0) {axes: [1]} : f32[2]",
        "%1 = reshape(%0) {to: [2, 1]} : f32[2, 1]",
        "%2 = broadcast_to(%1) {to: [2, 9000]} : f32[2, 9000]",
        "%3 = sub(x0, %2) : f32[2, 9000]",
        "return %3",
    ];
    check("x0: f32[2, 9000]", &lines, &lines);
    let lines =
        ["%0 = exp(x0) : f32[4]", "%1 = cast(%0) {to: f64} : f64[4]", "%2 = sin(%1) : f64[4]", "return %2"];
    check("x0: f32[4]", &lines, &lines);
    let lines = ["%0 = neg(x0) : i64[4]", "%1 = mul(%0, x0) : i64[4]", "return %1"];
    check("x0: i64[4]", &lines, &lines);
}

#[test]
fn slices_and_pads_go_into_the_group() {
    check(
        "x0: f64[9], x1: f64[10]",
        &[
            "c0 = constant 0.0 : f64[1]",
            "c1 = constant 0.0 : f64[10]",
            "%0 = slice(x1) {region: [[0, 1, 9]]} : f64[9]",
            "%1 = mul(%0, x0) : f64[9]",
            "%2 = concat(c0, %1) {axis: 0} : f64[10]",
            "%3 = add(%2, x1) : f64[10]",
            "%4 = slice(%3) {region: [[1, 1, 9]]} : f64[9]",
            "%5 = exp(%4) : f64[9]",
            "%6 = slice_assign(c1, %5) {region: [[0, 1, 9]]} : f64[10]",
            "%7 = sub(%3, %6) : f64[10]",
            "return %7",
        ],
        &[
            "%0 = fused(x1, x0) : (f64[10])",
            "  graph(x0: f64[10], x1: f64[9]) {",
            "    c0 = constant 0.0 : f64[1]",
            "    c1 = constant 0.0 : f64[10]",
            "    %0 = slice(x0) {region: [[0, 1, 9]]} : f64[9]",
            "    %1 = mul(%0, x1) : f64[9]",
            "    %2 = concat(c0, %1) {axis: 0} : f64[10]",
            "    %3 = add(%2, x0) : f64[10]",
            "    %4 = slice(%3) {region: [[1, 1, 9]]} : f64[9]",
            "    %5 = exp(%4) : f64[9]",
            "    %6 = slice_assign(c1, %5) {region: [[0, 1, 9]]} : f64[10]",
            "    %7 = sub(%3, %6) : f64[10]",
            "    return %7",
            "  }",
            "return %0",
        ],
    );
}

#[test]
fn a_pad_that_is_needed_outside_stays_and_is_read_through() {
    check(
        "x0: f64[4, 3]",
        &[
            "c0 = constant 1.0 : f64[4, 1]",
            "%0 = concat(x0, c0) {axis: 1} : f64[4, 4]",
            "%1 = exp(%0) : f64[4, 4]",
            "%2 = neg(%1) : f64[4, 4]",
            "return %0, %2",
        ],
        &[
            "c0 = constant 1.0 : f64[4, 1]",
            "%0 = concat(x0, c0) {axis: 1} : f64[4, 4]",
            "%1 = fused(x0) : (f64[4, 4])",
            "  graph(x0: f64[4, 3]) {",
            "    c0 = constant 1.0 : f64[4, 1]",
            "    %0 = concat(x0, c0) {axis: 1} : f64[4, 4]",
            "    %1 = exp(%0) : f64[4, 4]",
            "    %2 = neg(%1) : f64[4, 4]",
            "    return %2",
            "  }",
            "return %0, %1",
        ],
    );
}

#[test]
fn columns_are_not_shifted_within_a_group() {
    // The columns of what a group computes do not follow each other: they are read when it is done.
    let lines = [
        "%0 = exp(x0) : f64[4, 3]",
        "%1 = slice(%0) {region: [[0, 1, 4], [1, 1, 2]]} : f64[4, 2]",
        "%2 = neg(%1) : f64[4, 2]",
        "return %2",
    ];
    check("x0: f64[4, 3]", &lines, &lines);
}

#[test]
fn groups_are_made_inside_of_bodies() {
    let body = |lines: &[&str]| {
        let head = ["%0 = checkpoint(x0) : (f64[4])", "  graph(x0: f64[4]) {"];
        let all = head.iter().chain(lines).chain(&["  }", "return %0"]);
        all.map(|s| s.to_string()).collect::<Vec<_>>()
    };
    let before = body(&["    %0 = exp(x0) : f64[4]", "    %1 = sin(%0) : f64[4]", "    return %1"]);
    let after = body(&[
        "    %0 = fused(x0) : (f64[4])",
        "      graph(x0: f64[4]) {",
        "        %0 = exp(x0) : f64[4]",
        "        %1 = sin(%0) : f64[4]",
        "        return %1",
        "      }",
        "    return %0",
    ]);
    let lines = |all: &[String]| all.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
    check("x0: f64[4]", &[&lines(&before).replace('\n', "\n  ")], &[&lines(&after).replace('\n', "\n  ")]);
}

#[test]
fn parts_of_one_value_that_lie_apart_are_no_siblings() {
    let lines = [
        "%0 = slice(x0) {region: [[0, 1, 300]]} : f64[300]",
        "%1 = exp(%0) : f64[300]",
        "%2 = slice(x0) {region: [[300, 1, 300]]} : f64[300]",
        "%3 = sin(%2) : f64[300]",
        "return %1, %3",
    ];
    check("x0: f64[600]", &lines, &lines);
}

#[test]
fn a_product_is_done_again_rather_than_kept_if_there_is_work_to_spare() {
    let header = "x0: f32[16, 16], x1: f32[16, 1]";
    let wide = "broadcast_to(x1) {to: [16, 16]} : f32[16, 16]";
    let before = [
        "%0 = exp(x0) : f32[16, 16]",
        &format!("%1 = {wide}"),
        "%2 = mul(%0, %1) : f32[16, 16]",
        "%3 = neg(%2) : f32[16, 16]",
        "%4 = matmul(%3, %3) : f32[16, 16]",
        "%5 = mul(%4, %2) : f32[16, 16]",
        "%6 = add(%5, %0) : f32[16, 16]",
        "return %6",
    ];
    let first = |outputs: &str, kept: &str| {
        vec![
            format!("%0 = fused(x0, x1) : ({outputs})"),
            "  graph(x0: f32[16, 16], x1: f32[16, 1]) {".into(),
            "    %0 = exp(x0) : f32[16, 16]".into(),
            format!("    %1 = {wide}"),
            "    %2 = mul(%0, %1) : f32[16, 16]".into(),
            "    %3 = neg(%2) : f32[16, 16]".into(),
            format!("    return {kept}"),
            "  }".into(),
        ]
    };
    let expect = |spare, lines: Vec<String>, rest: &[&str]| {
        let lines: Vec<&str> = lines.iter().map(String::as_str).chain(rest.iter().copied()).collect();
        check_with(spare, header, &before, &lines);
    };
    let kept = [
        "%1 = matmul(%0.2, %0.2) : f32[16, 16]",
        "%2 = fused(%1, %0.1, %0) : (f32[16, 16])",
        "  graph(x0: f32[16, 16], x1: f32[16, 16], x2: f32[16, 16]) {",
        "    %0 = mul(x0, x1) : f32[16, 16]",
        "    %1 = add(%0, x2) : f32[16, 16]",
        "    return %1",
        "  }",
        "return %2",
    ];
    expect(255, first("f32[16, 16], f32[16, 16], f32[16, 16]", "%0, %2, %3"), &kept);
    let again = [
        "%1 = matmul(%0.1, %0.1) : f32[16, 16]",
        "%2 = fused(%0, x1, %1) : (f32[16, 16])",
        "  graph(x0: f32[16, 16], x1: f32[16, 1], x2: f32[16, 16]) {",
        &format!("    %0 = {wide}"),
        "    %1 = mul(x0, %0) : f32[16, 16]",
        "    %2 = mul(x2, %1) : f32[16, 16]",
        "    %3 = add(%2, x0) : f32[16, 16]",
        "    return %3",
        "  }",
        "return %2",
    ];
    expect(256, first("f32[16, 16], f32[16, 16]", "%0, %3"), &again);
}

/// `x sigmoid(x)` and a product of it, then the product times `after` of the sigmoid, `%1`, of the argument, `%0`, and of `%4`, which is 1 less the
/// sigmoid.
fn gated(after: &[&str]) -> Vec<String> {
    let before = [
        "c0 = constant 1.0 : f32[4, 4]",
        "%0 = exp(x0) : f32[4, 4]",
        "%1 = sigmoid(%0) : f32[4, 4]",
        "%2 = mul(%0, %1) : f32[4, 4]",
        "%3 = matmul(%2, %2) : f32[4, 4]",
        "%4 = sub(c0, %1) : f32[4, 4]",
    ];
    before.iter().chain(after).map(|&line| line.into()).collect()
}

fn fused(lines: &[String]) -> String {
    let text = format!("graph(x0: f32[4, 4]) {{\n  {}\n}}", lines.join("\n  "));
    grouped(&text.parse().unwrap_or_else(|e| panic!("{e}"))).to_string()
}

#[test]
fn a_factor_is_kept_instead_of_the_values_it_is_made_of() {
    let after = [
        "%5 = mul(%4, %0) : f32[4, 4]",
        "%6 = mul(%5, %1) : f32[4, 4]",
        "%7 = gate(%3, %6) : f32[4, 4]",
        "return %7",
    ];
    let expected = [
        "graph(x0: f32[4, 4]) {",
        "  %0 = fused(x0) : (f32[4, 4], f32[4, 4])",
        "    graph(x0: f32[4, 4]) {",
        "      c0 = constant 1.0 : f32[4, 4]",
        "      %0 = exp(x0) : f32[4, 4]",
        "      %1 = sigmoid(%0) : f32[4, 4]",
        "      %2 = mul(%0, %1) : f32[4, 4]",
        "      %3 = sub(c0, %1) : f32[4, 4]",
        "      %4 = mul(%3, %0) : f32[4, 4]",
        "      %5 = mul(%4, %1) : f32[4, 4]",
        "      return %2, %5",
        "    }",
        "  %1 = matmul(%0, %0) : f32[4, 4]",
        "  %2 = gate(%1, %0.1) : f32[4, 4]",
        "  return %2",
        "}",
    ];
    assert_eq!(fused(&gated(&after)), expected.join("\n"));
}

#[test]
fn a_factor_that_saves_nothing_is_computed_where_it_is_read() {
    // As many bytes as the sigmoid that it is made of; and with the argument needed besides, no fewer either.
    let alone = ["%5 = gate(%3, %4) : f32[4, 4]", "return %5"];
    let beside = [
        "%5 = mul(%4, %0) : f32[4, 4]",
        "%6 = mul(%5, %1) : f32[4, 4]",
        "%7 = gate(%3, %6) : f32[4, 4]",
        "%8 = add(%7, %0) : f32[4, 4]",
        "return %8",
    ];
    for after in [&alone[..], &beside] {
        let text = fused(&gated(after));
        let (early, late) = text.split_once("matmul").expect("the product is there");
        assert!(!early.contains("sub(") && late.contains("sub("), "{text}");
    }
}

#[test]
fn a_gradient_shares_the_parts_of_an_activation() {
    type Activation = fn(&Tensor) -> Tensor;
    // The derivative of `silu` has a sigmoid of its own, that of the negative argument.
    let cases: [(Activation, &str, &str, usize); 2] =
        [(|x| x.gelu(), "gelu(", "erfc(", 1), (|x| x.silu(), "silu(", "= sigmoid(", 2)];
    for (activation, whole, part, times) in cases {
        let loss = move |x: &Tensor| activation(&(x.matmul(x) + 1.0)).matmul(x).square().sum();
        let x = Tensor::randn(Key::new(1), [4, 4], DType::F32);
        let fused = |graph: Graph| {
            let last = Options { differentiable: false, ..Options::default() };
            grouped(&graph.optimize_with(&last).0)
        };
        // The value alone has no use for the parts.
        let value = fused(trace(loss, &x)).to_string();
        assert!(value.contains(whole) && !value.contains(part), "{value}");
        let graph = trace(value_and_grad(loss), &x);
        let both = fused(graph.clone());
        let text = both.to_string();
        assert_eq!((text.matches(whole).count(), text.matches(part).count()), (0, times), "{text}");
        let (expected, result) = (graph.run(std::slice::from_ref(&x)).unwrap(), both.run(&[x]).unwrap());
        for (e, r) in expected.iter().zip(&result) {
            let close =
                e.to_vec::<f32>().iter().zip(r.to_vec::<f32>()).all(|(e, r)| (e - r).abs() <= 1e-5 * e.abs());
            assert!(close, "{e} {r}");
        }
    }
}
