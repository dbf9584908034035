//! Transforms within transforms.

use super::*;

fn cube(x: &Tensor) -> Tensor {
    x * x * x
}

#[test]
fn reverse_over_reverse_to_the_fourth_order() {
    assert_eq!(slope(grad(cube), 2.0), 12.0);
    assert_eq!(slope(grad(grad(cube)), 2.0), 6.0);
    assert_eq!(slope(grad(grad(grad(cube))), 2.0), 0.0);
}

#[test]
fn forward_over_reverse_and_reverse_over_forward() {
    let x = scalar(2.0);
    let (first, second) = jvp(grad(cube), &x, &scalar(1.0));
    assert_eq!((first.item(), second.item()), (12.0, 12.0));
    let second = grad(|x: &Tensor| jvp(cube, x, &scalar(1.0)).1)(&x);
    assert_eq!(second.item(), 12.0);
    let second = jvp(|x: &Tensor| jvp(cube, x, &scalar(1.0)).1, &x, &scalar(1.0)).1;
    assert_eq!(second.item(), 12.0);
}

#[test]
fn three_deep_in_every_order() {
    let one = || scalar(1.0);
    let reverse = |f: &dyn Fn(&Tensor) -> Tensor, x: &Tensor| vjp(f, x).1(&one());
    let forward = |f: &dyn Fn(&Tensor) -> Tensor, x: &Tensor| jvp(f, x, &one()).1;
    let f = |x: &Tensor| x.sin() * x;
    // (x sin x)''' = -3 sin x - x cos x
    let x = 0.7f64;
    let expected = -3.0 * x.sin() - x * x.cos();
    type Mode<'a> = &'a dyn Fn(&dyn Fn(&Tensor) -> Tensor, &Tensor) -> Tensor;
    let modes: [Mode; 2] = [&reverse, &forward];
    for a in modes {
        for b in modes {
            for c in modes {
                let first = |x: &Tensor| c(&f, x);
                let second = |x: &Tensor| b(&first, x);
                let third = a(&second, &scalar(x)).item();
                assert!((third - expected).abs() < 1e-14, "{third}");
            }
        }
    }
}

#[test]
fn a_pullback_of_a_pullback() {
    let f = |x: &Tensor| x.square();
    let g = Tensor::from([1.0, 10.0]);
    let (first, pull) = vjp(|x: &Tensor| vjp(f, x).1(&g), &Tensor::from([2.0, 3.0]));
    assert_eq!(first.to_vec::<f64>(), [4.0, 60.0]);
    assert_eq!(pull(&Tensor::from([1.0, 1.0])).to_vec::<f64>(), [2.0, 20.0]);
    assert_eq!(pull(&Tensor::from([0.0, 1.0])).to_vec::<f64>(), [0.0, 20.0], "it can be called again");
}

#[test]
fn a_pullback_may_be_differentiated_after_its_function_has_returned() {
    let (_, pull) = vjp(|x: &Tensor| x.square(), &scalar(3.0));
    // Linear in its cotangent, with slope 2x.
    assert_eq!(slope(|g| pull(g), 5.0), 6.0);
}

/// Siskind and Pearlmutter: the inner derivative of `x * (d/dy)(x + y)` must not see the outer perturbation.
#[test]
fn perturbations_are_not_confused_in_reverse() {
    let f = |x: &Tensor| x * grad(|y: &Tensor| x + y)(&scalar(1.0));
    assert_eq!(slope(f, 1.0), 1.0);
}

#[test]
fn perturbations_are_not_confused_forward() {
    let f = |x: &Tensor| x * jvp(|y: &Tensor| x + y, &scalar(1.0), &scalar(1.0)).1;
    assert_eq!(jvp(f, &scalar(1.0), &scalar(1.0)).1.item(), 1.0);
}

#[test]
fn perturbations_are_not_confused_in_mixed_modes() {
    let f = |x: &Tensor| x * jvp(|y: &Tensor| x * y, &scalar(1.0), &scalar(1.0)).1;
    assert_eq!(slope(f, 3.0), 6.0);
    let f = |x: &Tensor| x * grad(|y: &Tensor| x * y)(&scalar(1.0));
    assert_eq!(jvp(f, &scalar(3.0), &scalar(1.0)).1.item(), 6.0);
}

/// The other classic: a derivative that returns a function of the outer variable, applied later.
#[test]
fn an_escaped_value_of_an_ended_transform_is_a_constant() {
    let escaped = Mutex::new(None);
    let outer = slope(
        |x| {
            let y = x.square();
            *escaped.lock().unwrap() = Some(y.clone());
            y
        },
        3.0,
    );
    assert_eq!(outer, 6.0);
    let y = escaped.lock().unwrap().take().unwrap();
    assert_eq!(slope(|x| x * &y, 2.0), 9.0);
}
