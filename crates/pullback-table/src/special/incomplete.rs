//! The incomplete gamma and beta functions, and their derivatives with respect to the parameters.
//!
//! The value is a factor, for which there are closed forms, times a sum of positive terms or a continued fraction. The factor is written by
//! the deviance of C. Loader (Fast and accurate computation of binomial probabilities, 2000) where the parameters are large, because the
//! exponent would cancel. Derivatives with respect to parameters run the same algorithm on [power series](Jet).

use super::gamma::{HALF_LN_2_PI, lgamma_1p, stirling_rest};
use super::jet::{Jet, Series};
use super::{betaln, lgamma, polygamma};

/// No sum or fraction here needs so many terms for parameters below 1e12.
const TERMS: usize = 20_000_000;

/// `a ln(a / x) + x - a`, without cancellation where the two are close.
fn deviance(a: f64, x: f64) -> f64 {
    if (a - x).abs() > 0.1 * (a + x) {
        return a * (a / x).ln() + x - a;
    }
    let v = (a - x) / (a + x);
    let (mut sum, mut power) = ((a - x) * v, 2.0 * a * v);
    for k in 1..1000 {
        power *= v * v;
        let next = sum + power / f64::from(2 * k + 1);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// `x^a exp(-x) / Γ(a + 1)`.
fn gamma_factor(a: f64, x: f64) -> f64 {
    if a >= 10.0 {
        (-stirling_rest(a) - deviance(a, x) - HALF_LN_2_PI).exp() / a.sqrt()
    } else if a < 0.5 {
        (a * x.ln() - x - lgamma_1p(a)).exp()
    } else {
        (a * x.ln() - x - lgamma(a + 1.0)).exp()
    }
}

/// `1 + x/(a+1) + x²/((a+1)(a+2)) ..`, which is `P(a, x)` over [`gamma_factor`].
fn gamma_sum<S: Series>(a: &S, x: f64) -> S {
    let (mut term, mut sum) = (a.number(1.0), a.number(1.0));
    for k in 1..TERMS {
        term = term.scaled(x).over(&a.shifted(k as f64));
        sum = sum.plus(&term);
        if sum.settled(&term) {
            break;
        }
    }
    sum
}

/// Adds the next term of a continued fraction by the method of Lentz: `numerator / (denominator + ..)`.
struct Lentz<S> {
    c: S,
    d: S,
    value: S,
}

impl<S: Series> Lentz<S> {
    /// `1 / denominator`.
    fn new(denominator: &S) -> Self {
        let one = denominator.number(1.0);
        let d = one.over(denominator);
        Lentz { c: one.number(f64::INFINITY), value: d.clone(), d }
    }

    /// Whether the term changed nothing.
    fn push(&mut self, numerator: &S, denominator: &S) -> bool {
        let one = numerator.number(1.0);
        // The first c is infinite, and stands for a quotient of zero.
        let before = match self.c.value().is_infinite() {
            true => denominator.clone(),
            false => denominator.plus(&numerator.over(&self.c)),
        };
        self.c = before;
        self.d = one.over(&denominator.plus(&numerator.times(&self.d)));
        let next = self.value.times(&self.c.times(&self.d));
        // Roundings of the product may go on for ever; they are a few units in the last place.
        let settled = next.settled(&next.plus(&self.value.scaled(-1.0)).scaled(0.02));
        self.value = next;
        settled
    }
}

/// `Q(a, x) Γ(a) x^-a exp(x)` by Legendre's continued fraction.
fn gamma_fraction<S: Series>(a: &S, x: f64) -> S {
    let base = a.scaled(-1.0).shifted(x + 1.0);
    let mut fraction = Lentz::new(&base);
    for k in 1..TERMS {
        let k = k as f64;
        let numerator = a.shifted(-k).scaled(k);
        if fraction.push(&numerator, &base.shifted(2.0 * k)) {
            break;
        }
    }
    fraction.value
}

/// Whether the sum for `P` is taken, and not the fraction for `Q`.
fn by_sum(a: f64, x: f64) -> bool {
    x < a + 1.0
}

/// Both functions, the lower one first, where the arguments are not at an end of the domain.
fn gamma_pair(a: f64, x: f64) -> (f64, f64) {
    if by_sum(a, x) {
        let p = gamma_factor(a, x) * gamma_sum(&a, x);
        let q = if a < 1.0 && x < 1.5 { small_upper(a, x) } else { 1.0 - p };
        (p, q)
    } else {
        let q = a * gamma_factor(a, x) * gamma_fraction(&a, x);
        (1.0 - q, q)
    }
}

/// `Q(a, x)` for small arguments, without the difference from 1: that is `-expm1(a ln x - lgamma(1 + a))` less a series.
fn small_upper(a: f64, x: f64) -> f64 {
    let exponent = a * x.ln() - if a < 0.5 { lgamma_1p(a) } else { lgamma(1.0 + a) };
    let (mut power, mut sum) = (1.0, 0.0);
    for k in 1..100 {
        power *= -x / f64::from(k);
        let term = power * a / (a + f64::from(k));
        sum += term;
        if term.abs() < 1e-18 * f64::abs(sum) {
            break;
        }
    }
    -exponent.exp_m1() - exponent.exp() * sum
}

/// The value at an end of the domain, of the lower function; `None` inside.
fn gamma_end(a: f64, x: f64) -> Option<f64> {
    let outside = |v: f64| v.is_nan() || v < 0.0;
    if outside(a) || outside(x) || (a == 0.0 && x == 0.0) || (a.is_infinite() && x.is_infinite()) {
        return Some(f64::NAN);
    }
    if a == 0.0 || x.is_infinite() {
        return Some(1.0);
    }
    (x == 0.0 || a.is_infinite()).then_some(0.0)
}

/// The regularised lower incomplete gamma function `P(a, x) = 1/Γ(a) ∫₀ˣ t^(a-1) exp(-t) dt`, for positive `a` and `x`; NaN for negative ones.
///
/// ```
/// assert!((pullback_table::special::gammainc(1.0, 2.0) - (1.0 - (-2f64).exp())).abs() < 1e-15);
/// ```
pub fn gammainc(a: f64, x: f64) -> f64 {
    gamma_end(a, x).unwrap_or_else(|| gamma_pair(a, x).0)
}

/// The regularised upper incomplete gamma function `Q(a, x) = 1 - P(a, x)`, accurate where it is small.
///
/// ```
/// assert!((pullback_table::special::gammaincc(1.0, 30.0) / (-30f64).exp() - 1.0).abs() < 1e-14);
/// ```
pub fn gammaincc(a: f64, x: f64) -> f64 {
    gamma_end(a, x).map_or_else(|| gamma_pair(a, x).1, |p| 1.0 - p)
}

/// `n!` as a number.
fn factorial(n: usize) -> f64 {
    (1..=n).map(|k| k as f64).product()
}

/// The derivative of order `n` of [`gammainc`] with respect to `a`.
///
/// ```
/// use pullback_table::special::{gammainc, gammainc_derivative};
/// let difference = (gammainc(2.001, 1.5) - gammainc(1.999, 1.5)) / 0.002;
/// assert!((gammainc_derivative(1, 2.0, 1.5) - difference).abs() < 1e-6);
/// ```
pub fn gammainc_derivative(n: usize, a: f64, x: f64) -> f64 {
    if n == 0 {
        return gammainc(a, x);
    }
    if let Some(p) = gamma_end(a, x) {
        // Constant along the end x = 0 or x = ∞; at a = 0 there is only the limit from above.
        return if p.is_nan() || a == 0.0 || a.is_infinite() { f64::NAN } else { 0.0 };
    }
    let parameter = Jet::new([n, 0], |i, _| [a, 1.0].get(i).copied().unwrap_or(0.0));
    // The logarithm of the factor, without its value: that is exact elsewhere.
    let log = |a: f64| {
        let digammas = |i: usize| polygamma(a, (i - 1) as f64) / factorial(i);
        Jet::new([n, 0], |i, _| match i {
            0 => 0.0,
            1 => x.ln() - digammas(1),
            i => -digammas(i),
        })
    };
    if by_sum(a, x) {
        log(a + 1.0).exp().scaled(gamma_factor(a, x)).times(&gamma_sum(&parameter, x)).last()
    } else {
        let factor = log(a).exp().scaled(a * gamma_factor(a, x));
        -factor.times(&gamma_fraction(&parameter, x)).last()
    }
}

/// `x^a (1-x)^b / B(a, b)`, where `y = 1 - x`.
fn beta_factor(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if a < 10.0 || b < 10.0 {
        return (a * x.ln() + b * if x < 0.5 { (-x).ln_1p() } else { y.ln() } - betaln(a, b)).exp();
    }
    let n = a + b;
    let rest = stirling_rest(n) - stirling_rest(a) - stirling_rest(b);
    let exponent = rest - deviance(a, n * x) - deviance(b, n * y) - HALF_LN_2_PI;
    exponent.exp() * (a * (b / n)).sqrt()
}

/// The continued fraction of `I_x(a, b)` over `x^a (1-x)^b / (a B(a, b))`, which converges fast for `x` below the mean.
fn beta_fraction<S: Series>(a: &S, b: &S, x: f64) -> S {
    let (sum, one) = (a.plus(b), a.number(1.0));
    // 1 / (1 + d₁/(1 + d₂/(1 + ..)))
    let mut fraction = Lentz::new(&one);
    for k in 0..TERMS {
        let k = k as f64;
        // d of odd and even index, DLMF 8.17.23.
        let odd = a.shifted(k).times(&sum.shifted(k)).scaled(-x);
        let odd = odd.over(&a.shifted(2.0 * k).times(&a.shifted(2.0 * k + 1.0)));
        let even = b.shifted(-(k + 1.0)).scaled((k + 1.0) * x);
        let even = even.over(&a.shifted(2.0 * k + 1.0).times(&a.shifted(2.0 * k + 2.0)));
        let settled = fraction.push(&odd, &one);
        if fraction.push(&even, &one) && settled {
            break;
        }
    }
    fraction.value
}

/// Whether the fraction at `x` is taken, and not that at `1 - x`. For a small `b` the difference from 1 would cancel up to the mean itself.
fn below_mean(a: f64, b: f64, x: f64) -> bool {
    x < ((a + 1.0) / (a + b + 2.0)).max(a / (a + b))
}

/// The value at an end of the domain; `None` inside.
fn beta_end(a: f64, b: f64, x: f64) -> Option<f64> {
    let known = |v: f64| v > 0.0 && v.is_finite();
    if !known(a) || !known(b) || !(0.0..=1.0).contains(&x) {
        return Some(f64::NAN);
    }
    (x == 0.0 || x == 1.0).then_some(x)
}

/// The regularised incomplete beta function `I_x(a, b) = 1/B(a, b) ∫₀ˣ t^(a-1) (1-t)^(b-1) dt`, for finite positive `a` and `b` and
/// `0 <= x <= 1`; NaN elsewhere.
///
/// ```
/// assert!((pullback_table::special::betainc(2.0, 3.0, 0.5) - 0.6875).abs() < 1e-15);
/// ```
pub fn betainc(a: f64, b: f64, x: f64) -> f64 {
    beta_end(a, b, x).unwrap_or_else(|| {
        let y = 1.0 - x;
        let factor = beta_factor(a, b, x, y);
        if below_mean(a, b, x) {
            factor * beta_fraction(&a, &b, x) / a
        } else {
            1.0 - factor * beta_fraction(&b, &a, y) / b
        }
    })
}

/// The derivative of [`betainc`], `i` times with respect to `a` and `j` times with respect to `b`.
///
/// ```
/// use pullback_table::special::{betainc, betainc_derivative};
/// let difference = (betainc(2.001, 3.0, 0.5) - betainc(1.999, 3.0, 0.5)) / 0.002;
/// assert!((betainc_derivative([1, 0], 2.0, 3.0, 0.5) - difference).abs() < 1e-6);
/// ```
pub fn betainc_derivative(orders: [usize; 2], a: f64, b: f64, x: f64) -> f64 {
    if orders == [0, 0] {
        return betainc(a, b, x);
    }
    if let Some(value) = beta_end(a, b, x) {
        return value * 0.0;
    }
    let y = 1.0 - x;
    let log = Jet::new(orders, |i, j| {
        let of = |at: f64, n: usize| polygamma(at, (n - 1) as f64) / (factorial(i) * factorial(j));
        let both = if i + j == 0 { 0.0 } else { of(a + b, i + j) };
        match (i, j) {
            (0, 0) => 0.0,
            (1, 0) => x.ln() - of(a, 1) + both,
            (0, 1) => (-x).ln_1p() - of(b, 1) + both,
            (i, 0) => both - of(a, i),
            (0, j) => both - of(b, j),
            _ => both,
        }
    });
    let factor = log.exp().scaled(beta_factor(a, b, x, y));
    let first = Jet::new(orders, |i, j| [a, 1.0].get(i).copied().filter(|_| j == 0).unwrap_or(0.0));
    let second = Jet::new(orders, |i, j| [b, 1.0].get(j).copied().filter(|_| i == 0).unwrap_or(0.0));
    if below_mean(a, b, x) {
        factor.times(&beta_fraction(&first, &second, x)).over(&first).last()
    } else {
        -factor.times(&beta_fraction(&second, &first, y)).over(&second).last()
    }
}
