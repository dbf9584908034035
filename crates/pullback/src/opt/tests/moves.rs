//! Moves of elements: permutations, reshapes, broadcasts and slices.

use super::{X, check};

#[test]
fn moves_join_and_cancel() {
    let m = "x0: f64[2, 3]";
    check(
        "moves",
        m,
        &[
            "%0 = permute(x0) {perm: [1, 0]} : f64[3, 2]",
            "%1 = permute(%0) {perm: [1, 0]} : f64[2, 3]",
            "return %1",
        ],
        &["return x0"],
    );
    check(
        "moves",
        m,
        &["%0 = reshape(x0) {to: [6]} : f64[6]", "%1 = reshape(%0) {to: [3, 2]} : f64[3, 2]", "return %1"],
        &["%0 = reshape(x0) {to: [3, 2]} : f64[3, 2]", "return %0"],
    );
    check(
        "moves",
        "x0: f64[3]",
        &[
            "%0 = reshape(x0) {to: [1, 3]} : f64[1, 3]",
            "%1 = broadcast_to(%0) {to: [2, 3]} : f64[2, 3]",
            "return %1",
        ],
        &["%0 = broadcast_to(x0) {to: [2, 3]} : f64[2, 3]", "return %0"],
    );
    check(
        "moves",
        "x0: f64[9]",
        &[
            "%0 = slice(x0) {region: [[8, -2, 4]]} : f64[4]",
            "%1 = slice(%0) {region: [[1, 1, 2]]} : f64[2]",
            "return %1",
        ],
        &["%0 = slice(x0) {region: [[6, -2, 2]]} : f64[2]", "return %0"],
    );
}

#[test]
fn a_copy_is_not_made_twice() {
    // The first reshape copies, and the second one only looks at the copy.
    let both = [
        "%0 = permute(x0) {perm: [1, 0]} : f64[3, 2]",
        "%1 = reshape(%0) {to: [6]} : f64[6]",
        "%2 = reshape(%1) {to: [2, 3]} : f64[2, 3]",
        "return %1, %2",
    ];
    check("moves", "x0: f64[2, 3]", &both, &both);
    let one = ["%1 = reshape(%0) {to: [2, 3]} : f64[2, 3]", "return %1"];
    check("moves", "x0: f64[2, 3]", &[&both[..3], &["return %2"]].concat(), &[&both[..1], &one].concat());
}

#[test]
fn what_is_needed_in_another_order_is_computed_in_it() {
    check(
        "shrink",
        "x0: f64[2, 3], x1: f64[2, 3]",
        &[
            "c0 = constant 2.0 : f64[2, 3]",
            "%0 = exp(x0) : f64[2, 3]",
            "%1 = mul(%0, c0) : f64[2, 3]",
            "%2 = add(%1, x1) : f64[2, 3]",
            "%3 = permute(%2) {perm: [1, 0]} : f64[3, 2]",
            "%4 = reshape(%3) {to: [6]} : f64[6]",
            "return %4",
        ],
        &[
            "c0 = constant 2.0 : f64[3, 2]",
            "%0 = permute(x0) {perm: [1, 0]} : f64[3, 2]",
            "%1 = exp(%0) : f64[3, 2]",
            "%2 = mul(%1, c0) : f64[3, 2]",
            "%3 = permute(x1) {perm: [1, 0]} : f64[3, 2]",
            "%4 = add(%2, %3) : f64[3, 2]",
            "%5 = reshape(%4) {to: [6]} : f64[6]",
            "return %5",
        ],
    );
    // A reshape that needs no copy, and a value that others need as it is.
    let seen = [
        "%0 = exp(x0) : f64[2, 3]",
        "%1 = permute(%0) {perm: [1, 0]} : f64[3, 2]",
        "%2 = reshape(%1) {to: [3, 1, 2]} : f64[3, 1, 2]",
        "return %2",
    ];
    check("shrink", "x0: f64[2, 3]", &seen, &seen);
    let shared = [
        "%0 = exp(x0) : f64[2, 3]",
        "%1 = permute(%0) {perm: [1, 0]} : f64[3, 2]",
        "%2 = reshape(%1) {to: [6]} : f64[6]",
        "return %0, %2",
    ];
    check("shrink", "x0: f64[2, 3]", &shared, &shared);
}

#[test]
fn a_transpose_of_a_product_of_transposes_vanishes() {
    check(
        "moves",
        "x0: f64[2, 3], x1: f64[3, 4]",
        &[
            "%0 = permute(x0) {perm: [1, 0]} : f64[3, 2]",
            "%1 = permute(x1) {perm: [1, 0]} : f64[4, 3]",
            "%2 = matmul(%1, %0) : f64[4, 2]",
            "%3 = permute(%2) {perm: [1, 0]} : f64[2, 4]",
            "return %3",
        ],
        &["%0 = matmul(x0, x1) : f64[2, 4]", "return %0"],
    );
    // Next to a product a transpose is free: it stays.
    let text =
        ["%0 = permute(x0) {perm: [1, 0]} : f64[3, 2]", "%1 = matmul(%0, x0) : f64[3, 3]", "return %1"];
    check("moves", "x0: f64[2, 3]", &text, &text);
}

#[test]
fn an_operation_between_transposes() {
    check(
        "moves",
        "x0: f64[2, 3]",
        &[
            "%0 = permute(x0) {perm: [1, 0]} : f64[3, 2]",
            "%1 = exp(%0) : f64[3, 2]",
            "%2 = permute(%1) {perm: [1, 0]} : f64[2, 3]",
            "return %2",
        ],
        &["%0 = exp(x0) : f64[2, 3]", "return %0"],
    );
}

#[test]
fn small_before_it_is_repeated() {
    check(
        "moves",
        "x0: f64[3]",
        &[
            "c0 = constant 2.0 : f64[5, 3]",
            "%0 = broadcast_to(x0) {to: [5, 3]} : f64[5, 3]",
            "%1 = mul(%0, c0) : f64[5, 3]",
            "return %1",
        ],
        &[
            "c0 = constant 2.0 : f64[3]",
            "%0 = mul(x0, c0) : f64[3]",
            "%1 = broadcast_to(%0) {to: [5, 3]} : f64[5, 3]",
            "return %1",
        ],
    );
}

#[test]
fn small_even_where_the_repeated_operand_is_needed() {
    let text =
        ["%0 = broadcast_to(x0) {to: [5, 3]} : f64[5, 3]", "%1 = exp(%0) : f64[5, 3]", "return %0, %1"];
    check("moves", X, &text, &text);
    check(
        "shrink",
        X,
        &text,
        &[
            "%0 = broadcast_to(x0) {to: [5, 3]} : f64[5, 3]",
            "%1 = exp(x0) : f64[3]",
            "%2 = broadcast_to(%1) {to: [5, 3]} : f64[5, 3]",
            "return %0, %2",
        ],
    );
}

#[test]
fn sums_of_repeated_elements_and_of_sums() {
    check(
        "moves",
        "x0: f64[3]",
        &["%0 = broadcast_to(x0) {to: [5, 3]} : f64[5, 3]", "%1 = sum(%0) {axes: [0]} : f64[3]", "return %1"],
        &["c0 = constant 5.0 : f64[3]", "%0 = mul(x0, c0) : f64[3]", "return %0"],
    );
    check(
        "moves",
        "x0: f64[2, 3, 4]",
        &["%0 = sum(x0) {axes: [1]} : f64[2, 4]", "%1 = sum(%0) {axes: [1]} : f64[2]", "return %1"],
        &["%0 = sum(x0) {axes: [1, 2]} : f64[2]", "return %0"],
    );
}
