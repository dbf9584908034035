//! Hand tracking: distances of a posed hand from measured points, differentiated by dual numbers with all tangents at once. Every bone
//! moves every vertex, by weights of which many are zero; as in the other tools, none is left out for that.

use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::scalar::{Dual, Real, native};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Input {
    theta: Vec<f64>,
    us: Vec<[f64; 2]>,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    correspondences: Vec<usize>,
    points: Vec<[f64; 3]>,
    model: Model,
}

#[derive(Deserialize)]
struct Model {
    parents: Vec<i64>,
    base_relatives: Vec<[[f64; 4]; 4]>,
    inverse_base_absolutes: Vec<[[f64; 4]; 4]>,
    base_positions: Vec<[f64; 4]>,
    weights: Vec<Vec<f64>>,
    triangles: Vec<[usize; 3]>,
    is_mirrored: bool,
}

const THETAS: usize = 26;
/// One tangent for each parameter of a point on its triangle, and for each angle.
const TANGENTS: usize = 2 + THETAS;

/// The first three rows of a homogeneous matrix; the last is (0, 0, 0, 1).
type Affine<T> = [[T; 4]; 3];

fn affine<T: Real>(m: &[[f64; 4]; 4]) -> Affine<T> {
    std::array::from_fn(|i| m[i].map(T::constant))
}

fn product<T: Real>(a: &Affine<T>, b: &Affine<T>) -> Affine<T> {
    std::array::from_fn(|i| {
        std::array::from_fn(|j| {
            let sum = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
            if j == 3 { sum + a[i][3] } else { sum }
        })
    })
}

/// `Rz(z) Ry(y) Rx(x)`.
fn euler<T: Real>([x, z, y]: [T; 3]) -> Affine<T> {
    let ((sx, cx), (sy, cy), (sz, cz)) = (x.sin_cos(), y.sin_cos(), z.sin_cos());
    let zero = T::constant(0.0);
    [
        [cy * cz, sx * sy * cz - cx * sz, cx * sy * cz + sx * sz, zero],
        [cy * sz, sx * sy * sz + cx * cz, cx * sy * sz - sx * cz, zero],
        [-sy, sx * cy, cx * cy, zero],
    ]
}

/// The rotation about the axis `r` by its length.
fn axis_angle<T: Real>(r: [T; 3]) -> [[T; 3]; 3] {
    let norm = (r[0] * r[0] + r[1] * r[1] + r[2] * r[2]).sqrt();
    let (zero, one) = (T::constant(0.0), T::constant(1.0));
    if norm < 1e-4 {
        return [[one, zero, zero], [zero, one, zero], [zero, zero, one]];
    }
    let [x, y, z] = r.map(|r| r / norm);
    let (s, c) = norm.sin_cos();
    let rest = -c + 1.0;
    [
        [x * x + (-x * x + 1.0) * c, x * y * rest - z * s, x * z * rest + y * s],
        [x * y * rest + z * s, y * y + (-y * y + 1.0) * c, y * z * rest - x * s],
        [x * z * rest - y * s, z * y * rest + x * s, z * z + (-z * z + 1.0) * c],
    ]
}

/// Vertices that a bone moves one after the other: their positions, and the bone's matrix, stay in the first cache.
const TOGETHER: usize = 16;

struct Hand {
    model: Model,
    correspondences: Vec<usize>,
    points: Vec<[f64; 3]>,
}

impl Hand {
    /// The angles of each bone. The hand itself takes six numbers, each finger four: two for its first bone, and one for the others.
    fn angles<T: Real>(&self, theta: &[T]) -> Vec<[T; 3]> {
        let mut angles = vec![[T::constant(0.0); 3]; self.model.parents.len()];
        let mut next = theta[6..].iter();
        let mut take = || *next.next().expect("26 angles");
        for finger in 0..5 {
            for joint in 0..3 {
                let angles = &mut angles[2 + 4 * finger + joint];
                angles[0] = take();
                if joint == 0 {
                    angles[1] = take();
                }
            }
        }
        angles
    }

    /// The motion of each bone from its base.
    fn transforms<T: Real>(&self, theta: &[T]) -> Vec<Affine<T>> {
        let mut absolutes: Vec<Affine<T>> = Vec::new();
        for (bone, angles) in self.angles(theta).into_iter().enumerate() {
            let relative = product(&affine(&self.model.base_relatives[bone]), &euler(angles));
            absolutes.push(match usize::try_from(self.model.parents[bone]) {
                Ok(parent) => product(&absolutes[parent], &relative),
                Err(_) => relative,
            });
        }
        let from_base = |(absolute, inverse)| product(absolute, &affine(inverse));
        absolutes.iter().zip(&self.model.inverse_base_absolutes).map(from_base).collect()
    }

    /// Where the vertices are.
    #[inline(always)]
    fn positions<T: Real>(&self, theta: &[T]) -> Vec<[T; 3]> {
        let Model { base_positions, weights, is_mirrored, .. } = &self.model;
        let transforms = self.transforms(theta);
        let rotation = axis_angle([theta[0], theta[1], theta[2]]);
        let mut positions = vec![[T::constant(0.0); 3]; base_positions.len()];
        // Loops: closures of this length would be called, and compiled for every processor.
        for (k, positions) in positions.chunks_mut(TOGETHER).enumerate() {
            let (bases, weights) = (&base_positions[k * TOGETHER..], &weights[k * TOGETHER..]);
            for (bone, transform) in transforms.iter().enumerate() {
                for ((at, base), weights) in positions.iter_mut().zip(bases).zip(weights) {
                    let base = base.map(|v| v * weights[bone]);
                    for (at, row) in at.iter_mut().zip(transform) {
                        *at += row[0] * base[0] + row[1] * base[1] + row[2] * base[2] + row[3] * base[3];
                    }
                }
            }
            for at in positions {
                if *is_mirrored {
                    at[0] = -at[0];
                }
                let mut turned = [T::constant(0.0); 3];
                for (k, row) in rotation.iter().enumerate() {
                    turned[k] = row[0] * at[0] + row[1] * at[1] + row[2] * at[2] + theta[3 + k];
                }
                *at = turned;
            }
        }
        positions
    }

    /// The distances of the measured points, three numbers each, from the vertices or from places on the triangles that they
    /// correspond to, in their order.
    #[inline(always)]
    fn residuals<T: Real>(&self, theta: &[T], us: &[[T; 2]], mut visit: impl FnMut(usize, T)) {
        let at = self.positions(theta);
        for (i, (&to, point)) in self.correspondences.iter().zip(&self.points).enumerate() {
            if us.is_empty() {
                for k in 0..3 {
                    visit(3 * i + k, -at[to][k] + point[k]);
                }
                continue;
            }
            let [a, b, c] = self.model.triangles[to].map(|vertex| &at[vertex]);
            let [u, v] = us[i];
            let w = -(u + v) + 1.0;
            for k in 0..3 {
                visit(3 * i + k, -(u * a[k] + v * b[k] + w * c[k]) + point[k]);
            }
        }
    }
}

type Number = Dual<f64, TANGENTS>;

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let Input { theta, us, data: Data { correspondences, points, model } } = parse(input)?;
    let hand = Hand { model, correspondences, points };
    let n = 3 * hand.points.len();
    // Without places on triangles there are no tangents of theirs.
    let skipped = if us.is_empty() { 2 } else { 0 };
    match function {
        "objective" => measure(
            input,
            || vec![0.0; n],
            |residuals| {
                native(
                    #[inline(always)]
                    || hand.residuals(&theta, &us, |k, r| residuals[k] = r),
                )
            },
            |residuals, ()| residuals.clone(),
        ),
        "jacobian" => measure(
            input,
            || {
                let theta: Vec<Number> =
                    theta.iter().enumerate().map(|(k, &t)| Dual::variable(t, 2 + k)).collect();
                // Each residual depends on its own two only, so all of the first kind share a tangent.
                let us: Vec<[Number; 2]> =
                    us.iter().map(|u| [Dual::variable(u[0], 0), Dual::variable(u[1], 1)]).collect();
                (theta, us, vec![[0.0; TANGENTS]; n])
            },
            |(theta, us, jacobian)| {
                native(
                    #[inline(always)]
                    || hand.residuals(theta, us, |k, r| jacobian[k] = r.tangents()),
                )
            },
            |(_, _, jacobian), ()| jacobian.iter().map(|row| row[skipped..].to_vec()).collect::<Vec<_>>(),
        ),
        _ => unknown(function),
    }
}
