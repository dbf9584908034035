//! Derivatives of functions that are passed by name.
//!
//! Each function here asks for its argument at one number type, so that a generic function needs no annotation. The
//! `_into` forms write to buffers of the caller; once the tape of the thread is warm they allocate nothing.

use super::tape::{Recording, Tape, with_idle_tape};
use super::{Dual, HyperDual, Taped, Var};
use std::cell::RefCell;

thread_local! {
    static INPUTS: RefCell<Vec<Var>> = const { RefCell::new(Vec::new()) };
}

/// Runs `f` on a warm tape with the inputs `x`.
fn with_inputs<R>(x: &[f64], f: impl FnOnce(&Recording<'_, f64>, &[Var]) -> R) -> R {
    // Taken, not borrowed: `f` may come here again.
    let mut inputs = INPUTS.take();
    let result = with_idle_tape(|tape: &mut Tape| {
        tape.record(|t| {
            t.first_inputs(x, &mut inputs);
            f(t, &inputs)
        })
    });
    INPUTS.set(inputs);
    result
}

/// The gradient of `f` at `x`.
///
/// ```
/// use pullback::scalar::{gradient, Real};
/// fn f<T: Real>(x: &[T]) -> T {
///     x[0] * x[1] + x[0].sin()
/// }
/// assert_eq!(gradient(f, &[0.0, 3.0]), [4.0, 0.0]);
/// ```
pub fn gradient<F: Fn(&[Var]) -> Var>(f: F, x: &[f64]) -> Vec<f64> {
    value_and_gradient(f, x).1
}

/// The value and the gradient of `f` at `x`.
pub fn value_and_gradient<F: Fn(&[Var]) -> Var>(f: F, x: &[f64]) -> (f64, Vec<f64>) {
    let mut gradient = vec![0.0; x.len()];
    let value = gradient_into(f, x, &mut gradient);
    (value, gradient)
}

/// Writes the gradient of `f` at `x` to `gradient` and returns the value.
///
/// # Panics
/// If `gradient` is not as long as `x`.
#[track_caller]
pub fn gradient_into<F: Fn(&[Var]) -> Var>(f: F, x: &[f64], gradient: &mut [f64]) -> f64 {
    assert_eq!(x.len(), gradient.len(), "gradient: the buffer needs one place for each input");
    with_inputs(x, |t, x| {
        let y = f(x);
        t.gradient_of_first(y, gradient);
        y.inner()
    })
}

/// The value of `f` at `x` and its derivative in the direction `v`, by forward mode.
///
/// ```
/// use pullback::scalar::{directional, Real};
/// fn f<T: Real>(x: &[T]) -> T {
///     x[0] * x[1]
/// }
/// assert_eq!(directional(f, &[2.0, 3.0], &[1.0, 10.0]), (6.0, 23.0));
/// ```
#[track_caller]
pub fn directional<F: Fn(&[Dual]) -> Dual>(f: F, x: &[f64], v: &[f64]) -> (f64, f64) {
    assert_eq!(x.len(), v.len(), "directional: the direction is as long as the point");
    let x: Vec<Dual> = x.iter().zip(v).map(|(&x, &v)| Dual::new(x, [v])).collect();
    let y = f(&x);
    (y.real(), y.tangents()[0])
}

/// The Jacobian of `f` at `x`, one row for each output. Adjoints are swept back over the tape for several rows at once,
/// or tangents forward for several columns, whichever is less work.
///
/// ```
/// use pullback::scalar::{jacobian, Real};
/// fn f<T: Real>(x: &[T]) -> [T; 2] {
///     [x[0] * x[1], x[0] + 1.0]
/// }
/// assert_eq!(jacobian(f, &[2.0, 3.0]), [[3.0, 2.0], [1.0, 0.0]]);
/// ```
pub fn jacobian<F: Fn(&[Var]) -> O, O: AsRef<[Var]>>(f: F, x: &[f64]) -> Vec<Vec<f64>> {
    with_inputs(x, |t, x| {
        let y = f(x);
        let mut flat = vec![0.0; y.as_ref().len() * x.len()];
        t.jacobian(y.as_ref(), x, &mut flat);
        // Rows of no columns are rows too.
        (0..y.as_ref().len()).map(|k| flat[k * x.len()..][..x.len()].to_vec()).collect()
    })
}

/// Writes the values of `f` at `x` to `values`, and its Jacobian to `jacobian`, row by row.
///
/// # Panics
/// If the buffers are not of the size of the results.
#[track_caller]
pub fn jacobian_into<F: Fn(&[Var]) -> O, O: AsRef<[Var]>>(
    f: F,
    x: &[f64],
    values: &mut [f64],
    jacobian: &mut [f64],
) {
    // Checked here, because a closure would hide the caller.
    let outputs = with_inputs(x, |t, x| {
        let y = f(x);
        let m = y.as_ref().len();
        if m == values.len() && m * x.len() == jacobian.len() {
            for (value, y) in values.iter_mut().zip(y.as_ref()) {
                *value = y.inner();
            }
            t.jacobian(y.as_ref(), x, jacobian);
        }
        m
    });
    assert_eq!(outputs, values.len(), "jacobian: the buffer needs one place for each output");
    assert_eq!(
        outputs * x.len(),
        jacobian.len(),
        "jacobian: {outputs} rows of {} places are needed",
        x.len()
    );
}

/// How many columns of a Hessian are computed at once.
const WIDTH: usize = 4;

/// Runs `f` on variables whose values carry tangents, and hands its gradient, tangents included, to `take`.
fn gradient_with_tangents<T: Taped>(f: impl Fn(&[Var<T>]) -> Var<T>, x: &[T]) -> Vec<T> {
    with_idle_tape(|tape: &mut Tape<T>| {
        tape.record(|t| {
            let x = t.inputs(x);
            let y = f(&x);
            let mut g = vec![T::constant(0.0); x.len()];
            t.gradient(y, &x, &mut g);
            g
        })
    })
}

/// The Hessian of `f` at `x`: forward mode over the tape, four columns for each run.
///
/// ```
/// use pullback::scalar::{hessian, Real};
/// fn f<T: Real>(x: &[T]) -> T {
///     x[0] * x[0] * x[1]
/// }
/// assert_eq!(hessian(f, &[1.0, 3.0]), [[6.0, 2.0], [2.0, 0.0]]);
/// ```
pub fn hessian<F>(f: F, x: &[f64]) -> Vec<Vec<f64>>
where
    F: Fn(&[Var<Dual<f64, WIDTH>>]) -> Var<Dual<f64, WIDTH>>,
{
    let n = x.len();
    let mut flat = vec![0.0; n * n];
    hessian_into(f, x, &mut flat);
    (0..n).map(|k| flat[k * n..][..n].to_vec()).collect()
}

/// Writes the Hessian of `f` at `x` to `hessian`, row by row.
///
/// # Panics
/// If `hessian` has not `x.len()²` places.
#[track_caller]
pub fn hessian_into<F>(f: F, x: &[f64], hessian: &mut [f64])
where
    F: Fn(&[Var<Dual<f64, WIDTH>>]) -> Var<Dual<f64, WIDTH>>,
{
    let n = x.len();
    assert_eq!(hessian.len(), n * n, "hessian: the square of the number of inputs in places is needed");
    for start in (0..n).step_by(WIDTH) {
        let point: Vec<_> = (0..n)
            .map(|k| {
                if (start..start + WIDTH).contains(&k) {
                    Dual::variable(x[k], k - start)
                } else {
                    Dual::fixed(x[k])
                }
            })
            .collect();
        let g = gradient_with_tangents(&f, &point);
        for (row, g) in hessian.chunks_mut(n).zip(g) {
            for (h, t) in row[start..].iter_mut().zip(g.tangents()) {
                *h = t;
            }
        }
    }
}

/// The product of the Hessian of `f` at `x` with `v`.
///
/// ```
/// use pullback::scalar::{hvp, Real};
/// fn f<T: Real>(x: &[T]) -> T {
///     x[0] * x[0] * x[1]
/// }
/// assert_eq!(hvp(f, &[1.0, 3.0], &[0.0, 1.0]), [2.0, 0.0]);
/// ```
#[track_caller]
pub fn hvp<F: Fn(&[Var<Dual>]) -> Var<Dual>>(f: F, x: &[f64], v: &[f64]) -> Vec<f64> {
    let mut product = vec![0.0; x.len()];
    hvp_into(f, x, v, &mut product);
    product
}

/// Writes the product of the Hessian of `f` at `x` with `v` to `product`.
///
/// # Panics
/// If the lengths differ.
#[track_caller]
pub fn hvp_into<F: Fn(&[Var<Dual>]) -> Var<Dual>>(f: F, x: &[f64], v: &[f64], product: &mut [f64]) {
    assert!(
        x.len() == v.len() && x.len() == product.len(),
        "hvp: direction and result are as long as the point"
    );
    let point: Vec<Dual> = x.iter().zip(v).map(|(&x, &v)| Dual::new(x, [v])).collect();
    for (p, g) in product.iter_mut().zip(gradient_with_tangents(f, &point)) {
        *p = g.tangents()[0];
    }
}

/// The second derivative of `f` at `x` with respect to `x[i]` and `x[j]`, by hyper-dual numbers.
///
/// ```
/// use pullback::scalar::{second_partial, Real};
/// fn f<T: Real>(x: &[T]) -> T {
///     x[0] * x[0] * x[1]
/// }
/// assert_eq!(second_partial(f, &[1.0, 3.0], 0, 1), 2.0);
/// ```
pub fn second_partial<F: Fn(&[HyperDual]) -> HyperDual>(f: F, x: &[f64], i: usize, j: usize) -> f64 {
    let unit = |on: bool| f64::from(u8::from(on));
    let x: Vec<HyperDual> =
        x.iter().enumerate().map(|(k, &x)| HyperDual::hyper(x, unit(k == i), unit(k == j))).collect();
    f(&x).second()
}
