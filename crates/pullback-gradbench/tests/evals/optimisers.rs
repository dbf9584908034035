//! The nested evals, whose answers are known.

use crate::tool::{evaluate, numbers};
use pullback_testing::assert_close;
use serde_json::json;

#[test]
fn particle_in_all_modes() {
    for mode in ["rr", "ff", "fr", "rf"] {
        let w = evaluate("particle", mode, json!({"w": 0.0}));
        assert_close(&numbers(&w), &[0.207_191_874_648_611_6], 1e-9);
    }
}

#[test]
fn saddle_in_all_modes() {
    for mode in ["rr", "ff", "fr", "rf"] {
        let at = evaluate("saddle", mode, json!({"start": [1.0, 1.0]}));
        assert_close(&numbers(&at), &[8.246_324_826_140_356e-6; 4], 1e-9);
    }
}
