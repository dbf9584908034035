//! The Newton direction of k-means: gradient over the diagonal of the Hessian, both from one compiled function of a centre and a point.

use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::scalar::{Function, Lanes, Real, Total, native};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::ops::Sub;

#[derive(Deserialize)]
struct Input {
    points: Vec<Vec<f64>>,
    centroids: Vec<Vec<f64>>,
}

/// The squared distance of a centre and a point.
#[inline(always)]
fn distance<C: Copy, T: Real + Sub<C, Output = T>>(centre: &[C], point: &[T]) -> T {
    let mut sum = T::constant(0.0);
    for (&c, &p) in centre.iter().zip(point) {
        sum += (p - c) * (p - c);
    }
    sum
}

/// Numbers of `rows` in tiles of `W` rows, in which those of each column lie together. Places that no row is left for have `filling`.
fn tiled<const W: usize>(rows: &[Vec<f64>], filling: f64) -> Vec<[f64; W]> {
    let columns = rows[0].len();
    let tile =
        |tile: &[Vec<f64>], c: usize| std::array::from_fn(|k| tile.get(k).map_or(filling, |row| row[c]));
    rows.chunks(W).flat_map(|rows| (0..columns).map(move |c| tile(rows, c))).collect()
}

/// The sum of the distances from the nearest centres, in plain numbers.
struct Cost<'a> {
    points: &'a [Vec<f64>],
    /// Tiles of centres.
    centres: &'a [[f64; 8]],
}

impl Cost<'_> {
    #[inline(always)]
    fn run(self) -> f64 {
        let mut cost = 0.0;
        for point in self.points {
            let mut least = f64::INFINITY;
            for centres in self.centres.chunks_exact(point.len()) {
                let mut distances = [0.0; 8];
                for (&p, centres) in point.iter().zip(centres) {
                    for (sum, c) in distances.iter_mut().zip(centres) {
                        *sum += (p - c) * (p - c);
                    }
                }
                for distance in distances {
                    least = if distance < least { distance } else { least };
                }
            }
            cost += least;
        }
        cost
    }
}

/// Points that are searched for together, a lane for each.
const TOGETHER: usize = 16;

/// Finds the centre next to each point.
struct Search<'a> {
    centroids: &'a [Vec<f64>],
    /// Tiles of points.
    points: &'a [Lanes<TOGETHER>],
    nearest: &'a mut [usize],
}

impl Search<'_> {
    #[inline(always)]
    fn run(self) {
        let tiles = self.points.chunks_exact(self.centroids[0].len());
        for (point, nearest) in tiles.zip(self.nearest.chunks_mut(TOGETHER)) {
            let (mut least, mut at) = (Lanes::constant(f64::INFINITY), Lanes::constant(0.0));
            for (k, centre) in self.centroids.iter().enumerate() {
                let distance = distance(centre, point);
                at = distance.select_lt(least, Lanes::constant(k as f64), at);
                least = distance.select_lt(least, distance, least);
            }
            nearest.iter_mut().zip(at.0).for_each(|(nearest, at)| *nearest = at as usize);
        }
    }
}

/// Points and centres, and memory for what is found out about them.
struct Clusters {
    points: Vec<f64>,
    tiles: Vec<Lanes<TOGETHER>>,
    centroids: Vec<Vec<f64>>,
    derivatives: Total,
    /// The centre next to each point.
    nearest: Vec<usize>,
    /// The numbers of the points next to each centre.
    members: Vec<Vec<usize>>,
}

impl Clusters {
    fn new(points: Vec<Vec<f64>>, centroids: Vec<Vec<f64>>) -> Self {
        Clusters {
            tiles: tiled(&points, 0.0).into_iter().map(Lanes).collect(),
            derivatives: derivatives(centroids[0].len()),
            nearest: vec![0; points.len()],
            members: vec![Vec::new(); centroids.len()],
            points: points.concat(),
            centroids,
        }
    }

    /// Gradient over second derivatives, centre by centre. The smallest of several distances has the derivatives of the one that it is.
    fn direction(&mut self) -> Vec<f64> {
        let search = Search { centroids: &self.centroids, points: &self.tiles, nearest: &mut self.nearest };
        native(
            #[inline(always)]
            || search.run(),
        );
        self.members.iter_mut().for_each(Vec::clear);
        for (point, &centre) in self.nearest.iter().enumerate() {
            self.members[centre].push(point);
        }
        let d = self.centroids[0].len();
        let (mut direction, mut both) = (Vec::with_capacity(self.members.len() * d), vec![0.0; 2 * d]);
        for (centre, members) in self.centroids.iter().zip(&self.members) {
            self.derivatives.evaluate_chosen_into(centre, &self.points, members, &mut both);
            let (gradient, curvature) = both.split_at(d);
            direction.extend(gradient.iter().zip(curvature).map(|(g, h)| g / h));
        }
        direction
    }
}

/// First and second derivatives of the distances from one centre, summed over points: the gradient, and the diagonal of the Hessian,
/// which has nothing else.
fn derivatives(d: usize) -> Total {
    let distance = Function::record(|x| distance(&x[..d], &x[d..]), 2 * d);
    let diagonal = distance.hessian_function().select((0..d).map(|k| k * (2 * d + 1)));
    distance.gradient_function().select(0..d).join(&diagonal).total(d)
}

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let Input { points, centroids } = parse(input)?;
    let d = centroids.first().map_or(0, Vec::len);
    match function {
        "cost" => measure(
            input,
            || tiled(&centroids, f64::INFINITY),
            |centres| {
                native(
                    #[inline(always)]
                    || Cost { points: &points, centres }.run(),
                )
            },
            |_, cost| cost,
        ),
        "dir" => measure(
            input,
            || Clusters::new(points, centroids),
            Clusters::direction,
            |_, direction| direction.chunks(d).map(<[f64]>::to_vec).collect::<Vec<_>>(),
        ),
        _ => unknown(function),
    }
}
