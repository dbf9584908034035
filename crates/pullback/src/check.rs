//! The gradient checker: derivatives against differences of the function itself.
//!
//! A function is compared with its own central differences along a random direction, in reverse and in forward mode, and its gradient
//! likewise, so that second derivatives are checked too. If they disagree, the elements are tried one by one, and the report
//! names the worst.
//!
//! ```
//! use pullback::{check, prelude::*};
//! let x = Tensor::from([[0.3, 0.7], [1.1, 0.2]]);
//! check::gradients(|x: &Tensor| x.matmul(&x.sin()).log_softmax(-1).sum(), &x).unwrap();
//!
//! let wrong = |x: &Tensor| x.square().detach() * x; // a severed path
//! let report = check::gradients(wrong, &x).unwrap_err();
//! assert!(report.to_string().contains("reverse mode"), "{report}");
//! ```

use crate::tensor::{Key, Tensor};
use crate::transform::{from_leaves, jvp, vjp};
use crate::{Complex, DType, Tree};
use std::fmt;

/// Checks first and second derivatives of `f` at `x`, in both modes, with the tolerances of the type of its inputs.
///
/// For other choices see [`Check`].
#[track_caller]
pub fn gradients<X: Tree, Y: Tree>(f: impl Fn(&X) -> Y, x: &X) -> Result<(), Report> {
    Check::default().run(f, x)
}

/// What to check, and how closely.
///
/// ```
/// use pullback::{check::Check, prelude::*};
/// let once = Check { order: 1, ..Check::default() };
/// once.run(|x: &Tensor| x.exp(), &Tensor::from([0.1f32, 0.2])).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Check {
    /// 1 for the derivatives of the function, 2 for those of its gradient too.
    pub order: usize,
    /// How many random directions.
    pub directions: usize,
    /// Greatest difference, relative to one plus the size of the derivative; by default 1e-6 for f64 and 2e-2 for f32.
    pub tolerance: Option<f64>,
    /// Distance of the differences, relative to the size of the inputs; by default 1e-4 for f64 and 1e-2 for f32.
    pub step: Option<f64>,
    /// What the directions are drawn from.
    pub key: Key,
}

impl Default for Check {
    fn default() -> Self {
        Check { order: 2, directions: 1, tolerance: None, step: None, key: Key::new(0x5eed) }
    }
}

/// A derivative that is not that of the function.
#[derive(Clone, Debug)]
pub struct Report {
    /// 1 or 2.
    pub order: usize,
    /// "reverse mode" or "forward mode".
    pub mode: &'static str,
    /// Along the random direction: what the mode says.
    pub derivative: f64,
    /// Along the random direction: what the differences say.
    pub difference: f64,
    /// The worst single element, if the inputs are few enough to try them all: its input's name, its position, and both numbers.
    pub worst: Option<Element>,
}

/// One element of an input.
#[derive(Clone, Debug)]
pub struct Element {
    /// The path of the input in its tree; empty for a single tensor.
    pub input: String,
    /// The position in it. Of a complex element it is one of the parts.
    pub position: Vec<usize>,
    /// The derivative of the output, along a random cotangent, that the mode says.
    pub derivative: f64,
    /// The same by differences.
    pub difference: f64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { order, mode, derivative, difference, .. } = self;
        write!(f, "order {order}, {mode}: derivative {derivative:e}, but differences give {difference:e}")?;
        if let Some(e) = &self.worst {
            let name = if e.input.is_empty() { "the input".into() } else { format!("input `{}`", e.input) };
            write!(f, "; worst at {name}{:?}: {:e} against {:e}", e.position, e.derivative, e.difference)?;
        }
        Ok(())
    }
}

impl std::error::Error for Report {}

/// Inputs larger than this are not tried element by element for a report.
const FEW: usize = 4096;

impl Check {
    /// Runs the check.
    #[track_caller]
    pub fn run<X: Tree, Y: Tree>(&self, f: impl Fn(&X) -> Y, x: &X) -> Result<(), Report> {
        let _entered = crate::location::entered(crate::location::caller());
        for k in 0..self.directions {
            let [a, b] = self.key.fold_in(k as u64).split();
            self.first_order(&f, x, a, 1)?;
            if self.order > 1 {
                let g = random_like(&f(x), b.fold_in(0));
                self.first_order(&|x: &X| vjp(&f, x).1(&g), x, b, 2)?;
            }
        }
        Ok(())
    }

    fn first_order<X: Tree, Y: Tree>(
        &self,
        f: &impl Fn(&X) -> Y,
        x: &X,
        key: Key,
        order: usize,
    ) -> Result<(), Report> {
        let [a, b] = key.split();
        let t = random_like(x, a);
        let (y, pull) = vjp(f, x);
        let g = random_like(&y, b);
        let (step, tolerance) = self.limits(x);
        let difference = central(f, x, &t, &g, step);
        let pulled = pull(&g);
        let modes = [("reverse mode", inner(&pulled, &t)), ("forward mode", inner(&jvp(f, x, &t).1, &g))];
        for (mode, derivative) in modes {
            if close(derivative, difference, tolerance) {
                continue;
            }
            let few = x.leaves().iter().map(|t| t.numel()).sum::<usize>() <= FEW;
            let worst = few.then(|| self.worst(f, x, &pulled, &g, mode, step)).flatten();
            return Err(Report { order, mode, derivative, difference, worst });
        }
        Ok(())
    }

    /// Step and tolerance, by the least precise input.
    fn limits<X: Tree>(&self, x: &X) -> (f64, f64) {
        let precise = x.leaves().iter().all(|t| t.dtype().real() == DType::F64);
        let (step, tolerance) = if precise { (1e-4, 1e-6) } else { (1e-2, 2e-2) };
        (self.step.unwrap_or(step), self.tolerance.unwrap_or(tolerance))
    }

    /// The element in which derivative and difference are furthest apart.
    fn worst<X: Tree, Y: Tree>(
        &self,
        f: &impl Fn(&X) -> Y,
        x: &X,
        pulled: &X,
        g: &Y,
        mode: &str,
        step: f64,
    ) -> Option<Element> {
        let mut worst: Option<(f64, Element)> = None;
        for (leaf, input) in x.names().into_iter().enumerate() {
            let shape = x.leaves()[leaf].shape().to_vec();
            let parts = if x.leaves()[leaf].dtype().is_complex() { 2 } else { 1 };
            for at in 0..parts * x.leaves()[leaf].numel() {
                let t = unit(x, leaf, at);
                let difference = central(f, x, &t, g, step);
                let derivative = match mode {
                    "reverse mode" => inner(pulled, &t),
                    _ => inner(&jvp(f, x, &t).1, g),
                };
                let apart = (derivative - difference).abs();
                let apart = if apart.is_nan() { f64::INFINITY } else { apart };
                if worst.as_ref().is_none_or(|w| apart > w.0) {
                    let position = unravel(at / parts, &shape);
                    worst = Some((apart, Element { input: input.clone(), position, derivative, difference }));
                }
            }
        }
        worst.map(|w| w.1)
    }
}

/// `<f(x), g>` differentiated along `t`: central differences at two distances, extrapolated to none (Richardson), so
/// that the error is of the fourth order in the step.
fn central<X: Tree, Y: Tree>(f: &impl Fn(&X) -> Y, x: &X, t: &X, g: &Y, step: f64) -> f64 {
    let at = |h: f64| {
        let moved = x.leaves().into_iter().zip(t.leaves()).map(|(x, t)| x + t * h);
        inner(&f(&from_leaves(x, moved)), g)
    };
    let slope = |h: f64| (at(h) - at(-h)) / (2.0 * h);
    (4.0 * slope(step / 2.0) - slope(step)) / 3.0
}

/// The inner product of two trees of one structure, in f64; of complex numbers the real one, `Re Σ conj(a) b`.
fn inner<X: Tree>(a: &X, b: &X) -> f64 {
    let dot =
        |(a, b): (&Tensor, &Tensor)| a.numbers().iter().zip(b.numbers()).map(|(a, b)| a * b).sum::<f64>();
    a.leaves().into_iter().zip(b.leaves()).filter(|(a, _)| a.dtype().is_differentiable()).map(dot).sum()
}

/// Not smaller than 0.5 in size, so that no element is overlooked; of complex numbers neither part is.
fn random_like<X: Tree>(x: &X, key: Key) -> X {
    let mut k = 0;
    x.map(&mut |t| {
        k += 1;
        let real = |key: &Key| {
            let [size, sign] = key.split();
            let size = Tensor::uniform(size, t.shape(), DType::F64) * 0.5 + 0.5;
            size * Tensor::where_(&Tensor::bernoulli(sign, t.shape(), 0.5), 1.0, -1.0)
        };
        let key = key.fold_in(k);
        let drawn = match t.dtype().is_complex() {
            true => Tensor::complex(real(&key.fold_in(0)), real(&key.fold_in(1))),
            false => real(&key),
        };
        drawn.cast(t.dtype())
    })
}

/// 1 at one element of one leaf, 0 elsewhere. The parts of complex elements count as elements.
fn unit<X: Tree>(x: &X, leaf: usize, at: usize) -> X {
    let mut k = 0;
    x.map(&mut |t| {
        let complex = t.dtype().is_complex();
        let mut elements = vec![Complex::new(0.0, 0.0); t.numel()];
        if k == leaf {
            match complex {
                true if at % 2 == 1 => elements[at / 2].im = 1.0,
                true => elements[at / 2].re = 1.0,
                false => elements[at].re = 1.0,
            }
        }
        k += 1;
        let unit = Tensor::from_slice(&elements, t.shape());
        if complex { unit.cast(t.dtype()) } else { unit.real().cast(t.dtype()) }
    })
}

fn unravel(mut at: usize, shape: &[usize]) -> Vec<usize> {
    let mut out: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&n| {
            let k = at % n;
            at /= n;
            k
        })
        .collect();
    out.reverse();
    out
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}
