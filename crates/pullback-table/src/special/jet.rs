//! Truncated power series in two parameters, which carry an algorithm's derivatives with respect to them.

/// What the series and continued fractions of the incomplete functions are written in: a number, or a number with its derivatives.
pub(super) trait Series: Clone {
    /// A number of the same kind.
    fn number(&self, value: f64) -> Self;
    fn value(&self) -> f64;
    fn plus(&self, other: &Self) -> Self;
    fn times(&self, other: &Self) -> Self;
    fn over(&self, other: &Self) -> Self;

    /// Whether adding `step` changes nothing any more.
    fn settled(&self, step: &Self) -> bool;

    fn shifted(&self, by: f64) -> Self {
        self.plus(&self.number(by))
    }

    fn scaled(&self, by: f64) -> Self {
        self.times(&self.number(by))
    }
}

impl Series for f64 {
    fn number(&self, value: f64) -> f64 {
        value
    }
    fn value(&self) -> f64 {
        *self
    }
    fn plus(&self, other: &f64) -> f64 {
        self + other
    }
    fn times(&self, other: &f64) -> f64 {
        self * other
    }
    fn over(&self, other: &f64) -> f64 {
        self / other
    }
    fn settled(&self, step: &f64) -> bool {
        // NaN never settles, and needs no more steps.
        step.abs() <= self.abs() * 1e-17 || self.is_nan()
    }
}

/// The coefficients of `s^i t^j`, for `i` and `j` up to the orders that are wanted.
#[derive(Clone)]
pub(super) struct Jet {
    orders: [usize; 2],
    c: Vec<f64>,
}

impl Jet {
    /// The series with these coefficients.
    pub fn new(orders: [usize; 2], coefficient: impl Fn(usize, usize) -> f64) -> Jet {
        let places = (0..=orders[0]).flat_map(|i| (0..=orders[1]).map(move |j| (i, j)));
        Jet { orders, c: places.map(|(i, j)| coefficient(i, j)).collect() }
    }

    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.c[i * (self.orders[1] + 1) + j]
    }

    /// The derivative of the highest orders.
    pub fn last(&self) -> f64 {
        let factorial = |n: usize| (1..=n).map(|k| k as f64).product::<f64>();
        self.at(self.orders[0], self.orders[1]) * factorial(self.orders[0]) * factorial(self.orders[1])
    }

    /// The series of which each coefficient is found from those before it.
    fn solve(orders: [usize; 2], next: impl Fn(&Jet, usize, usize) -> f64) -> Jet {
        let mut y = Jet { orders, c: Vec::with_capacity((orders[0] + 1) * (orders[1] + 1)) };
        for i in 0..=orders[0] {
            for j in 0..=orders[1] {
                let c = next(&y, i, j);
                y.c.push(c);
            }
        }
        y
    }

    /// `exp(self)`, by `y' = self' y`.
    pub fn exp(&self) -> Jet {
        Jet::solve(self.orders, |y, i, j| match (i, j) {
            (0, 0) => self.at(0, 0).exp(),
            (0, j) => (1..=j).map(|q| q as f64 * self.at(0, q) * y.at(0, j - q)).sum::<f64>() / j as f64,
            (i, j) => {
                let terms = (1..=i).flat_map(|p| (0..=j).map(move |q| (p, q)));
                terms.map(|(p, q)| p as f64 * self.at(p, q) * y.at(i - p, j - q)).sum::<f64>() / i as f64
            }
        })
    }
}

impl Series for Jet {
    fn number(&self, value: f64) -> Jet {
        Jet::new(self.orders, |i, j| if i + j == 0 { value } else { 0.0 })
    }

    fn value(&self) -> f64 {
        self.c[0]
    }

    fn plus(&self, other: &Jet) -> Jet {
        Jet { orders: self.orders, c: self.c.iter().zip(&other.c).map(|(a, b)| a + b).collect() }
    }

    fn times(&self, other: &Jet) -> Jet {
        Jet::new(self.orders, |i, j| {
            let terms = (0..=i).flat_map(|p| (0..=j).map(move |q| (p, q)));
            terms.map(|(p, q)| self.at(p, q) * other.at(i - p, j - q)).sum()
        })
    }

    /// `y other = self`, coefficient by coefficient.
    fn over(&self, other: &Jet) -> Jet {
        Jet::solve(self.orders, |y, i, j| {
            let terms = (0..=i).flat_map(|p| (0..=j).map(move |q| (p, q))).filter(|&(p, q)| p + q > 0);
            let known: f64 = terms.map(|(p, q)| other.at(p, q) * y.at(i - p, j - q)).sum();
            (self.at(i, j) - known) / other.at(0, 0)
        })
    }

    fn scaled(&self, by: f64) -> Jet {
        Jet { orders: self.orders, c: self.c.iter().map(|a| a * by).collect() }
    }

    fn settled(&self, step: &Jet) -> bool {
        // A coefficient that is zero by chance must not keep the others waiting.
        let size = self.c.iter().fold(0.0f64, |m, c| m.max(c.abs()));
        self.c.iter().zip(&step.c).all(|(c, d)| d.abs() <= c.abs().max(size * 1e-3) * 1e-17 || c.is_nan())
    }
}
