//! The program as a child process, and comparisons.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The running program.
pub struct Tool {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    id: i64,
}

impl Tool {
    pub fn start(arguments: &[&str]) -> Tool {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pullback-gradbench"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let from = BufReader::new(child.stdout.take().unwrap());
        Tool { to: child.stdin.take(), from, child, id: 0 }
    }

    /// Sends a message with the next id, and returns the response, which must carry it.
    pub fn ask(&mut self, mut message: Value) -> Value {
        message["id"] = json!(self.id);
        writeln!(self.to.as_mut().unwrap(), "{message}").unwrap();
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        let response: Value = serde_json::from_str(&line).expect("a line of JSON");
        assert_eq!(response["id"], json!(self.id));
        self.id += 1;
        response
    }

    /// Closes the input and waits for the end; whether it was a good one.
    pub fn finish(mut self) -> bool {
        drop(self.to.take());
        self.child.wait().unwrap().success()
    }
}

/// The output of one function on one input.
pub fn evaluate(module: &str, function: &str, input: Value) -> Value {
    let mut tool = Tool::start(&[]);
    assert_eq!(tool.ask(json!({"kind": "define", "module": module}))["success"], true);
    let response =
        tool.ask(json!({"kind": "evaluate", "module": module, "function": function, "input": input}));
    assert_eq!(response["success"], true, "{response}");
    assert!(tool.finish());
    response["output"].clone()
}

/// All numbers of a value, in order.
pub fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        Value::Object(fields) => fields.values().flat_map(numbers).collect(),
        _ => vec![value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))],
    }
}

/// Central differences of `f` at `x`.
pub fn differences(f: impl Fn(&[f64]) -> f64, x: &[f64]) -> Vec<f64> {
    let mut at = x.to_vec();
    let mut moved = |k: usize, h: f64| {
        at[k] = x[k] + h;
        let y = f(&at);
        at[k] = x[k];
        y
    };
    (0..x.len())
        .map(|k| {
            let h = 1e-6 * (1.0 + x[k].abs());
            (moved(k, h) - moved(k, -h)) / (2.0 * h)
        })
        .collect()
}

/// What differences of doubles are good for.
pub const BY_DIFFERENCES: f64 = 1e-7;

/// `n` numbers between 0 and 1 without a pattern.
pub fn some(n: usize, seed: usize) -> Vec<f64> {
    (1..=n).map(|k| ((k + 7919 * seed) as f64 * 0.618_033_988_749_894_9).fract()).collect()
}

/// The same in rows.
pub fn some_rows(n: usize, columns: usize, seed: usize) -> Vec<Vec<f64>> {
    (0..n).map(|k| some(columns, seed + 31 * k + 1)).collect()
}
