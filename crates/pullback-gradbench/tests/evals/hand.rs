//! Hand tracking.

use crate::tool::{BY_DIFFERENCES, evaluate, numbers, some, some_rows};
use pullback_testing::assert_close;
use serde_json::{Value, json};

const BONES: usize = 22;
type Matrix = [[f64; 4]; 4];

const IDENTITY: Matrix = [[1., 0., 0., 0.], [0., 1., 0., 0.], [0., 0., 1., 0.], [0., 0., 0., 1.]];

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..4).map(|k| a[i][k] * b[k][j]).sum()))
}

/// The turn by `angle` in the plane of two axes.
fn turn(from: usize, to: usize, angle: f64) -> Matrix {
    let mut m = IDENTITY;
    (m[from][from], m[to][to]) = (angle.cos(), angle.cos());
    (m[to][from], m[from][to]) = (angle.sin(), -angle.sin());
    m
}

/// `exp` of the cross product's matrix, by its series.
fn rotation(r: &[f64]) -> Matrix {
    let k = [[0.0, -r[2], r[1], 0.0], [r[2], 0.0, -r[0], 0.0], [-r[1], r[0], 0.0, 0.0], [0.0; 4]];
    let (mut sum, mut term) = (IDENTITY, IDENTITY);
    for n in 1..30 {
        term = product(&term, &k).map(|row| row.map(|v| v / n as f64));
        sum = std::array::from_fn(|i| std::array::from_fn(|j| sum[i][j] + term[i][j]));
    }
    sum
}

struct Hand {
    parents: Vec<i64>,
    relatives: Vec<Matrix>,
    inverses: Vec<Matrix>,
    base: Vec<[f64; 4]>,
    weights: Vec<Vec<f64>>,
    triangles: Vec<[usize; 3]>,
    mirrored: bool,
    to: Vec<usize>,
    points: Vec<Vec<f64>>,
}

impl Hand {
    fn new(mirrored: bool) -> Hand {
        let vertices = 12;
        let matrix = |seed: usize| {
            let mut m: Matrix = std::array::from_fn(|i| some(4, seed + 5 * i).try_into().unwrap());
            m[3] = [0.0, 0.0, 0.0, 1.0];
            m
        };
        let base = some_rows(vertices, 3, 20).iter().map(|v| [v[0], v[1], v[2], 1.0]).collect();
        let mut weights = some_rows(vertices, BONES, 21);
        weights.iter_mut().flatten().filter(|w| **w < 0.7).for_each(|w| *w = 0.0);
        Hand {
            // A wrist, the palm, and chains of bones on it.
            parents: (0..BONES as i64)
                .map(|b| {
                    if b < 2 {
                        b - 1
                    } else if b % 4 == 2 {
                        1
                    } else {
                        b - 1
                    }
                })
                .collect(),
            relatives: (0..BONES).map(|b| matrix(100 + b)).collect(),
            inverses: (0..BONES).map(|b| matrix(200 + b)).collect(),
            base,
            weights,
            triangles: (0..8).map(|k| [k, (3 * k + 1) % vertices, (5 * k + 2) % vertices]).collect(),
            mirrored,
            to: vec![0, 3, 7, 3, 5],
            points: some_rows(5, 3, 22),
        }
    }

    fn input(&self, theta: &[f64], us: &[Vec<f64>]) -> Value {
        json!({"theta": theta, "us": us, "data": {"correspondences": self.to, "points": self.points, "model": {
            "bone_count": BONES, "bone_names": vec!["bone"; BONES], "parents": self.parents,
            "base_relatives": self.relatives, "inverse_base_absolutes": self.inverses, "base_positions": self.base,
            "weights": self.weights, "triangles": self.triangles, "is_mirrored": self.mirrored}}})
    }

    fn residuals(&self, theta: &[f64], us: &[Vec<f64>]) -> Vec<f64> {
        // Column b + 3 of the pose belongs to bone b.
        let mut pose = [[0.0; 3]; BONES + 3];
        let (mut column, mut next) = (5, 6);
        for _ in 0..5 {
            for joint in 0..3 {
                pose[column][0] = theta[next];
                next += 1;
                if joint == 0 {
                    pose[column][1] = theta[next];
                    next += 1;
                }
                column += 1;
            }
            column += 1;
        }
        let mut absolutes: Vec<Matrix> = Vec::new();
        for b in 0..BONES {
            let [x, z, y] = pose[b + 3];
            let r = product(&turn(0, 1, z), &product(&turn(2, 0, y), &turn(1, 2, x)));
            let relative = product(&self.relatives[b], &r);
            let parent = self.parents[b];
            absolutes.push(if parent < 0 {
                relative
            } else {
                product(&absolutes[parent as usize], &relative)
            });
        }
        let global = rotation(&theta[..3]);
        let position = |v: usize| -> [f64; 3] {
            let mut at = [0.0; 4];
            for (b, absolute) in absolutes.iter().enumerate() {
                let transform = product(absolute, &self.inverses[b]);
                for (at, row) in at.iter_mut().zip(transform) {
                    *at += self.weights[v][b] * (0..4).map(|j| row[j] * self.base[v][j]).sum::<f64>();
                }
            }
            if self.mirrored {
                at[0] = -at[0];
            }
            std::array::from_fn(|i| (0..3).map(|j| global[i][j] * at[j]).sum::<f64>() + theta[3 + i])
        };
        let residual = |i: usize| -> [f64; 3] {
            let at = if us.is_empty() {
                position(self.to[i])
            } else {
                let [a, b, c] = self.triangles[self.to[i]].map(position);
                let (u, v) = (us[i][0], us[i][1]);
                std::array::from_fn(|k| u * a[k] + v * b[k] + (1.0 - u - v) * c[k])
            };
            std::array::from_fn(|k| self.points[i][k] - at[k])
        };
        (0..self.to.len()).flat_map(residual).collect()
    }
}

/// Central differences of all residuals for one number that is moved by `h`.
fn column(f: impl Fn(f64) -> Vec<f64>) -> Vec<f64> {
    let h = 1e-6;
    f(h).iter().zip(f(-h)).map(|(a, b)| (a - b) / (2.0 * h)).collect()
}

#[test]
fn ht() {
    for (mirrored, complicated, turned) in
        [(false, true, true), (true, true, true), (false, false, true), (false, true, false)]
    {
        let hand = Hand::new(mirrored);
        let mut theta = some(26, 23);
        if !turned {
            // Below the least angle the global rotation is the identity, and so is that of the reference.
            theta[..3].fill(0.0);
        }
        let us = if complicated { some_rows(5, 2, 24) } else { vec![] };
        let input = hand.input(&theta, &us);
        let objective = numbers(&evaluate("ht", "objective", input.clone()));
        assert_close(&objective, &hand.residuals(&theta, &us), 1e-12);

        let mut columns = Vec::new();
        for k in 0..if complicated { 2 } else { 0 } {
            columns.push(column(|h| {
                let moved: Vec<Vec<f64>> = us
                    .iter()
                    .map(|u| (0..2).map(|j| u[j] + if j == k { h } else { 0.0 }).collect())
                    .collect();
                hand.residuals(&theta, &moved)
            }));
        }
        for k in 0..26 {
            columns.push(column(|h| {
                // The identity is constant.
                let h = if !turned && k < 3 { 0.0 } else { h };
                let mut moved = theta.clone();
                moved[k] += h;
                hand.residuals(&moved, &us)
            }));
        }
        let expected: Vec<f64> = (0..15).flat_map(|row| columns.iter().map(move |c| c[row])).collect();
        let jacobian = evaluate("ht", "jacobian", input);
        assert_eq!(jacobian.as_array().unwrap().len(), 15);
        // The matrices of the made-up bones are no rotations: numbers grow along the chains.
        assert_close(&numbers(&jacobian), &expected, 10.0 * BY_DIFFERENCES);
    }
}
