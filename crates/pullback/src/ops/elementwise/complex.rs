//! Rows of the table on complex numbers: those that are holomorphic and listed here.
//!
//! Their partial derivatives are those of the row, and a rule multiplies by them: by the partial itself in forward mode, and by its conjugate
//! in reverse mode.
//!
//! Rejected: complex operations as compositions over real and imaginary parts, which need no rules but seven passes over memory for a
//! product; and complex numbers as one more `Number` of the table, which would need all functions of it.

use super::*;
use crate::dtype::with_parts;
use crate::kernels::complex::{Part, quotient};
use bytemuck::Pod;
use num_complex::Complex;

/// A function of complex numbers that is worth a call for each element.
enum Function {
    One(fn(Complex<f64>) -> Complex<f64>),
    Two(fn(Complex<f64>, Complex<f64>) -> Complex<f64>),
}

/// Functions computed in double precision.
fn function(name: &str) -> Option<Function> {
    use Function::*;
    Some(match name {
        "div" => Two(quotient),
        "recip" => One(|z| quotient(Complex::new(1.0, 0.0), z)),
        "exp" => One(|z| z.exp()),
        "ln" => One(|z| z.ln()),
        "sqrt" => One(|z| z.sqrt()),
        "sin" => One(|z| z.sin()),
        "cos" => One(|z| z.cos()),
        "sinh" => One(|z| z.sinh()),
        "cosh" => One(|z| z.cosh()),
        _ => return None,
    })
}

/// Arithmetic, which has loops of its own.
const ARITHMETIC: [&str; 6] = ["neg", "add", "sub", "mul", "gate", "square"];

/// Whether a row has a version on complex numbers.
pub(super) fn takes(name: &str) -> bool {
    ARITHMETIC.contains(&name) || function(name).is_some()
}

pub(super) fn run(name: &str, x: &[Value], out: &mut Output) {
    with_parts!(x[0].dtype, T => eval::<T>(name, x, out))
}

fn eval<T: Part>(name: &str, x: &[Value], out: &mut Output) {
    type C<T> = Complex<T>;
    // Written out: the operators of `Complex` ask for more traits than the parts of tensors have.
    let product = |a: C<T>, b: C<T>| C::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
    let is_zero = |z: C<T>| z.re == T::ZERO && z.im == T::ZERO;
    match name {
        "neg" => one(x, out, |z: C<T>| C::new(-z.re, -z.im)),
        "square" => one(x, out, |z: C<T>| product(z, z)),
        "add" => two(x, out, |a: C<T>, b: C<T>| C::new(a.re + b.re, a.im + b.im)),
        "sub" => two(x, out, |a: C<T>, b: C<T>| C::new(a.re - b.re, a.im - b.im)),
        "mul" => two(x, out, product),
        "gate" => two(x, out, |a: C<T>, b: C<T>| match () {
            _ if is_zero(a) => a,
            _ if is_zero(b) => b,
            _ => product(a, b),
        }),
        other => match function(other) {
            Some(Function::One(f)) => one(x, out, |z: C<T>| T::rounded(f(T::double(z)))),
            Some(Function::Two(f)) => two(x, out, |a: C<T>, b| T::rounded(f(T::double(a), T::double(b)))),
            None => unreachable!("{other} was called with complex numbers: `infer` should have refused it"),
        },
    }
}

fn one<C: Pod + Send + Sync>(x: &[Value], out: &mut Output, f: impl Fn(C) -> C + Sync + Copy) {
    match x[0].splat::<C>() {
        Some(z) => out.splat(f(z)),
        None => map::map_with(x[0].view::<C>(), out.fill::<C>(), f),
    }
}

fn two<C: Pod + Send + Sync>(x: &[Value], out: &mut Output, f: impl Fn(C, C) -> C + Sync + Copy) {
    match (x[0].splat::<C>(), x[1].splat::<C>()) {
        (Some(a), Some(b)) => out.splat(f(a, b)),
        _ => map::zip_with(x[0].view::<C>(), x[1].view::<C>(), out.fill::<C>(), f),
    }
}
