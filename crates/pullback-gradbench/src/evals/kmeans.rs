//! The Newton direction of k-means, on tensors: gradient over the diagonal of the Hessian, both by differentiating the cost.

use super::{CACHED, matrix, rows};
use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::{Tensor, compile, grad, jvp, scan};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Input {
    points: Vec<Vec<f64>>,
    centroids: Vec<Vec<f64>>,
}

/// The sum of the squared distances of points from their nearest centroids.
fn cost_of(points: &Tensor, centroids: &Tensor) -> Tensor {
    let squares = |x: &Tensor| x.square().sum_axes(1);
    let products = points.matmul(&centroids.transpose(0, 1));
    let distances = squares(points).unsqueeze(1) + squares(centroids) - products * 2.0;
    distances.min_axes(1).sum()
}

/// The same over as many points at a time as have their distances in the cache.
fn cost(points: &Tensor, centroids: &Tensor) -> Tensor {
    let (n, d, k) = (points.shape()[0], points.shape()[1], centroids.shape()[0]);
    let size = (CACHED / k).clamp(1, n);
    let whole = n - n % size;
    let parts = points.slice(..whole).reshape([whole / size, size, d]);
    let add = |sum: &Tensor, part: &Tensor| (sum + cost_of(part, centroids), ());
    let (sum, ()) = scan(add, &Tensor::scalar(0.0), &parts);
    if whole == n { sum } else { sum + cost_of(&points.slice(whole..), centroids) }
}

/// Gradient over second derivatives. The Hessian is diagonal, so that its product with ones is what there is of it.
fn direction(points: &Tensor, centroids: &Tensor) -> Tensor {
    let gradient = grad(|centroids: &Tensor| cost(points, centroids));
    let (gradient, curvature) = jvp(gradient, centroids, &Tensor::ones(centroids.shape()));
    gradient / curvature
}

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let Input { points, centroids } = parse(input)?;
    let d = points.first().map_or(0, Vec::len);
    let tensors = || (matrix(&points, d), matrix(&centroids, d));
    match function {
        "cost" => measure(
            input,
            || (compile(|(points, centroids): &(Tensor, Tensor)| cost(points, centroids)), tensors()),
            |(cost, input)| cost.call(input),
            |_, cost| cost.item(),
        ),
        "dir" => measure(
            input,
            || (compile(|(points, centroids): &(Tensor, Tensor)| direction(points, centroids)), tensors()),
            |(direction, input)| direction.call(input),
            |_, direction| rows(&direction),
        ),
        _ => unknown(function),
    }
}
