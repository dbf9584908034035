//! Texts that nobody should write: the parser and the interpreter answer with a message, never with a panic.

use pullback_expr::scalar::{self, Array};
use pullback_expr::{parse, parse_point};
use pullback_testing::Dice;

const SEEDS: &[&str] = &[
    "x1*x2 + sin(x1)",
    "let r = sqrt(x^2 + y^2)\nr, atan2(y, x)",
    "if x > 0 and not y <= 2 then x^-y else [1,2;3,4][2,1]",
    "sum(i, 1, 3, w[i]*x^i) @ [1, 2] # comment",
    "norm(w' @ v) + dot(v, [1e3, .5, 2.])/max(a, b, 3) % 2",
    "f = -(-(-x))**2 ; g = 1 == 2, ≤≥×÷−",
];

const PIECES: &[&str] = &[
    "(", ")", "[", "]", ",", ";", ":", "'", "if", "then", "else", "let", "=", "sum(", "i", "^", "-", "1e999",
    "1e-999",
];

#[test]
fn mutated_texts() {
    let pieces: Vec<&str> = PIECES
        .iter()
        .copied()
        .chain(["\u{0}", "é", "𝛼", "\n", "  ", "0", "99999999999999999999", "inf", "pi"])
        .collect();
    let mut dice = Dice(1);
    let (mut parsed, mut refused) = (0, 0);
    for round in 0..20_000 {
        let mut text: Vec<char> = SEEDS[round % SEEDS.len()].chars().collect();
        for _ in 0..=dice.roll(4) {
            let at = dice.roll(text.len() + 1);
            match dice.roll(3) {
                0 if at < text.len() => {
                    text.remove(at);
                }
                1 if at < text.len() => {
                    let other = dice.roll(text.len());
                    text.swap(at, other);
                }
                _ => {
                    let piece: Vec<char> = pieces[dice.roll(pieces.len())].chars().collect();
                    text.splice(at..at, piece);
                }
            }
        }
        let text: String = text.into_iter().collect();
        let _ = parse_point(&text);
        match parse(&text) {
            Err(problem) => {
                refused += 1;
                let shown = problem.show("text", &text);
                assert!(!shown.is_empty());
                assert!(
                    problem.span.is_none_or(|s| s.start <= s.end && s.end <= text.len()),
                    "{text:?}: {problem:?}"
                );
            }
            Ok(program) => {
                parsed += 1;
                let value = |k: usize| match k % 3 {
                    0 => Array::number(1.5),
                    1 => Array { shape: vec![3], elements: vec![1.0, -2.0, 0.5] },
                    _ => Array { shape: vec![2, 2], elements: vec![1.0, 2.0, 3.0, 4.0] },
                };
                let point: Vec<(String, Array)> = program
                    .inputs()
                    .iter()
                    .enumerate()
                    .map(|(k, n)| (n.clone(), value(k + round / 7)))
                    .collect();
                match scalar::trace(&program, &point) {
                    Ok(trace) => (0..trace.outputs.len()).for_each(|k| drop(trace.sweep(k, None))),
                    Err(problem) => drop(problem.show("text", &text)),
                }
            }
        }
    }
    // Both kinds are there, or the mutations are no test.
    assert!(parsed > 1000 && refused > 1000, "{parsed} parsed, {refused} refused");
}

#[test]
fn deep_and_long_texts() {
    let deep = [
        "(".repeat(100_000) + "x" + &")".repeat(100_000),
        "-".repeat(100_000) + "x",
        "x^".repeat(100_000) + "x",
        "sin(".repeat(100_000),
        "[".repeat(100_000),
        "if x > 0 then 1 else ".repeat(100_000) + "2",
        "not ".repeat(100_000) + "x",
    ];
    for text in deep {
        let problem = parse(&text).unwrap_err();
        assert!(problem.message.contains("nested"), "{}", problem.message);
        assert!(problem.show("text", &text).len() < 1000);
    }
    // Long is no problem: a sum of a hundred thousand terms is a loop.
    let program = parse(&("x+".repeat(100_000) + "x")).unwrap();
    let trace = scalar::trace(&program, &[("x".to_string(), Array::number(1.0))]).unwrap();
    assert_eq!(trace.gradient("x"), [100_001.0]);
    assert!(parse("sum(i, 1, 10^12, x)").is_ok());
    let endless = parse("sum(i, 1, 10^12, x)").unwrap();
    assert!(
        scalar::trace(&endless, &[("x".to_string(), Array::number(1.0))])
            .unwrap_err()
            .message
            .contains("terms")
    );
}

#[test]
fn messages_point_at_the_place() {
    let cases: &[(&str, &str, (usize, usize))] = &[
        ("x + (y", "expected `)`", (6, 6)),
        ("x + ", "expected a number", (4, 4)),
        ("2x", "expected an operator", (1, 2)),
        ("sun(x)", "no function `sun`", (0, 3)),
        ("sin(x, y)", "takes 1 argument", (0, 9)),
        ("x ? y", "has no meaning", (2, 3)),
        ("1e999", "too large", (0, 5)),
        ("a < b < c", "do not chain", (6, 7)),
        ("[1,2;3]", "equally long", (0, 7)),
        ("let x", "name = value", (4, 5)),
        ("sin + 1", "is a function", (0, 3)),
        ("x)", "closes nothing", (1, 2)),
        ("", "expected an expression", (0, 0)),
        ("1/0", "division by zero", (0, 3)),
        ("é + $", "has no meaning", (5, 6)),
    ];
    for (text, message, (start, end)) in cases {
        let problem = match parse(text) {
            Err(problem) => problem,
            Ok(program) => scalar::trace(&program, &[]).unwrap_err(),
        };
        assert!(problem.message.contains(message), "{text:?}: {}", problem.message);
        let span = problem.span.unwrap();
        assert_eq!((span.start, span.end), (*start, *end), "{text:?}");
    }
}
