//! The protocol itself.

use crate::tool::{Tool, numbers};
use serde_json::json;

#[test]
fn a_session_from_start_to_end() {
    let mut tool = Tool::start(&[]);
    assert_eq!(tool.ask(json!({"kind": "start", "eval": "hello"})), json!({"id": 0, "tool": "pullback"}));
    assert_eq!(tool.ask(json!({"kind": "define", "module": "hello"})), json!({"id": 1, "success": true}));
    // The eval feeds outputs back: x = 1, and four times y = x², x = 2 y.
    let mut x = 1.0;
    for expected in [2.0, 8.0, 128.0, 32768.0] {
        for function in ["square", "double"] {
            let response =
                tool.ask(json!({"kind": "evaluate", "module": "hello", "function": function, "input": x}));
            x = numbers(&response["output"])[0];
        }
        assert_eq!(x, expected);
    }
    assert_eq!(tool.ask(json!({"kind": "analysis", "of": 2, "valid": true})), json!({"id": 10}));
    assert_eq!(tool.ask(json!({"kind": "something new"})), json!({"id": 11}));
    assert!(tool.finish());
}

#[test]
fn what_is_unknown_fails_and_the_session_goes_on() {
    let mut tool = Tool::start(&["--multithreaded"]);
    let response = tool.ask(json!({"kind": "define", "module": "nothing"}));
    assert_eq!(response["success"], false);
    assert!(response["error"].as_str().unwrap().contains("nothing"));
    for (function, input) in [("triple", json!({"x": [1.0]})), ("gradient", json!({"y": 1.0}))] {
        let response =
            tool.ask(json!({"kind": "evaluate", "module": "lse", "function": function, "input": input}));
        assert_eq!(response["success"], false);
        assert!(response.get("output").is_none());
    }
    let response =
        tool.ask(json!({"kind": "evaluate", "module": "lse", "function": "primal", "input": {"x": [1.0]}}));
    assert_eq!(response["output"], 1.0);
    assert!(tool.finish());
}

#[test]
fn runs_are_as_many_as_asked_for() {
    let mut tool = Tool::start(&[]);
    let input = json!({"x": [0.25, 0.5], "min_runs": 7, "min_seconds": 0.0});
    let response =
        tool.ask(json!({"kind": "evaluate", "module": "lse", "function": "gradient", "input": input}));
    let timings = response["timings"].as_array().unwrap();
    let named = |name: &str| timings.iter().filter(|t| t["name"] == name).count();
    assert_eq!((named("prepare"), named("evaluate")), (1, 7));
    assert!(timings.iter().all(|t| t["nanoseconds"].is_u64()));

    let input = json!({"x": [0.25, 0.5], "min_runs": 1, "min_seconds": 0.02});
    let response =
        tool.ask(json!({"kind": "evaluate", "module": "lse", "function": "primal", "input": input}));
    let timings = response["timings"].as_array().unwrap();
    let spent: u64 =
        timings.iter().filter(|t| t["name"] == "evaluate").map(|t| t["nanoseconds"].as_u64().unwrap()).sum();
    assert!(spent >= 20_000_000);
    assert!(tool.finish());
}

#[test]
fn a_wrong_argument_is_refused() {
    assert!(!Tool::start(&["--fast"]).finish());
}
