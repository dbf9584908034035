//! The Newton direction of k-means: gradient over the diagonal of the Hessian, both from one compiled function of a centre and a point.

use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::scalar::{Function, Real, Total, native};
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

/// Points and centres, and memory for what is found out about them.
struct Clusters {
    points: Vec<Vec<f64>>,
    centroids: Vec<Vec<f64>>,
    /// Coordinate `c` of all centres, one row for each coordinate: the search runs over many centres at once.
    by_coordinate: Vec<f64>,
    /// Distances of one point from all centres.
    distances: Vec<f64>,
    /// The centre next to each point, and its squared distance.
    nearest: Vec<(usize, f64)>,
    /// The points, those of the first centre first, and where those of each centre end.
    members: Vec<f64>,
    ends: Vec<usize>,
}

impl Clusters {
    fn new(points: Vec<Vec<f64>>, centroids: Vec<Vec<f64>>) -> Self {
        let d = centroids[0].len();
        let by_coordinate = (0..d).flat_map(|c| centroids.iter().map(move |centre| centre[c])).collect();
        Clusters {
            by_coordinate,
            distances: vec![0.0; centroids.len()],
            nearest: vec![(0, 0.0); points.len()],
            members: vec![0.0; points.len() * d],
            ends: vec![0; centroids.len()],
            points,
            centroids,
        }
    }

    /// Finds the centre next to each point.
    fn search(&mut self) {
        native(|| {
            let k = self.centroids.len();
            for (point, nearest) in self.points.iter().zip(&mut self.nearest) {
                self.distances.fill(0.0);
                for (&p, centres) in point.iter().zip(self.by_coordinate.chunks(k)) {
                    for (sum, c) in self.distances.iter_mut().zip(centres) {
                        *sum += (c - p) * (c - p);
                    }
                }
                let least = self.distances.iter().copied().fold(f64::INFINITY, f64::min);
                let at = self.distances.iter().position(|&distance| distance == least);
                *nearest = (at.expect("there is a centre, and no distance is NaN"), least);
            }
        });
    }

    fn cost(&mut self) -> f64 {
        self.search();
        self.nearest.iter().map(|(_, distance)| distance).sum()
    }

    /// Brings the points of each centre together.
    fn gather(&mut self) {
        let d = self.centroids[0].len();
        self.ends.fill(0);
        self.nearest.iter().for_each(|&(c, _)| self.ends[c] += d);
        let mut start = 0;
        for end in &mut self.ends {
            // Where the points of the centre begin, until they are there.
            start += std::mem::replace(end, start);
        }
        for (&(c, _), point) in self.nearest.iter().zip(&self.points) {
            let end = &mut self.ends[c];
            self.members[*end..*end + d].copy_from_slice(point);
            *end += d;
        }
    }

    /// Gradient over second derivatives, centre by centre. The smallest of several distances has the derivatives of the one that it is.
    fn direction(&mut self, derivatives: &Total) -> Vec<f64> {
        self.search();
        self.gather();
        let d = self.centroids[0].len();
        let (mut direction, mut both) = (Vec::with_capacity(self.ends.len() * d), vec![0.0; 2 * d]);
        let mut start = 0;
        for (centre, &end) in self.centroids.iter().zip(&self.ends) {
            derivatives.evaluate_into(centre, &self.members[start..end], &mut both);
            let (gradient, curvature) = both.split_at(d);
            direction.extend(gradient.iter().zip(curvature).map(|(g, h)| g / h));
            start = end;
        }
        direction
    }
}

/// First and second derivatives of the distances from one centre, summed over points: the gradient, and the diagonal of the Hessian,
/// which has nothing else.
fn derivatives(d: usize) -> Total {
    let distance = Function::record(distance, 2 * d);
    let diagonal = distance.hessian_function().select((0..d).map(|k| k * (2 * d + 1)));
    distance.gradient_function().select(0..d).join(&diagonal).total(d)
}

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let Input { points, centroids } = parse(input)?;
    let d = centroids.first().map_or(0, Vec::len);
    match function {
        "cost" => measure(input, || Clusters::new(points, centroids), Clusters::cost, |_, y| y),
        "dir" => measure(
            input,
            || (Clusters::new(points, centroids), derivatives(d)),
            |(clusters, derivatives)| clusters.direction(derivatives),
            |_, direction| direction.chunks(d).map(<[f64]>::to_vec).collect::<Vec<_>>(),
        ),
        _ => unknown(function),
    }
}
