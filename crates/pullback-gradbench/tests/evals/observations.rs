//! Bundle adjustment.

use crate::tool::{BY_DIFFERENCES, evaluate, numbers};
use pullback_testing::assert_close;
use serde_json::json;

const CAMERA: [f64; 11] = [-0.758, -1.11, -0.846, 34.6, 39.7, 53.9, 419.2, 5.86, -8.52, 0.0878, 0.00274];
const POINT: [f64; 3] = [7.2, 0.00114, 3.02];
const WEIGHT: f64 = 0.417;
const SEEN: [f64; 2] = [271.8, 834.2];

/// The error with the rotation as a matrix: `exp` of the cross product's, by its series.
fn error(x: &[f64]) -> [f64; 2] {
    let k = [[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]];
    let times = |v: [f64; 3]| -> [f64; 3] { std::array::from_fn(|i| (0..3).map(|j| k[i][j] * v[j]).sum()) };
    let mut term: [f64; 3] = std::array::from_fn(|i| x[11 + i] - x[3 + i]);
    let mut p = term;
    for n in 1..40 {
        term = times(term).map(|v| v / n as f64);
        p = std::array::from_fn(|i| p[i] + term[i]);
    }
    let (u, v) = (p[0] / p[2], p[1] / p[2]);
    let s = u * u + v * v;
    let distortion = 1.0 + x[9] * s + x[10] * s * s;
    [x[14] * (u * distortion * x[6] + x[7] - SEEN[0]), x[14] * (v * distortion * x[6] + x[8] - SEEN[1])]
}

#[test]
fn ba() {
    let x: Vec<f64> = CAMERA.into_iter().chain(POINT).chain([WEIGHT]).collect();
    let (n, m, p) = (3, 7, 100);
    let input = json!({"n": n, "m": m, "p": p, "cam": CAMERA, "x": POINT, "w": WEIGHT, "feat": SEEN});
    let objective = evaluate("ba", "objective", input.clone());
    assert_close(&numbers(&objective["reproj_error"]["elements"]), &error(&x), 1e-12);
    assert_close(&numbers(&objective["w_err"]["element"]), &[1.0 - WEIGHT * WEIGHT], 1e-15);
    assert_eq!(
        (&objective["reproj_error"]["repeated"], &objective["w_err"]["repeated"]),
        (&json!(p), &json!(p))
    );
    assert_eq!(objective.as_object().unwrap().len(), 2);

    let jacobian = evaluate("ba", "jacobian", input);
    let rows: Vec<usize> = (0..30).map(|k| 15 * k).chain([31 * p]).collect();
    assert_eq!(jacobian["rows"], json!(rows));
    let row: Vec<usize> = (0..11).chain((0..3).map(|k| 11 * n + k)).chain([11 * n + 3 * m]).collect();
    let last = 11 * n + 3 * m + p - 1;
    assert_eq!(jacobian["cols"], json!([row.clone(), row, vec![last]].concat()));
    let by_differences = |k: usize| {
        let mut at = x.clone();
        let h = 1e-6 * (1.0 + x[k].abs());
        at[k] = x[k] + h;
        let above = error(&at);
        at[k] = x[k] - h;
        let below = error(&at);
        [(above[0] - below[0]) / (2.0 * h), (above[1] - below[1]) / (2.0 * h)]
    };
    let columns: Vec<[f64; 2]> = (0..15).map(by_differences).collect();
    let expected: Vec<f64> =
        (0..2).flat_map(|r| columns.iter().map(move |c| c[r])).chain([-2.0 * WEIGHT]).collect();
    assert_close(&numbers(&jacobian["vals"]), &expected, BY_DIFFERENCES);
}
