//! The Newton direction of k-means: gradient over the diagonal of the Hessian, both from one compiled function of a centre and a point.

use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::scalar::{Function, Real, Total};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Input {
    points: Vec<Vec<f64>>,
    centroids: Vec<Vec<f64>>,
}

/// The squared distance of a centre and a point, one after the other in `x`.
fn distance<T: Real>(x: &[T]) -> T {
    let (centre, point) = x.split_at(x.len() / 2);
    centre.iter().zip(point).map(|(&c, &p)| (c - p) * (c - p)).sum()
}

/// Points and centres, coordinate by coordinate.
struct Clusters {
    points: Vec<Vec<f64>>,
    centroids: Vec<Vec<f64>>,
    /// Coordinate `c` of all centres, one row for each coordinate: the search runs over many centres at once.
    by_coordinate: Vec<f64>,
    /// Distances of one point from all centres.
    distances: Vec<f64>,
}

impl Clusters {
    fn new(points: Vec<Vec<f64>>, centroids: Vec<Vec<f64>>) -> Self {
        let d = centroids[0].len();
        let by_coordinate = (0..d).flat_map(|c| centroids.iter().map(move |centre| centre[c])).collect();
        Clusters { distances: vec![0.0; centroids.len()], by_coordinate, points, centroids }
    }

    /// The centre next to a point, and its squared distance.
    fn nearest(&mut self, point: usize) -> (usize, f64) {
        let k = self.centroids.len();
        self.distances.fill(0.0);
        for (&p, centres) in self.points[point].iter().zip(self.by_coordinate.chunks(k)) {
            for (sum, c) in self.distances.iter_mut().zip(centres) {
                *sum += (c - p) * (c - p);
            }
        }
        let least = self.distances.iter().copied().fold(f64::INFINITY, f64::min);
        let at = self.distances.iter().position(|&distance| distance == least);
        (at.expect("there is a centre, and no distance is NaN"), least)
    }

    fn cost(&mut self) -> f64 {
        (0..self.points.len()).map(|i| self.nearest(i).1).sum()
    }

    /// Gradient over second derivatives. The smallest of several distances has the derivatives of the one that it is.
    fn direction(&mut self, derivatives: &Derivatives) -> Vec<Vec<f64>> {
        let mut members: Vec<Vec<f64>> = vec![Vec::new(); self.centroids.len()];
        for i in 0..self.points.len() {
            let (at, _) = self.nearest(i);
            members[at].extend_from_slice(&self.points[i]);
        }
        let direction = |(centre, members): (&Vec<f64>, &Vec<f64>)| {
            let first = derivatives.gradient.evaluate(centre, members);
            let second = derivatives.curvature.evaluate(centre, members);
            first.iter().zip(second).map(|(g, h)| g / h).collect()
        };
        self.centroids.iter().zip(&members).map(direction).collect()
    }
}

/// First and second derivatives of the distances from one centre, summed over points.
struct Derivatives {
    gradient: Total,
    /// The diagonal of the Hessian, which has nothing else.
    curvature: Total,
}

impl Derivatives {
    fn new(d: usize) -> Self {
        let distance = Function::record(distance, 2 * d);
        Derivatives {
            gradient: distance.gradient_function().select(0..d).total(d),
            curvature: distance.hessian_function().select((0..d).map(|k| k * (2 * d + 1))).total(d),
        }
    }
}

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let Input { points, centroids } = parse(input)?;
    let d = centroids.first().map_or(0, Vec::len);
    match function {
        "cost" => measure(input, || Clusters::new(points, centroids), Clusters::cost, |_, y| y),
        "dir" => measure(
            input,
            || (Clusters::new(points, centroids), Derivatives::new(d)),
            |(clusters, derivatives)| clusters.direction(derivatives),
            |_, direction| direction,
        ),
        _ => unknown(function),
    }
}
