//! Complex numbers: types, and the convention of their gradients.

use super::*;
use pullback::{Complex, check, jvp, vjp};
use std::f64::consts::PI;

fn c(re: f64, im: f64) -> Complex<f64> {
    Complex::new(re, im)
}

fn numbers() -> Tensor {
    Tensor::from([c(0.6, -0.8), c(1.2, 0.5), c(-0.4, 0.3)])
}

fn all(t: &Tensor) -> Vec<Complex<f64>> {
    t.to_vec()
}

fn near(a: &Tensor, b: &[Complex<f64>]) {
    assert!(a.is_close(&Tensor::from(b), 1e-12, 1e-12), "{a} for {b:?}");
}

#[test]
fn types_meet_in_the_complex_type_that_holds_both() {
    use DType::*;
    let of = |d: DType| d.ones([2]);
    for (a, b, both) in
        [(C64, F32, C64), (C64, F64, C128), (I64, C64, C64), (BF16, C64, C64), (C128, C64, C128)]
    {
        assert_eq!((of(a) + of(b)).dtype(), both);
        assert_eq!((of(b) * of(a)).dtype(), both);
    }
    // A Rust number never changes a type, and a complex one does not fit a real tensor.
    assert_eq!((of(C64) * c(0.0, 1.0) + 1.0).dtype(), C64);
    assert!(message(|| of(F64) * c(0.0, 1.0)).contains("the number 0+1i does not fit a tensor of f64"));
}

#[test]
fn elements_come_and_go_as_they_are() {
    let z = numbers();
    assert_eq!((z.dtype(), z.shape()), (DType::C128, &[3][..]));
    assert_eq!(all(&z.flip(0))[0], c(-0.4, 0.3));
    assert_eq!(z.to_vec::<Complex<f32>>()[1], Complex::new(1.2f32, 0.5));
    assert_eq!(Tensor::full([2], c(1.0, 2.0)).cast(DType::C64).to_vec::<Complex<f64>>(), [c(1.0, 2.0); 2]);
    assert_eq!(all(&Tensor::from([1, 2]).cast(DType::C128)), [c(1.0, 0.0), c(2.0, 0.0)]);
    assert_eq!(all(&z.masked_fill(&z.eq(c(1.2, 0.5)), 7.0))[1], c(7.0, 0.0));
}

#[test]
fn what_needs_real_numbers_says_so() {
    let z = numbers();
    for (what, words) in [
        (message(|| z.cast(DType::F64)), "cast: a c128 does not become f64"),
        (message(|| z.to_vec::<f64>()), "use .real(), .imag() or .abs()"),
        (message(|| z.get(0).item()), "item: a complex number is no f64"),
        (message(|| z.lt(&z)), "lt: complex numbers have no order"),
        (message(|| z.max()), "max: complex numbers have no order"),
        (message(|| z.argmin(0)), "complex numbers have no order"),
        (message(|| z.tanh()), "tanh: takes no complex numbers, got c128"),
        (message(|| z.softmax(0)), "softmax: takes no complex numbers"),
        (message(|| z.var()), "var: takes no complex numbers"),
        (message(|| Tensor::complex(&z, &z)), "complex: takes no complex numbers"),
        (message(|| Tensor::arange(c(0.0, 0.0), c(3.0, 0.0), c(1.0, 0.0))), "complex numbers have no order"),
        (
            message(|| jacobian(|z: &Tensor| z.square())(&z)),
            "only floats have a Jacobian; take it of the real",
        ),
    ] {
        assert!(what.contains(words), "{what}\nshould say: {words}");
    }
}

#[test]
fn a_gradient_needs_a_real_result() {
    let e = message(|| grad(|z: &Tensor| z.square().sum())(&numbers()));
    assert!(e.contains("grad: the result is c128, and a gradient needs a real number; take .real()"), "{e}");
    let z = numbers().requires_grad();
    let e = z.square().sum().try_backward().unwrap_err().to_string();
    assert!(e.contains("a gradient needs a real number"), "{e}");
    // With a cotangent it is a pullback, and asks for none.
    z.square().backward_with(&Tensor::from([c(1.0, 0.0); 3]));
    near(&z.grad().unwrap(), &all(&(numbers() * 2.0).conj()));
}

/// `∂L/∂x + i ∂L/∂y`, the direction of steepest ascent.
#[test]
fn the_gradient_of_a_real_function_points_uphill() {
    let z = numbers();
    near(&grad(|z: &Tensor| z.abs().square().sum())(&z), &all(&(&z * 2.0)));
    near(&grad(|z: &Tensor| z.real().sum())(&z), &[c(1.0, 0.0); 3]);
    near(&grad(|z: &Tensor| z.imag().sum())(&z), &[c(0.0, 1.0); 3]);
    // A step along it makes the value larger.
    let f = |z: &Tensor| (z.exp() * z.conj()).real().sum();
    let uphill = &z + grad(f)(&z) * 1e-3;
    assert!(f(&uphill).item() > f(&z).item());
}

#[test]
fn a_holomorphic_function_pulls_back_by_the_conjugate_of_its_derivative() {
    let z = numbers();
    let g = Tensor::from([c(1.0, 2.0), c(-0.5, 0.1), c(0.0, 1.0)]);
    type Function = fn(&Tensor) -> Tensor;
    let pairs: [(Function, Function); 6] = [
        (|z| z.square(), |z| z * 2.0),
        (|z| z.exp(), |z| z.exp()),
        (|z| z.ln(), |z| z.recip()),
        (|z| z.sqrt(), |z| (z.sqrt() * 2.0).recip()),
        (|z| z.sin(), |z| z.cos()),
        (|z| z.recip(), |z| -z.square().recip()),
    ];
    for (f, slope) in pairs {
        near(&vjp(f, &z).1(&g), &all(&(&g * slope(&z).conj())));
        near(&jvp(f, &z, &g).1, &all(&(&g * slope(&z))));
    }
}

#[test]
fn a_real_leaf_in_a_complex_computation_gets_the_real_part() {
    let (z, x) = (numbers(), Tensor::from([1.0, 2.0, 3.0]));
    let g = grad(|x: &Tensor| (x * &z).abs().square().sum())(&x);
    assert_eq!(g.dtype(), DType::F64);
    assert!(g.is_close(&(z.abs().square() * &x * 2.0), 1e-12, 0.0));
    let turned = grad(|angle: &Tensor| Tensor::polar(1.0, angle).real())(&Tensor::scalar(PI / 6.0));
    assert!((turned.item() + 0.5).abs() < 1e-15);
}

#[test]
fn all_modes_and_orders_agree_with_differences() {
    let z = Tensor::from([[c(0.6, -0.8), c(1.2, 0.5)], [c(0.4, 0.3), c(0.9, -0.2)]]);
    let f = |z: &Tensor| (z.matmul(&z.conj()).exp() / (z + 2.0)).abs().sum() + z.angle().sin().sum();
    check::gradients(f, &z).unwrap();
    check::gradients(|z: &Tensor| z.matmul(z).ln() * z.abs(), &z).unwrap();
    check::gradients(f, &z.cast(DType::C64)).unwrap();
    let wrong = |z: &Tensor| z.conj().detach() * z;
    assert!(check::gradients(wrong, &z).unwrap_err().to_string().contains("reverse mode"));
}

#[test]
fn transforms_see_complex_numbers_as_they_see_real_ones() {
    let z = numbers();
    let f = |z: &Tensor| (z * z.conj() * z.exp()).real().sum();
    let expected = grad(f)(&z);
    near(&compile(grad(f)).call(&z), &all(&expected));
    let compiled = compile(f);
    near(&grad(|z: &Tensor| compiled.call(z))(&z), &all(&expected));
    near(&vmap(grad(f))(&z.unsqueeze(1)).squeeze(1), &all(&expected));
    near(&grad(|z: &Tensor| checkpoint(|z: &Tensor| f(z))(z))(&z), &all(&expected));
    let along = Tensor::from([c(1.0, 0.5), c(0.0, 1.0), c(-1.0, 0.2)]);
    let product = hvp(f, &z, &along);
    let reverse = vjp(grad(f), &z).1(&along);
    near(&product, &all(&reverse));
    let text = trace(f, &z).to_string();
    assert_eq!(text.parse::<Graph>().unwrap().to_string(), text);
}

#[test]
fn constants_of_graphs_keep_both_parts() {
    let odd = [c(1.0, -0.5), c(f64::NAN, f64::INFINITY), c(-1e-30, 2e30)];
    let (list, once) = (Tensor::from(odd), Tensor::full([3], c(-0.5, -2.0)));
    for t in [list.clone(), once.clone(), list.cast(DType::C64), once.cast(DType::C64)] {
        let graph = trace(|z: &Tensor| z + &t, &t.zeros_like());
        let text = graph.to_string();
        let again = text.parse::<Graph>().unwrap();
        assert_eq!(again.to_string(), text);
        let y = again.run(&[t.zeros_like()]).unwrap();
        assert_eq!(format!("{}", y[0]), format!("{t}"), "{text}");
    }
}

#[test]
fn special_functions_of_special_numbers() {
    // By the larger part first: squares of these would overflow or vanish.
    near(&(Tensor::scalar(c(1e200, 1e200)) / Tensor::scalar(c(1e200, 0.0))).reshape([1]), &[c(1.0, 1.0)]);
    near(&Tensor::from([c(1e-200, 1e-200)]).recip(), &[c(5e199, -5e199)]);
    near(&Tensor::from([c(-4.0, 0.0), c(-4.0, -0.0)]).sqrt(), &[c(0.0, 2.0), c(0.0, -2.0)]);
    near(&Tensor::from([c(-1.0, 0.0)]).ln(), &[c(0.0, PI)]);
    assert_eq!(Tensor::from([-2.0, 3.0]).angle().to_vec::<f64>(), [PI, 0.0]);
    // The origin is a kink of both.
    let zero = Tensor::from([c(0.0, 0.0)]);
    near(&grad(|z: &Tensor| z.abs().sum())(&zero), &[c(0.0, 0.0)]);
    near(&grad(|z: &Tensor| z.angle().sum())(&zero), &[c(0.0, 0.0)]);
    near(&grad(|z: &Tensor| z.norm())(&zero), &[c(0.0, 0.0)]);
    assert_eq!(Tensor::from([c(3.0, 4.0)]).norm().item(), 5.0);
}

#[test]
fn reductions_and_products() {
    let z = Tensor::from([[c(1.0, 2.0), c(3.0, -1.0)], [c(0.0, 1.0), c(2.0, 2.0)]]);
    assert_eq!(all(&z.sum()), [c(6.0, 4.0)]);
    assert_eq!(all(&z.t().sum_axes(0)), [c(4.0, 1.0), c(2.0, 3.0)]);
    assert_eq!(all(&z.mean()), [c(1.5, 1.0)]);
    assert_eq!(all(&z.get(0).prod()), [c(5.0, 5.0)]);
    assert_eq!(all(&Tensor::full([3, 2], c(1.0, -2.0)).sum_axes(0)), [c(3.0, -6.0); 2]);
    assert_eq!(all(&z.matmul(&z)), [c(-2.0, 7.0), c(13.0, 9.0), c(-4.0, 3.0), c(1.0, 11.0)]);
    assert_eq!(
        all(&z.t().matmul(&z.flip(1))),
        all(&z.t().contiguous_copy().matmul(&z.flip(1).contiguous_copy()))
    );
}

trait Copied {
    fn contiguous_copy(&self) -> Tensor;
}

impl Copied for Tensor {
    fn contiguous_copy(&self) -> Tensor {
        Tensor::from_slice(&self.to_vec::<Complex<f64>>(), self.shape())
    }
}

#[test]
fn printed_as_numpy_does() {
    let z = Tensor::from([c(1.5, -2.0), c(0.0, 0.25)]);
    assert_eq!(z.to_string(), "[1.5-2.j   0. +0.25j]");
    assert_eq!(Tensor::scalar(c(1.0, -0.5)).to_string(), "1.0-0.5j");
    assert_eq!(format!("{z:.1}"), "[1.5-2.j  0. +0.2j]");
}

#[test]
fn saved_where_the_format_has_the_type() {
    let z = numbers().cast(DType::C64);
    let bytes = pullback::save::to_bytes(&z).unwrap();
    let back = pullback::save::from_bytes(&z.zeros_like(), &bytes).unwrap();
    assert_eq!(back.to_vec::<Complex<f32>>(), z.to_vec::<Complex<f32>>());
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.tensors()[0].1.dtype(), safetensors::Dtype::C64);
    let e = pullback::save::to_bytes(&numbers()).unwrap_err().to_string();
    assert!(e.contains("safetensors has no type for c128; save .real() and .imag()"), "{e}");
}
