//! Bundle adjustment: reprojection errors, and their sparse Jacobian from one compiled Jacobian of an observation.

use super::CACHED;
use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::scalar::{Function, Real};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::cell::OnceCell;

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

#[inline(always)]
fn dot<T: Real>(a: [T; 3], b: [T; 3]) -> T {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

#[inline(always)]
fn cross<T: Real>(a: [T; 3], b: [T; 3]) -> [T; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// `x` turned about the axis `r` by the angle `|r|`, by Rodrigues' formula.
#[inline(always)]
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
#[inline(always)]
fn reprojection<T: Real>(camera: &[T], point: &[T], weight: T, seen: &[T]) -> [T; 2] {
    let from_centre = std::array::from_fn(|k| point[k] - camera[3 + k]);
    let p = rotated([camera[0], camera[1], camera[2]], from_centre);
    let (u, v) = (p[0] / p[2], p[1] / p[2]);
    let r = u * u + v * v;
    let distortion = r * camera[9] + r * r * camera[10] + 1.0;
    let project = |u: T, k: usize| weight * (u * distortion * camera[6] + camera[7 + k] - seen[k]);
    [project(u, 0), project(v, 1)]
}

/// The same of all that it depends on, in a row.
fn reprojection_of_row<T: Real>(x: &[T]) -> [T; 2] {
    let (variables, seen) = x.split_at(VARIABLES);
    reprojection(&variables[..CAMERA], &variables[CAMERA..], variables[VARIABLES - 1], seen)
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
    /// The camera and the point of each observation.
    sees: Vec<(usize, usize)>,
}

impl Problem {
    fn new(input: &Input) -> Self {
        Problem {
            cameras: vec![input.cam; input.n],
            points: vec![input.x; input.m],
            weights: vec![input.w; input.p],
            features: vec![input.feat; input.p],
            sees: (0..input.p).map(|i| (i % input.n, i % input.m)).collect(),
        }
    }

    /// What the error of an observation depends on.
    #[inline(always)]
    fn inputs(&self, observation: usize) -> [f64; INPUTS] {
        let (camera, point) = self.sees[observation];
        let mut x = [0.0; INPUTS];
        x[..CAMERA].copy_from_slice(&self.cameras[camera]);
        x[CAMERA..CAMERA + POINT].copy_from_slice(&self.points[point]);
        x[VARIABLES - 1] = self.weights[observation];
        x[VARIABLES..].copy_from_slice(&self.features[observation]);
        x
    }

    fn errors(&self, reprojections: &mut [[f64; 2]], weights: &mut [f64]) {
        for (i, (error, &(camera, point))) in reprojections.iter_mut().zip(&self.sees).enumerate() {
            let (camera, point) = (&self.cameras[camera], &self.points[point]);
            *error = reprojection(camera, point, self.weights[i], &self.features[i]);
        }
        for (error, &weight) in weights.iter_mut().zip(&self.weights) {
            *error = weight_error(&[weight]);
        }
    }
}

/// The derivatives of the two errors with respect to camera, point and weight, compiled.
struct Derivatives {
    reprojection: Function,
    weight: Function,
}

impl Derivatives {
    fn new(problem: &Problem) -> Self {
        let reprojection = Function::record_at(reprojection_of_row, &problem.inputs(0));
        let wanted = (0..2).flat_map(|row| (0..VARIABLES).map(move |k| row * INPUTS + k));
        Derivatives {
            reprojection: reprojection.jacobian_function().select(wanted),
            weight: Function::record(weight_error, 1).gradient_function().select([0]),
        }
    }

    /// Those of all observations, one after the other.
    fn evaluate(&self, problem: &Problem, reprojections: &mut [f64], weights: &mut [f64]) {
        /// Observations that are in the cache with their derivatives.
        const GROUP: usize = CACHED / (4 * INPUTS);
        let mut inputs = Vec::with_capacity(GROUP);
        for (g, y) in reprojections.chunks_mut(2 * VARIABLES * GROUP).enumerate() {
            let first = g * GROUP;
            inputs.clear();
            inputs.extend((first..first + y.len() / (2 * VARIABLES)).map(|i| problem.inputs(i)));
            self.reprojection
                .try_evaluate_many_into(inputs.as_flattened(), y)
                .expect("the cameras are copies of one, so that all are in the branch of the first");
        }
        self.weight.try_evaluate_many_into(&problem.weights, weights).expect("there is no branch");
    }
}

/// A matrix in compressed rows.
struct Matrix {
    rows: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

/// Two rows for each observation, over its camera, its point and its weight; then a row for each weight.
fn jacobian(problem: &Problem, derivatives: &Derivatives) -> Matrix {
    let p = problem.weights.len();
    let first_point = CAMERA * problem.cameras.len();
    let first_weight = first_point + POINT * problem.points.len();
    let entries = (2 * VARIABLES + 1) * p;
    let mut values = vec![0.0; entries];
    let (reprojections, weights) = values.split_at_mut(2 * VARIABLES * p);
    derivatives.evaluate(problem, reprojections, weights);
    let mut columns = Vec::with_capacity(entries);
    for (i, &(camera, point)) in problem.sees.iter().enumerate() {
        let mut row = [(first_weight + i) as u32; VARIABLES];
        (0..CAMERA).for_each(|k| row[k] = (CAMERA * camera + k) as u32);
        (0..POINT).for_each(|k| row[CAMERA + k] = (first_point + POINT * point + k) as u32);
        columns.extend_from_slice(&row);
        columns.extend_from_slice(&row);
    }
    columns.extend((0..p).map(|i| (first_weight + i) as u32));
    let long = (0..2 * p).map(|row| (VARIABLES * row) as u32);
    let short = (0..=p).map(|row| (2 * VARIABLES * p + row) as u32);
    Matrix { rows: long.chain(short).collect(), columns, values }
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
    let problem = Problem::new(&parsed);
    match function {
        "objective" => measure(
            input,
            || (vec![[0.0; 2]; p], vec![0.0; p]),
            |(reprojections, weights)| problem.errors(reprojections, weights),
            |(reprojections, weights), ()| Objective {
                reproj_error: Reprojections { elements: reprojections[0], repeated: p },
                w_err: Weights { element: weights[0], repeated: p },
            },
        ),
        "jacobian" => measure(
            input,
            || (OnceCell::new(), None),
            |(derivatives, matrix)| {
                let derivatives = derivatives.get_or_init(|| Derivatives::new(&problem));
                *matrix = Some(jacobian(&problem, derivatives));
            },
            |(_, matrix), ()| {
                let Matrix { rows, columns, values } = matrix.as_ref().expect("there was a run");
                Sparse { rows: ends(rows), cols: ends(columns), vals: ends(values) }
            },
        ),
        _ => unknown(function),
    }
}
