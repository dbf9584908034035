//! Zero cotangents win over infinities, and the edges of domains.

use super::*;
use pullback::custom_rule;

#[test]
fn a_branch_not_taken_leaks_nothing() {
    let guarded: [fn(&Tensor) -> Tensor; 5] =
        [|x| x.sqrt(), |x| x.ln(), |x| x.recip(), |x| x.pow(-1.5), |x| 1.0 / x];
    for f in guarded {
        let g = |x: &Tensor| Tensor::where_(&x.gt(0.0), f(x), 0.0);
        assert_eq!(slope(g, 0.0), 0.0);
        assert_eq!(slope(grad(g), 0.0), 0.0, "of second order too");
        assert_eq!(jvp(g, &scalar(0.0), &scalar(1.0)).1.item(), 0.0);
        assert_eq!(hvp(g, &scalar(0.0), &scalar(1.0)).item(), 0.0, "forward over reverse");
    }
}

/// A partial derivative of zero stops an infinite cotangent, as it stops a tangent before an infinite slope.
#[test]
fn nothing_flows_where_nothing_moves() {
    type Function = fn(&Tensor) -> Tensor;
    let still: [(Function, f64); 5] = [
        (|x| x.relu().sqrt(), -1.0),
        (|x| (x * 0.0).sqrt(), 3.0),
        (|x| x.square().sqrt(), 0.0),
        (|x| x.step().ln(), -2.0),
        (|x| x.maximum((x - 1.0).ln()), 1.5),
    ];
    for (f, at) in still {
        let forward = jvp(f, &scalar(at), &scalar(1.0)).1.item();
        assert_eq!(slope(f, at), forward, "at {at}");
        assert!(forward.is_finite(), "at {at}: {forward}");
    }
}

#[test]
fn undefined_domains_give_what_ieee_gives() {
    assert!(scalar(-1.0).sqrt().item().is_nan());
    assert!(scalar(-1.0).ln().item().is_nan());
    assert_eq!(scalar(0.0).ln().item(), f64::NEG_INFINITY);
    assert_eq!(slope(|x| x.sqrt(), 0.0), f64::INFINITY);
    assert_eq!(slope(|x| x.ln(), 0.0), f64::INFINITY);
    assert!(slope(|x| x.sqrt(), -1.0).is_nan());
    assert_eq!((scalar(1.0) / 0.0).item(), f64::INFINITY);
}

#[test]
fn powers_at_their_edges() {
    assert_eq!(slope(|x| x.pow(2.0), -3.0), -6.0);
    assert_eq!(slope(|x| x.pow(0.0), 0.0), 0.0);
    assert_eq!(slope(|x| x.pow(1.0), 0.0), 1.0);
    assert_eq!(slope(|b| scalar(0.0).pow(b), 2.0), 0.0);
}

#[test]
fn anomaly_mode_names_the_operation_and_the_line() {
    let x = leaf(0.0);
    let line = line!() + 1;
    let y = x.sqrt();
    let z = y * 2.0;
    let e = detect_anomaly(|| z.try_backward()).unwrap_err();
    assert_eq!((e.kind(), e.op()), (ErrorKind::NotFinite, Some("sqrt")));
    assert_eq!(e.location().unwrap().line(), line);
    assert!(e.to_string().contains(file!()) && e.to_string().contains("inf"), "{e}");
}

/// Methods that are made of other operations, or reduce, still stand at the line of their caller.
#[test]
fn anomaly_mode_names_lines_of_the_user_only() {
    let x = Tensor::from([f64::INFINITY, f64::INFINITY]).requires_grad();
    let steps: [(u32, Tensor); 6] = [
        (line!(), (Tensor::ones([2, 2]) * &x).sqrt().sum() * f64::INFINITY),
        (line!(), x.logsumexp()),
        (line!(), x.std()),
        (line!(), x.prod_axes(0).sqrt().recip().sqrt()),
        (line!(), Tensor::stack(&[&x, &x], 0).softmax(0).sum()),
        (line!(), x.split(&[1, 1], 0)[0].sin().sum()),
    ];
    for (line, y) in steps {
        let e = detect_anomaly(|| y.try_backward()).unwrap_err();
        let at = e.location().unwrap();
        assert!(at.file() == file!() && at.line() == line, "{e}");
    }
}

#[test]
fn anomaly_mode_lets_finite_gradients_pass_and_ends() {
    let x = leaf(4.0);
    detect_anomaly(|| x.sqrt().backward());
    assert_eq!(x.grad().unwrap().item(), 0.25);
    let zero = leaf(0.0);
    zero.sqrt().backward();
    assert_eq!(zero.grad().unwrap().item(), f64::INFINITY, "outside it IEEE rules again");
}

#[test]
fn anomaly_mode_ends_with_a_panic_too() {
    let _ = std::panic::catch_unwind(|| detect_anomaly(|| panic!("in user code")));
    let zero = leaf(0.0);
    assert!(zero.sqrt().try_backward().is_ok());
}

/// What an anomaly names: the operation, and the line.
#[track_caller]
fn named(e: pullback::Error) -> (&'static str, u32) {
    assert_eq!(e.kind(), ErrorKind::NotFinite, "{e}");
    let at = e.location().unwrap();
    assert_eq!(at.file(), file!());
    (e.op().unwrap(), at.line())
}

#[test]
fn anomaly_mode_was_silent_on_compiled_functions() {
    let line = line!() + 1;
    let root = |x: &Tensor| x.sqrt() * 2.0;
    let f = compile(root);
    let (x, zero) = (leaf(0.0), scalar(0.0));
    let y = f.call(&x);
    assert_eq!(named(detect_anomaly(|| y.try_backward()).unwrap_err()), ("sqrt", line));
    let through = || detect_anomaly(|| grad(|x: &Tensor| f.call(x))(&zero));
    let e = message(through);
    assert!(e.starts_with(&format!("{}:{line}:", file!())) && e.contains(" sqrt: "), "{e}");

    let both = compile(value_and_grad(root));
    assert_eq!(both.call(&zero).1.item(), f64::INFINITY, "outside it IEEE rules");
    assert_eq!(named(detect_anomaly(|| both.try_call(&zero)).unwrap_err()), ("sqrt", line));
    let update = compile(|x: &Tensor| x - grad(root)(x)).donate(0);
    assert_eq!(named(detect_anomaly(|| update.try_call_owned(zero.clone())).unwrap_err()), ("sqrt", line));
    let inner = compile(root);
    let outer = compile(grad(|x: &Tensor| inner.call(x)));
    assert_eq!(named(detect_anomaly(|| outer.try_call(&zero)).unwrap_err()), ("sqrt", line));
}

#[test]
fn anomaly_mode_lets_compiled_functions_return_what_is_finite() {
    let f = compile(value_and_grad(|x: &Tensor| x.sqrt() * 2.0));
    let (y, g) = detect_anomaly(|| f.call(&scalar(4.0)));
    assert_eq!((y.item(), g.item()), (4.0, 0.5));
    // A value that is not finite is not a cotangent, here as elsewhere.
    assert_eq!(detect_anomaly(|| compile(|x: &Tensor| x.ln()).call(&scalar(0.0))).item(), f64::NEG_INFINITY);
}

#[test]
fn anomaly_mode_was_silent_on_custom_rules() {
    let rule = custom_rule(|x: &Tensor| x.sqrt()).pullback(|_, y, g| g / (y * 2.0));
    let x = leaf(0.0);
    let line = line!() + 1;
    let y = rule.call(&x);
    let e = detect_anomaly(|| y.try_backward()).unwrap_err();
    assert!(e.to_string().contains("cotangent of input 0") && e.to_string().contains("inf"), "{e}");
    assert_eq!(named(e), ("custom_rule", line));
    let line = line!() + 1;
    let inside = compile(move |x: &Tensor| rule.call(x) + 1.0);
    let y = inside.call(&x);
    assert_eq!(named(detect_anomaly(|| y.try_backward()).unwrap_err()), ("custom_rule", line));
}
