//! The log posterior of a mixture of Gaussians, on tensors.

use super::{CACHED, matrix, rows};
use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::{Tensor, Tree, compile, grad};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::f64::consts::PI;

#[derive(Deserialize)]
struct Input {
    d: usize,
    k: usize,
    n: usize,
    x: Vec<Vec<f64>>,
    m: f64,
    gamma: f64,
    alpha: Vec<f64>,
    mu: Vec<Vec<f64>>,
    q: Vec<Vec<f64>>,
    l: Vec<Vec<f64>>,
}

/// What the posterior is differentiated with respect to.
#[derive(Tree, Clone)]
struct Parameters {
    alpha: Tensor,
    groups: Vec<Group>,
}

/// Some of the components, a row for each. They are leaves of their own: the gradient of a slice of larger ones would be as large as those.
#[derive(Tree, Clone)]
struct Group {
    mu: Tensor,
    /// Logarithms of the diagonals of the inverse roots of the covariances ..
    q: Tensor,
    /// .. and what is below their diagonals, column by column.
    l: Tensor,
}

impl Parameters {
    fn new(input: &Input) -> Self {
        let d = input.d;
        let size = (CACHED / (input.n * d)).clamp(1, input.k);
        let group = |first: usize| {
            let these = first..(first + size).min(input.k);
            Group {
                mu: matrix(&input.mu[these.clone()], d),
                q: matrix(&input.q[these.clone()], d),
                l: matrix(&input.l[these], d * (d - 1) / 2),
            }
        };
        Parameters {
            alpha: Tensor::from_slice(&input.alpha, [input.k]),
            groups: (0..input.k).step_by(size).map(group).collect(),
        }
    }
}

/// The data and the prior.
struct Mixture {
    d: usize,
    k: usize,
    n: usize,
    x: Tensor,
    /// For each element of a lower triangle its place in `[diagonal | below | 0]`.
    places: Tensor,
    m: f64,
    gamma: f64,
}

/// The logarithm of the gamma function at multiples of 1/2.
fn ln_gamma(x: f64) -> f64 {
    let mut at = if x.fract() == 0.0 { 1.0 } else { 0.5 };
    let mut sum = if x.fract() == 0.0 { 0.0 } else { PI.ln() / 2.0 };
    while at < x {
        sum += f64::ln(at);
        at += 1.0;
    }
    sum
}

impl Mixture {
    fn new(input: &Input) -> Self {
        let d = input.d;
        let below = d * d.saturating_sub(1) / 2;
        let mut places = vec![(d + below) as i64; d * d];
        let mut next = d;
        for column in 0..d {
            places[column * d + column] = column as i64;
            for row in column + 1..d {
                places[row * d + column] = next as i64;
                next += 1;
            }
        }
        Mixture {
            d,
            k: input.k,
            n: input.n,
            x: matrix(&input.x, d),
            places: Tensor::from_slice(&places, [d * d]),
            m: input.m,
            gamma: input.gamma,
        }
    }

    /// The part of the prior that does not depend on the parameters, for one component.
    fn normalisation(&self) -> f64 {
        let d = self.d as f64;
        let freedom = d + self.m + 1.0;
        let ln_gamma_d = d * (d - 1.0) / 4.0 * PI.ln()
            + (1..=self.d).map(|j| ln_gamma(freedom / 2.0 + (1.0 - j as f64) / 2.0)).sum::<f64>();
        freedom * d * (self.gamma.ln() - 0.5 * 2f64.ln()) - ln_gamma_d
    }

    /// `|Q (x - mu)|²` for every point and every component of a group, a row for each point; `S` of the components; and their squares in the prior.
    fn group(&self, p: &Group) -> (Tensor, Tensor, Tensor) {
        let (d, n, k) = (self.d, self.n, p.q.shape()[0]);
        let diagonal = p.q.exp();
        let packed = Tensor::concat(&[&diagonal, &p.l, &Tensor::zeros([k, 1])], 1);
        let triangles = packed.index_select(1, &self.places).reshape([k, d, d]);
        // Q (x - mu) = Q x - Q mu: x is constant, so that no product is needed for its derivative.
        let centres = triangles.matmul(&p.mu.unsqueeze(2)).reshape([k * d]);
        let z = self.x.matmul(&triangles.reshape([k * d, d]).transpose(0, 1)) - centres;
        let squares = z.square().reshape([n, k, d]).sum_axes(2);
        (squares, p.q.sum_axes(1), diagonal.square().sum() + p.l.square().sum())
    }

    fn log_posterior(&self, p: &Parameters) -> Tensor {
        let (d, k, n) = (self.d as f64, self.k as f64, self.n as f64);
        let (mut squares, mut sums, mut prior) = (vec![], vec![], Tensor::scalar(0.0));
        for group in &p.groups {
            let (of_points, of_components, of_prior) = self.group(group);
            squares.push(of_points);
            sums.push(of_components);
            prior += of_prior;
        }
        let sums = Tensor::concat(&sums, 0);
        let beta = (&p.alpha + &sums) - Tensor::concat(&squares, 1) * 0.5;
        let likelihood = beta.logsumexp_axes(1).sum() - p.alpha.logsumexp() * n;
        let prior = sums.sum() * self.m - prior * (0.5 * self.gamma * self.gamma);
        let constant = -n * d / 2.0 * (2.0 * PI).ln() + k * self.normalisation();
        likelihood + prior + constant
    }
}

#[derive(Serialize)]
struct Gradient {
    alpha: Vec<f64>,
    mu: Vec<Vec<f64>>,
    q: Vec<Vec<f64>>,
    l: Vec<Vec<f64>>,
}

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let parsed: Input = parse(input)?;
    let mixture = Mixture::new(&parsed);
    match function {
        "objective" => measure(
            input,
            || (compile(|p: &Parameters| mixture.log_posterior(p)), Parameters::new(&parsed)),
            |(posterior, parameters)| posterior.call(parameters),
            |_, y| y.item(),
        ),
        "jacobian" => measure(
            input,
            || (compile(grad(|p: &Parameters| mixture.log_posterior(p))), Parameters::new(&parsed)),
            |(gradient, parameters)| gradient.call(parameters),
            |_, g| {
                let all = |part: fn(&Group) -> &Tensor| g.groups.iter().flat_map(|g| rows(part(g))).collect();
                Gradient { alpha: g.alpha.to_vec(), mu: all(|g| &g.mu), q: all(|g| &g.q), l: all(|g| &g.l) }
            },
        ),
        _ => unknown(function),
    }
}
