//! Graph files that nobody should write: a message and exit code 2, never a panic.

use pullback::Graph;
use std::io::Write;
use std::process::{Command, Stdio};

fn exit_code(args: &[&str], input: &[u8]) -> (Option<i32>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pullback"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(input);
    let done = child.wait_with_output().unwrap();
    (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
}

#[test]
fn hostile_files_are_refused_with_one_message() {
    let deep = format!("graph() {{ {}", "%0 = call() : () graph() { ".repeat(100_000));
    let nested = format!("graph() {{ c0 = constant {} : f64[1] return c0 }}", "[".repeat(100_000));
    let cases: &[&[u8]] = &[
        b"",
        b"graph",
        b"\xff\xfe\x00\x01",
        b"graph(x0: f64[3) { return x0 }",
        b"graph(x0: f64[3]) { return x1 }",
        b"graph(x0: f64[99999999999999999999]) { return x0 }",
        b"graph(x0: f64[4294967296, 4294967296, 4294967296]) { %0 = exp(x0) : f64[4294967296, 4294967296, 4294967296] return %0 }",
        b"graph(x0: f64[2]) { %0 = no_such_operation(x0) : f64[2] return %0 }",
        b"graph(x0: f64[2]) { %0 = sum(x0) {axes: [7]} : f64[] return %0 }",
        b"graph(x0: f64[2]) { %0 = sum(x0) {axes: [0, 0]} : f64[] return %0 }",
        b"graph(x0: f64[2]) { %0 = reshape(x0) {to: [3]} : f64[3] return %0 }",
        b"graph(x0: f64[2]) { %7 = exp(x0) : f64[2] return %7 }",
        b"graph() { c0 = constant [1.0, 2.0] : f64[3] return c0 }",
        b"pullback graph 1\n",
        b"pullback graph 9\n........................",
        deep.as_bytes(),
        nested.as_bytes(),
    ];
    // Well formed, but there is nothing to run.
    assert_eq!(exit_code(&["run", "-"], b"graph() { return }").0, Some(2));
    for text in cases {
        let shown = String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned();
        for command in ["fmt", "run"] {
            let (code, err) = exit_code(&[command, "-"], text);
            assert_eq!(code, Some(2), "{command} of {shown:?}: {err}");
            assert!(err.starts_with("error: ") && !err.contains("panicked"), "{shown:?}: {err}");
            assert!(err.len() < 2000, "{shown:?}: a long message");
        }
    }
}

#[test]
fn a_graph_of_complex_numbers_is_checked_but_not_run() {
    let text = b"graph(x0: c64[2]) {\n  %0 = exp(x0) : c64[2]\n  return %0\n}\n";
    assert_eq!(exit_code(&["verify", "-"], text).0, Some(0));
    let (code, err) = exit_code(&["run", "-"], text);
    assert!(code == Some(2) && err.contains("computes with c64"), "{err}");
}

#[test]
fn a_graph_that_needs_more_memory_than_there_is_does_not_run() {
    // Two factors that cost nothing, because they repeat one number, and a product that does.
    let text = "graph() {\n  c0 = constant 1.0 : f64[1000000, 1000000]\n  c1 = constant 2.0 : f64[1000000, 1000000]\n  \
                %0 = matmul(c0, c1) : f64[1000000, 1000000]\n  %1 = sum(%0) {axes: [0, 1]} : f64[]\n  return %1\n}\n";
    let (code, err) = exit_code(&["run", "-"], text.as_bytes());
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("memory"), "{err}");
}

#[test]
fn mutated_graphs_are_read_or_refused() {
    let seeds =
        [include_str!("files/net.ir"), include_str!("files/wasteful.ir"), include_str!("files/square.ir")];
    let pieces = [
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "%",
        "x0",
        "c9",
        ",",
        ":",
        "f32",
        "-1",
        "inf",
        "999999999999",
        "\"",
        "//",
        "é",
        "exp",
        "axes",
    ];
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let (mut read, mut refused) = (0, 0);
    for round in 0..3000 {
        let mut text: Vec<char> = seeds[round % seeds.len()].chars().collect();
        for _ in 0..=random(3) {
            let at = random(text.len());
            match random(3) {
                0 => drop(text.remove(at)),
                1 => {
                    let other = random(text.len());
                    text.swap(at, other);
                }
                _ => drop(text.splice(at..at, pieces[random(pieces.len())].chars().collect::<Vec<char>>())),
            }
        }
        let text: String = text.into_iter().collect();
        match text.parse::<Graph>() {
            Err(e) => {
                refused += 1;
                assert!(!e.to_string().is_empty());
            }
            Ok(graph) => {
                read += 1;
                graph.verify().unwrap_or_else(|e| panic!("{e}\n{text}"));
                let printed = graph.to_string();
                let again: Graph = printed.parse().unwrap_or_else(|e| panic!("{e}\n{printed}"));
                assert_eq!(again.to_string(), printed);
            }
        }
    }
    assert!(read > 50 && refused > 500, "{read} read, {refused} refused");
}
