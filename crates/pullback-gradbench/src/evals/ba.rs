//! Bundle adjustment: the sparse Jacobian of the reprojection errors, from one compiled Jacobian of an observation.

use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::scalar::{Function, Real};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

const CAMERA: usize = 11;
const POINT: usize = 3;
/// Camera, point and weight: what an observation is differentiated with respect to.
const VARIABLES: usize = CAMERA + POINT + 1;
/// .. and the two coordinates where the point was seen.
const INPUTS: usize = VARIABLES + 2;

#[derive(Deserialize)]
struct Input {
    n: usize,
    m: usize,
    p: usize,
    cam: [f64; CAMERA],
    x: [f64; POINT],
    w: f64,
    feat: [f64; 2],
}

fn dot<T: Real>(a: [T; 3], b: [T; 3]) -> T {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross<T: Real>(a: [T; 3], b: [T; 3]) -> [T; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// `x` turned about the axis `r` by the angle `|r|`, by Rodrigues' formula.
fn rotated<T: Real>(r: [T; 3], x: [T; 3]) -> [T; 3] {
    let square = dot(r, r);
    if square == 0.0 {
        let turned = cross(r, x);
        return std::array::from_fn(|k| x[k] + turned[k]);
    }
    let theta = square.sqrt();
    let (sin, cos) = theta.sin_cos();
    let inverse = theta.recip();
    let axis = r.map(|r| r * inverse);
    let turned = cross(axis, x);
    let along = dot(axis, x) * (-cos + 1.0);
    std::array::from_fn(|k| x[k] * cos + turned[k] * sin + axis[k] * along)
}

/// The error of one observation: camera (rotation, centre, focal length, principal point, two radial distortions), point, weight,
/// and where the point was seen.
fn reprojection<T: Real>(x: &[T]) -> [T; 2] {
    let (centre, point, weight, seen) = (&x[3..6], &x[CAMERA..], x[VARIABLES - 1], &x[VARIABLES..]);
    let p = rotated([x[0], x[1], x[2]], std::array::from_fn(|k| point[k] - centre[k]));
    let (u, v) = (p[0] / p[2], p[1] / p[2]);
    let r = u * u + v * v;
    let distortion = r * x[9] + r * r * x[10] + 1.0;
    let (focal, principal) = (x[6], [x[7], x[8]]);
    let project = |u: T, k: usize| weight * (u * distortion * focal + principal[k] - seen[k]);
    [project(u, 0), project(v, 1)]
}

fn weight_error<T: Real>(w: &[T]) -> T {
    -(w[0] * w[0]) + 1.0
}

/// All cameras, points, weights and features. The eval sends one of each, which stands for all.
struct Problem {
    cameras: Vec<[f64; CAMERA]>,
    points: Vec<[f64; POINT]>,
    weights: Vec<f64>,
    features: Vec<[f64; 2]>,
}

impl Problem {
    fn new(input: &Input) -> Self {
        Problem {
            cameras: vec![input.cam; input.n],
            points: vec![input.x; input.m],
            weights: vec![input.w; input.p],
            features: vec![input.feat; input.p],
        }
    }

    /// The camera and the point of an observation.
    fn sees(&self, observation: usize) -> (usize, usize) {
        (observation % self.cameras.len(), observation % self.points.len())
    }

    /// What the error of an observation depends on.
    fn inputs(&self, observation: usize) -> [f64; INPUTS] {
        let (camera, point) = self.sees(observation);
        let mut x = [0.0; INPUTS];
        x[..CAMERA].copy_from_slice(&self.cameras[camera]);
        x[CAMERA..CAMERA + POINT].copy_from_slice(&self.points[point]);
        x[VARIABLES - 1] = self.weights[observation];
        x[VARIABLES..].copy_from_slice(&self.features[observation]);
        x
    }

    fn errors(&self, reprojections: &mut [[f64; 2]], weights: &mut [f64]) {
        for (i, (error, weight)) in reprojections.iter_mut().zip(weights).enumerate() {
            *error = reprojection(&self.inputs(i));
            *weight = weight_error(&self.weights[i..][..1]);
        }
    }
}

/// The derivatives of one observation, compiled, and the memory of a matrix in compressed rows.
struct Jacobian {
    problem: Problem,
    reprojection: Function,
    weight: Function,
    rows: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Jacobian {
    fn new(problem: Problem) -> Self {
        let p = problem.weights.len();
        let all = Function::record_at(reprojection, &problem.inputs(0));
        let wanted = (0..2).flat_map(|row| (0..VARIABLES).map(move |k| row * INPUTS + k));
        Jacobian {
            reprojection: all.jacobian_function().select(wanted),
            weight: Function::record(weight_error, 1).gradient_function().select([0]),
            rows: vec![0; 3 * p + 1],
            columns: vec![0; (2 * VARIABLES + 1) * p],
            values: vec![0.0; (2 * VARIABLES + 1) * p],
            problem,
        }
    }

    /// Two rows for each observation, over its camera, its point and its weight; then a row for each weight.
    fn fill(&mut self) {
        /// Observations whose inputs fit the cache.
        const GROUP: usize = 1024;
        let problem = &self.problem;
        let p = problem.weights.len();
        let first_point = CAMERA * problem.cameras.len();
        let first_weight = first_point + POINT * problem.points.len();
        let (entries, weight_entries) = self.values.split_at_mut(2 * VARIABLES * p);
        let mut inputs = Vec::with_capacity(GROUP);
        for (g, entries) in entries.chunks_mut(2 * VARIABLES * GROUP).enumerate() {
            let observations = g * GROUP..g * GROUP + entries.len() / (2 * VARIABLES);
            inputs.clear();
            inputs.extend(observations.clone().map(|i| problem.inputs(i)));
            self.reprojection
                .try_evaluate_many_into(inputs.as_flattened(), entries)
                .expect("all cameras are turned");
            for i in observations {
                let (camera, point) = problem.sees(i);
                let columns = &mut self.columns[2 * VARIABLES * i..][..2 * VARIABLES];
                let (row, same) = columns.split_at_mut(VARIABLES);
                (0..CAMERA).for_each(|k| row[k] = (CAMERA * camera + k) as u32);
                (0..POINT).for_each(|k| row[CAMERA + k] = (first_point + POINT * point + k) as u32);
                row[VARIABLES - 1] = (first_weight + i) as u32;
                same.copy_from_slice(row);
                self.rows[2 * i] = (2 * VARIABLES * i) as u32;
                self.rows[2 * i + 1] = ((2 * i + 1) * VARIABLES) as u32;
            }
        }
        self.weight.try_evaluate_many_into(&problem.weights, weight_entries).expect("there is no branch");
        for i in 0..p {
            self.columns[2 * VARIABLES * p + i] = (first_weight + i) as u32;
            self.rows[2 * p + i] = (2 * VARIABLES * p + i) as u32;
        }
        self.rows[3 * p] = ((2 * VARIABLES + 1) * p) as u32;
    }
}

#[derive(Serialize)]
struct Objective {
    reproj_error: Reprojections,
    w_err: Weights,
}

#[derive(Serialize)]
struct Reprojections {
    elements: [f64; 2],
    repeated: usize,
}

#[derive(Serialize)]
struct Weights {
    element: f64,
    repeated: usize,
}

#[derive(Serialize)]
struct Sparse {
    rows: Vec<u32>,
    cols: Vec<u32>,
    vals: Vec<f64>,
}

/// The first thirty and the last.
fn ends<T: Copy>(x: &[T]) -> Vec<T> {
    x.iter().take(30).chain(x.last()).copied().collect()
}

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let parsed: Input = parse(input)?;
    let p = parsed.p;
    match function {
        "objective" => measure(
            input,
            || (Problem::new(&parsed), vec![[0.0; 2]; p], vec![0.0; p]),
            |(problem, reprojections, weights)| problem.errors(reprojections, weights),
            |(_, reprojections, weights), ()| Objective {
                reproj_error: Reprojections { elements: reprojections[0], repeated: p },
                w_err: Weights { element: weights[0], repeated: p },
            },
        ),
        "jacobian" => measure(
            input,
            || Jacobian::new(Problem::new(&parsed)),
            Jacobian::fill,
            |jacobian, ()| Sparse {
                rows: ends(&jacobian.rows),
                cols: ends(&jacobian.columns),
                vals: ends(&jacobian.values),
            },
        ),
        _ => unknown(function),
    }
}
