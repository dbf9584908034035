//! The incomplete gamma and beta functions, with their derivatives with respect to the parameters to any order.

use super::elementwise::{needs_float, special};
use super::*;
use crate::error::{err, or_panic};
use crate::kernels::cost::Cost;
use pullback_table::special as of;
use smallvec::smallvec;

/// Floats of one type and shape.
fn floats(x: &[Arg]) -> Result<Aval> {
    if let Some(other) = x.iter().find(|a| a.dtype != x[0].dtype || a.shape != x[0].shape) {
        return Err(err!(Shape, "operands must agree, got {:?} and {:?}", x[0], other));
    }
    if !x[0].dtype.is_float() {
        return Err(needs_float(x[0].dtype));
    }
    Ok(Aval { dtype: x[0].dtype, shape: x[0].shape.clone() })
}

/// The binomial coefficient.
fn binomial(n: usize, k: usize) -> f64 {
    (0..k).fold(1.0, |c, j| c * (n - j) as f64 / (j + 1) as f64)
}

/// The derivative of order `order` with respect to `a` of the regularised incomplete gamma function `P(a, x)`, or of `Q = 1 - P` if `upper`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GammaInc {
    pub upper: bool,
    pub order: usize,
}

impl GammaInc {
    /// The derivatives with respect to `a`, of orders 0 to `order`, of the density `x^(a-1) exp(-x) / Γ(a)`.
    ///
    /// By Leibniz' rule: the derivative of the density is the density times that of its logarithm.
    fn density(a: &Tensor, x: &Tensor, order: usize) -> Tensor {
        let slope = |m: usize| match m {
            0 => x.ln() - a.digamma(),
            m => -a.polygamma(m as f64),
        };
        let mut d = vec![((a - 1.0).xlogy(x) - x - a.lgamma()).exp()];
        for k in 1..=order {
            let terms = (0..k).map(|j| &d[j] * slope(k - 1 - j) * binomial(k - 1, j));
            d.push(terms.reduce(|s, t| s + t).expect("there is a term"));
        }
        d.swap_remove(order)
    }
}

impl Primitive for GammaInc {
    const NAME: &'static str = "gammainc";
    const ARITY: Option<usize> = Some(2);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        floats(x)
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let order = self.order;
        let f: &(dyn Fn([f64; 2]) -> f64 + Sync) = match (self.upper, order) {
            (false, _) => &move |[a, x]| of::gammainc_derivative(order, a, x),
            (true, 0) => &|[a, x]| of::gammaincc(a, x),
            (true, _) => &move |[a, x]| -of::gammainc_derivative(order, a, x),
        };
        special(f, Cost::of(2000), x, out);
        Ok(())
    }

    fn elementwise(&self) -> bool {
        true
    }

    fn flops(&self, _: &[&[usize]], y: &[usize]) -> u64 {
        2000 * y.iter().product::<usize>() as u64
    }

    /// `g ∂P/∂a`, the same function of the next order, and `g x^(a-1) exp(-x) / Γ(a)`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let (a, x) = (at.x(0), at.x(1));
        let sign = if self.upper { -1.0 } else { 1.0 };
        smallvec![
            at.needs(0).then(|| g.gate(or_panic(bind(GammaInc { order: self.order + 1, ..*self }, &[a, x])))),
            at.needs(1).then(|| g.gate(GammaInc::density(a, x, self.order) * sign)),
        ]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([0, 1])
    }

    fn samples() -> Vec<Sample> {
        let draw = |s: &[usize]| Draw::new(Domain::positive, s);
        let of = |upper, order, s: &[usize]| Sample::new(GammaInc { upper, order }, [draw(s), draw(s)]);
        vec![
            of(false, 0, &[]),
            of(true, 0, &[5]),
            of(false, 1, &[2, 3]),
            of(true, 1, &[3]),
            of(false, 0, &[0]),
        ]
    }
}

/// The regularised incomplete beta function `I_x(a, b)`, differentiated `by_a` times with respect to `a` and `by_b` times with respect to `b`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BetaInc {
    pub by_a: usize,
    pub by_b: usize,
}

impl BetaInc {
    /// That derivative of the density `x^(a-1) (1-x)^(b-1) / B(a, b)`, by Leibniz' rule.
    fn density(&self, a: &Tensor, b: &Tensor, x: &Tensor) -> Tensor {
        let (i, j) = (self.by_a, self.by_b);
        if i + j == 0 {
            return ((a - 1.0).xlogy(x) + (b - 1.0).xlog1py(-x) - a.betaln(b)).exp();
        }
        // The derivatives of the logarithm.
        let slope = |i: usize, j: usize| {
            let both = (a + b).polygamma((i + j - 1) as f64);
            match (i, j) {
                (1, 0) => x.ln() - a.digamma() + both,
                (0, 1) => (-x).log1p() - b.digamma() + both,
                (i, 0) => both - a.polygamma((i - 1) as f64),
                (0, j) => both - b.polygamma((j - 1) as f64),
                _ => both,
            }
        };
        // One derivative is taken of the logarithm, those that are left of the product.
        let (left_i, left_j) = if i > 0 { (i - 1, j) } else { (0, j - 1) };
        let terms = (0..=left_i).flat_map(|p| (0..=left_j).map(move |q| (p, q)));
        let term = |(p, q): (usize, usize)| {
            let times = binomial(left_i, p) * binomial(left_j, q);
            BetaInc { by_a: p, by_b: q }.density(a, b, x) * slope(i - p, j - q) * times
        };
        terms.map(term).reduce(|s, t| s + t).expect("there is a term")
    }
}

impl Primitive for BetaInc {
    const NAME: &'static str = "betainc";
    const ARITY: Option<usize> = Some(3);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        floats(x)
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let orders = [self.by_a, self.by_b];
        special(&move |[a, b, x]| of::betainc_derivative(orders, a, b, x), Cost::of(4000), x, out);
        Ok(())
    }

    fn elementwise(&self) -> bool {
        true
    }

    fn flops(&self, _: &[&[usize]], y: &[usize]) -> u64 {
        4000 * y.iter().product::<usize>() as u64
    }

    /// `g ∂I/∂a` and `g ∂I/∂b`, the same function of the next order, and `g x^(a-1) (1-x)^(b-1) / B(a, b)`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let (a, b, x) = (at.x(0), at.x(1), at.x(2));
        let more = |by_a: usize, by_b: usize| {
            let op = BetaInc { by_a: self.by_a + by_a, by_b: self.by_b + by_b };
            g.gate(or_panic(bind(op, &[a, b, x])))
        };
        smallvec![
            at.needs(0).then(|| more(1, 0)),
            at.needs(1).then(|| more(0, 1)),
            at.needs(2).then(|| g.gate(self.density(a, b, x))),
        ]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([0, 1, 2])
    }

    fn samples() -> Vec<Sample> {
        let of = |by_a, by_b, s: &[usize]| {
            let draw = |domain| Draw::new(domain, s);
            Sample::new(
                BetaInc { by_a, by_b },
                [draw(Domain::positive), draw(Domain::positive), draw(Domain::probability)],
            )
        };
        vec![of(0, 0, &[]), of(0, 0, &[2, 3]), of(1, 0, &[3]), of(0, 1, &[3]), of(0, 0, &[0])]
    }
}
