//! Whatever goes wrong, the first line that a user reads of it is a line of theirs.
//!
//! A function that is called directly panics at the line of the call. Where Rust has no way to hand a line on (a function that a transform
//! returned, `Display`), the panic is of the library, but its message begins with the user's line.

use pullback::scalar::{self, Dual, Function, Real, Symbol, Tape, Var, sparse};
use pullback::{
    Bound, Executable, Policy, Schedule, associative_scan, check, checkpoint_with, custom_rule, fori,
    gauss_newton_vp, implicit, linearize, map_over, ode, prelude::*, scan_with, switch, taylor, transpose,
    value_and_grad_aux, vmap_axes, while_loop_with,
};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Where the last panic of this thread was, while somebody wants to know.
    static SEEN: RefCell<Option<Option<(String, u32)>>> = const { RefCell::new(None) };
}

/// The file and line of a panic, and its message.
fn panic_of(f: impl FnOnce()) -> (String, u32, String) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |info| {
            let at = info.location().expect("a panic has a location");
            let wanted = SEEN.with_borrow_mut(|seen| {
                seen.as_mut().map(|seen| *seen = Some((at.file().into(), at.line()))).is_some()
            });
            if !wanted {
                others(info);
            }
        }));
    });
    SEEN.set(Some(None));
    let outcome = catch_unwind(AssertUnwindSafe(f));
    let Some((file, line)) = SEEN.take().flatten() else { return ("".into(), 0, "no panic".into()) };
    let payload = outcome.expect_err("the hook has seen a panic");
    let said = match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => (*other.downcast::<&str>().expect("a panic with a message")).into(),
    };
    (file, line, said)
}

/// A bad use, and where it stands in this file.
struct Row {
    name: &'static str,
    line: u32,
    /// Whether the function is called directly, so that the panic itself is at the user's line.
    direct: bool,
    run: Box<dyn FnOnce()>,
}

macro_rules! direct {
    ($name:literal, $bad:expr) => {
        Row {
            name: $name,
            line: line!(),
            direct: true,
            run: Box::new(move || {
                let _ = $bad;
            }),
        }
    };
}

macro_rules! returned {
    ($name:literal, $bad:expr) => {
        Row {
            name: $name,
            line: line!(),
            direct: false,
            run: Box::new(move || {
                let _ = $bad;
            }),
        }
    };
}

/// Runs the rows; a row ends where the next begins.
fn check_lines(rows: Vec<Row>, end: u32) {
    let mut ends: Vec<u32> = rows.iter().skip(1).map(|r| r.line).collect();
    ends.push(end);
    let mut wrong = Vec::new();
    for (row, end) in rows.into_iter().zip(ends) {
        let own = row.line..end;
        let (file, line, said) = panic_of(row.run);
        let at_line = file == file!() && own.contains(&line);
        let says = own.clone().any(|l| said.starts_with(&format!("{}:{l}:", file!())));
        let found = at_line || (!row.direct && says);
        if !found || said.contains("src/") {
            wrong.push(format!("{} (line {}): {file}:{line}: {said}", row.name, row.line));
        }
    }
    assert!(wrong.is_empty(), "{} without the user's line:\n{}", wrong.len(), wrong.join("\n"));
}

fn zeros<const N: usize>(shape: [usize; N]) -> Tensor {
    Tensor::zeros(shape)
}

/// A function of a vector that is not a scalar.
fn vector(x: &Tensor) -> Tensor {
    x.square()
}

#[derive(Clone, Tree)]
struct Model {
    w: Tensor,
    more: Vec<Tensor>,
}

fn model(n: usize) -> Model {
    Model { w: zeros([2]), more: vec![zeros([1]); n] }
}

#[rustfmt::skip] // a row is a line
#[test]
fn derivatives_fail_at_the_users_line() {
    let x = || zeros([2]);
    let ints = || Tensor::from([1i64, 2]);
    check_lines(vec![
        returned!("grad of a vector", grad(vector)(&x())),
        returned!("grad of integers", grad(|x: &Tensor| x.sum())(&ints())),
        returned!("grad of nothing", grad(|_: &Vec<Tensor>| zeros([1]))(&Vec::new())),
        returned!("value_and_grad", value_and_grad(vector)(&x())),
        returned!("value_and_grad_aux", value_and_grad_aux(|x: &Tensor| (vector(x), ()))(&x())),
        direct!("vjp", vjp(vector, &ints())),
        returned!("vjp's pullback", vjp(vector, &x()).1(&zeros([3]))),
        returned!("vjp's pullback of fewer", vjp(|x: &Tensor| vec![x.clone()], &x()).1(&Vec::new())),
        direct!("jvp", jvp(vector, &x(), &zeros([3]))),
        returned!("hvp of a vector", hvp(vector, &x(), &x())),
        direct!("hvp along another shape", hvp(|x: &Tensor| x.square().sum(), &x(), &zeros([3]))),
        direct!("gauss_newton_vp", gauss_newton_vp(vector, |y: &Tensor| y.sum(), &x(), &zeros([3]))),
        returned!("gauss_newton_vp, loss", gauss_newton_vp(vector, vector, &x(), &x())),
        returned!("jacobian", jacobian(vector)(&ints())),
        returned!("jacobian of an index", jacobian(|x: &Tensor| x.argmax(0))(&x())),
        returned!("jacfwd", jacfwd(vector)(&ints())),
        returned!("jacrev", jacrev(vector)(&ints())),
        returned!("hessian", hessian(vector)(&x())),
        direct!("linearize", linearize(vector, &ints())),
        returned!("linearize's pushforward", linearize(vector, &x()).1(&zeros([3]))),
        direct!("transpose", transpose(|x: &Tensor| x + 1.0, &x())),
        returned!("transpose's result", transpose(|x: &Tensor| x * 2.0, &x())(&zeros([3]))),
        direct!("taylor", taylor(vector, &x(), &zeros([3]), 2)),
        direct!("backward", x().requires_grad().square().backward()),
        direct!("backward of a constant", zeros([1]).backward()),
        direct!("backward_with", x().requires_grad().backward_with(&zeros([3]))),
        direct!("into_backward", x().into_backward()),
        direct!("backward_to", x().requires_grad().sum().backward_to(&[&x()])),
        direct!("grad_of", grad_of(&x().requires_grad().sum(), &[&x()])),
        direct!("requires_grad", ints().requires_grad()),
        direct!("retain_grad", x().retain_grad()),
        direct!("on_grad", x().on_grad(|_| None)),
        returned!("an operation in grad", grad(|x: &Tensor| x.matmul(&zeros([7, 7])).sum())(&x())),
        returned!("vmap of a scalar", vmap(vector)(&Tensor::scalar(1.0))),
        returned!("vmap of two lengths", vmap(|(a, b): &(Tensor, Tensor)| a + b)(&(x(), zeros([3])))),
        returned!("vmap_axes", vmap_axes(vector, &[Some(5)], 0)(&x())),
        returned!("vmap_axes, output", vmap_axes(vector, &[Some(0)], 7)(&x())),
        returned!("vmap_axes, too many", vmap_axes(vector, &[Some(0), None], 0)(&x())),
        returned!("grad of vmap", grad(|x: &Tensor| vmap(|x: &Tensor| x.sum())(x))(&zeros([2, 2]))),
        returned!("custom rule", grad(|x: &Tensor| custom_rule(vector).pullback(|_, _, _| zeros([9])).call(x).sum())(&x())),
        returned!("implicit::root", implicit::root(|_: &Tensor, x: &Tensor| x.square() + 1.0, &x(), &x())),
        direct!("implicit::fixed_point", implicit::fixed_point(|_: &Tensor, x: &Tensor| x + 1.0, &x(), &x())),
        returned!("implicit::argmin", implicit::argmin(|_: &Tensor, x: &Tensor| vector(x), &x(), &x())),
        direct!("implicit shapes", implicit::root(|_: &Tensor, _: &Tensor| zeros([3]), &x(), &x())),
        returned!("check::gradients", check::gradients(|x: &Tensor| x.sum(), &ints())),
    ], line!());
}

#[rustfmt::skip] // a row is a line
#[test]
fn trees_loops_and_compiled_functions_fail_at_the_users_line() {
    let x = || zeros([2]);
    let yes = || Tensor::from(true);
    check_lines(vec![
        direct!("zip", model(1).zip(&model(2), |a, _| a.clone())),
        direct!("try_zip", model(1).try_zip(&model(2), |a, _| a.clone()).unwrap()),
        direct!("same_structure", model(1).same_structure(&model(2)).unwrap()),
        direct!("unflatten", model(1).unflatten(vec![]).unwrap()),
        direct!("cond's condition", cond(&x(), |x: &Tensor| x.clone(), |x| x.clone(), &x())),
        returned!("cond in a trace", trace(|x: &Tensor| cond(&x.sum().gt(0.0), |x| x.clone(), |x| x.sum(), x), &x())),
        returned!("cond under vmap", vmap(|x: &Tensor| cond(&x.gt(0.0), |x| x.clone(), |_| zeros([5]), x))(&x())),
        direct!("switch", switch(&x(), &[&|x: &Tensor| x.clone()], &x())),
        direct!("scan", scan(|_: &Tensor, _: &Tensor| (zeros([5]), ()), &x(), &zeros([3, 2]))),
        direct!("scan over two lengths", scan(|c: &Tensor, _: &(Tensor, Tensor)| (c.clone(), ()), &x(), &(zeros([3]), zeros([4])))),
        direct!("fori", fori(2, |_, _: &Tensor| zeros([5]), &x())),
        direct!("map_over", map_over(|x: &Tensor| x.clone(), &Tensor::scalar(1.0))),
        direct!("associative_scan", associative_scan(|a: &Tensor, _: &Tensor| a.sum(), &zeros([4, 2]))),
        direct!("while_loop", while_loop(|_: &Tensor| Tensor::from(true), |_| zeros([5]), &x())),
        direct!("while_loop's condition", while_loop(|x: &Tensor| x.clone(), |x| x.clone(), &x())),
        direct!("while_loop_with", while_loop_with(Bound::at_most(3), |_: &Tensor| Tensor::from(true), |x| x.clone(), &x())),
        direct!("scan_with", scan_with(Schedule::All, |_: &Tensor, _: &()| (zeros([5]), ()), &x(), 3)),
        direct!("scan_with, rerun", scan_with(Schedule::All.rerun(), |_: &Tensor, _: &()| (zeros([5]), ()), &x(), 3)),
        direct!("while_loop_with a schedule", while_loop_with(Bound::at_most(3).schedule(Schedule::Online { slots: 2 }), |_: &Tensor| Tensor::from(true), |_: &Tensor| zeros([5]), &x())),
        direct!("while_loop_with a schedule, rerun", while_loop_with(Bound::at_most(3).schedule(Schedule::Online { slots: 2 }.rerun()), |_: &Tensor| Tensor::from(true), |_: &Tensor| zeros([5]), &x())),
        direct!("no slots", scan_with(Schedule::Binomial { slots: 0 }, |c: &Tensor, _: &()| (c.clone(), ()), &x(), 3)),
        returned!("print an input", checkpoint(|x: &Tensor| { let _ = format!("{x}"); x.clone() })(&x())),
        returned!("print a value", checkpoint(|x: &Tensor| { let y = x.exp(); let _ = format!("{y}"); y })(&x())),
        direct!("print in compile", compile(|x: &Tensor| { let _ = format!("{x}"); x.clone() }).call(&x())),
        direct!("print in trace", trace(|x: &Tensor| { let _ = format!("{x}"); x.clone() }, &x())),
        direct!("read in trace", trace(|x: &Tensor| { let _ = x.item(); x.clone() }, &Tensor::scalar(1.0))),
        returned!("read in vmap", vmap(|x: &Tensor| { let _ = x.item(); x.clone() })(&x())),
        direct!("compile", compile(|x: &Tensor| x.matmul(&zeros([7, 7]))).call(&x())),
        direct!("compile(grad)", compile(grad(vector)).call(&x())),
        direct!("compile(vmap)", compile(vmap(vector)).call(&Tensor::scalar(1.0))),
        direct!("compile, owned", compile(grad(vector)).call_owned(x())),
        direct!("compile, donated", compile(vector).donate(5).call_owned(x())),
        direct!("profile", compile(grad(vector)).profile(&x()).unwrap()),
        direct!("executable", compile(grad(vector)).executable(&x()).unwrap()),
        direct!("graph", compile(grad(vector)).graph(&x()).unwrap()),
        direct!("Graph::run", trace(vector, &x()).run(&[zeros([3])]).unwrap()),
        direct!("Executable::run", Executable::new(trace(vector, &x())).unwrap().run(&[zeros([3])]).unwrap()),
        returned!("checkpoint", checkpoint(|x: &Tensor| x.matmul(&zeros([7, 7])))(&x())),
        returned!("checkpoint_with, rerun", checkpoint_with(Policy::rerun(), |x: &Tensor| x.matmul(&zeros([7, 7])))(&x())),
        returned!("checkpoint_with, offloaded", checkpoint_with(Policy::rerun().offload("/dev/null/none"), |x: &Tensor| x * 2.0)(&Tensor::from([1.0, 2.0]).requires_grad().exp())),
        returned!("rk4", ode::rk4(|_, _: &Tensor, _: &()| zeros([3]), &(), &x(), 0.0, 1.0, 4)),
        returned!("rk4_with", ode::rk4_with(Schedule::All, |_, _: &Tensor, _: &()| zeros([3]), &(), &x(), 0.0, 1.0, 4)),
        direct!("dopri5", ode::Dopri5::default().solve(|_, y: &Tensor, _: &()| y.clone(), &(), &x(), 0.0, f64::NAN).err().map(|e| panic!("{e}"))),
        returned!("dopri5, shape", ode::Dopri5::default().solve(|_, _: &Tensor, _: &()| zeros([3]), &(), &x(), 0.0, 1.0).err().map(|e| panic!("{e}"))),
        returned!("adjoint", ode::adjoint(&ode::Dopri5::default(), |_, _: &Tensor, _: &()| zeros([3]), &(), &x(), 0.0, 1.0)),
        direct!("compile(adjoint)", compile(|x: &Tensor| ode::adjoint(&ode::Dopri5::default(), |_, y: &Tensor, _: &()| -y, &(), x, 0.0, f64::NAN)).call(&x())),
        direct!("rows of two lengths", Tensor::from(vec![vec![1.0, 2.0], vec![3.0]])),
        direct!("randn", Tensor::randn(Key::new(1), [usize::MAX, 2], DType::F64)),
        direct!("uniform", Tensor::uniform(Key::new(1), [1], DType::I32)),
        direct!("randint", Tensor::randint(Key::new(1), [1], 3, 3)),
        direct!("bernoulli", Tensor::bernoulli(Key::new(1), [1], 2.0)),
        direct!("slice", x().slice(7)),
        direct!("item_at", x().item_at([0, 0])),
        direct!("index", x().index([9])),
        direct!("index by several", zeros([2, 2]).index(([0], [9]))),
        direct!("at.set", x().at([9]).set(1.0)),
        direct!("at.add", x().at(0).add(zeros([5]))),
        direct!("take", x().take(0, &Tensor::from([[9]]))),
        direct!("scatter_max", x().scatter_max(0, &Tensor::from([9]), 1.0)),
        direct!("masked_select in trace", trace(|x: &Tensor| x.masked_select(&x.gt(0.0)), &x())),
        direct!("tril", x().tril(0)),
        direct!("unfold", x().unfold(0, 99, 1)),
        direct!("pad", x().pad(&[], pullback::PadMode::Edge)),
        direct!("chunk", x().chunk(0, 0)),
        direct!("vstack", Tensor::vstack(&[zeros([2, 2]), zeros([2, 3])])),
        direct!("add", x() + zeros([3])),
        direct!("add_assign", { let mut y = x(); y += zeros([3]); yes() }),
        direct!("slice_assign", { let mut y = x(); y.slice_assign(0, zeros([5])); y }),
        direct!("load", pullback::load(&model(1), "/nowhere/x").map(|m: Model| m.w).unwrap()),
    ], line!());
}

fn square<T: Real>(x: &[T]) -> T {
    x[0] * x[1]
}

#[rustfmt::skip] // a row is a line
#[test]
fn scalar_functions_fail_at_the_users_line() {
    let f = || Function::record(square::<Symbol>, 2);
    let two = || Function::record(|x: &[Symbol]| [x[0], x[1]], 2);
    let taped = |bad: fn(&scalar::Recording<'_, f64>, &[Var])| Tape::<f64>::new().record(|t| bad(t, &t.inputs(&[1.0, 2.0])));
    check_lines(vec![
        direct!("evaluate", f().evaluate(&[1.0])),
        direct!("value", f().value(&[1.0])),
        direct!("value of two", two().value(&[1.0, 2.0])),
        direct!("values", f().values(&[1.0])),
        direct!("evaluate_many", f().evaluate_many(&[1.0])),
        direct!("try_evaluate_into, input", f().try_evaluate_into(&[1.0], &mut [0.0])),
        direct!("try_evaluate_into, output", f().try_evaluate_into(&[1.0, 2.0], &mut [0.0; 3])),
        direct!("try_evaluate_many_into", f().try_evaluate_many_into(&[1.0], &mut [0.0])),
        direct!("gradient", f().gradient(&[1.0])),
        direct!("gradient of two", two().gradient(&[1.0, 2.0])),
        direct!("value_and_gradient", f().value_and_gradient(&[1.0])),
        direct!("gradients", f().gradients(&[1.0])),
        direct!("Function::jacobian", f().jacobian(&[1.0])),
        direct!("jacobians", f().jacobians(&[1.0])),
        direct!("Function::hessian", f().hessian(&[1.0])),
        direct!("Function::hvp", f().hvp(&[1.0], &[1.0, 2.0])),
        direct!("Function::hvp of two", two().hvp(&[1.0, 2.0], &[1.0, 2.0])),
        direct!("sparse_jacobian", f().sparse_jacobian(&[1.0])),
        direct!("sparse_hessian", f().sparse_hessian(&[1.0])),
        direct!("sparse_hessian_by_substitution", f().sparse_hessian_by_substitution(&[1.0])),
        direct!("join", f().join(&Function::record(|x: &[Symbol]| x[0], 1))),
        direct!("total", f().total(3)),
        direct!("total, shared", f().total(1).evaluate(&[], &[1.0])),
        direct!("a branch that was not recorded", Function::record(|x: &[Symbol]| if x[0] > Symbol::constant(0.0) { x[0] } else { -x[0] }, 1).evaluate(&[-1.0])),
        direct!("gradient_into", scalar::gradient_into(square, &[1.0, 2.0], &mut [0.0])),
        direct!("jacobian_into, values", scalar::jacobian_into(|x| [x[0]], &[1.0], &mut [], &mut [0.0])),
        direct!("jacobian_into, jacobian", scalar::jacobian_into(|x| [x[0]], &[1.0], &mut [0.0], &mut [])),
        direct!("directional", scalar::directional(square, &[1.0, 2.0], &[1.0])),
        direct!("hvp", scalar::hvp(square, &[1.0, 2.0], &[1.0])),
        direct!("hvp_into", scalar::hvp_into(square, &[1.0, 2.0], &[1.0, 2.0], &mut [0.0])),
        direct!("hessian_into", scalar::hessian_into(square, &[1.0, 2.0], &mut [0.0])),
        direct!("directions", scalar::directions(|x| [square(x)], &[1.0, 2.0], &[&[1.0]])),
        direct!("dot", <Dual>::dot(&[Dual::variable(1.0, 0)], &[])),
        direct!("pullback", taped(|t, x| t.pullback(x, &[], x, &mut [0.0; 2]))),
        direct!("pullback, gradient", taped(|t, x| t.gradient(x[0], x, &mut []))),
        direct!("jacobian", taped(|t, x| t.jacobian(x, x, &mut []))),
        direct!("times", f().sparse_jacobian(&[1.0, 2.0]).times(&[])),
        direct!("transpose_times", f().sparse_jacobian(&[1.0, 2.0]).transpose_times(&[])),
        direct!("star", sparse::star(&sparse::Pattern::from_rows(2, [vec![0]]))),
        direct!("acyclic", sparse::acyclic(&sparse::Pattern::from_rows(2, [vec![0]]))),
        direct!("from_rows", sparse::Pattern::from_rows(2, [vec![7]])),
    ], line!());
}
