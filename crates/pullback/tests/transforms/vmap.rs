//! Batching: a function of many examples is the function of each, in every composition with the other transforms.

use crate::near;
use pullback::prelude::*;
use pullback::vmap_axes;
use pullback_testing::message;

/// Runs `f` on each example along the first axis, one after the other.
fn looped(f: impl Fn(&Tensor) -> Tensor, xs: &Tensor) -> Tensor {
    let each: Vec<Tensor> = (0..xs.shape()[0]).map(|k| f(&xs.get(k as isize))).collect();
    Tensor::stack(&each, 0)
}

/// A panic with these words that names a line of the call, which may be broken over several.
#[track_caller]
fn refused<T>(words: &[&str], panics: impl FnOnce() -> T) {
    let text = message(panics);
    for word in words {
        assert!(text.contains(word), "no `{word}` in: {text}");
    }
    let line = std::panic::Location::caller().line();
    let named = (line..line + 4).any(|line| text.contains(&format!("vmap.rs:{line}:")));
    assert!(named, "no line of this call in: {text}");
}

fn numbers<const N: usize>(seed: u64, shape: [usize; N]) -> Tensor {
    Tensor::randn(Key::new(seed), shape, DType::F64)
}

/// A small network with a reduction, a selection and a softmax in it.
fn network(w: &Tensor) -> impl Fn(&Tensor) -> Tensor + '_ {
    move |x| {
        let h = x.matmul(w).tanh();
        let top = h.max();
        (h.softmax(-1) * &h).sum() + top + h.index_select(0, &Tensor::from([1i64, 0])).get(0).exp()
    }
}

// The axes of inputs and outputs ---------------------------------------------------------------------------------------

#[test]
fn any_axis_in_and_out() {
    let (a, b) = (numbers(1, [2, 3, 4]), numbers(2, [2, 3, 4]));
    let f = |(a, b): &(Tensor, Tensor)| a * 2.0 - b.exp();
    let whole = f(&(a.clone(), b.clone()));
    let back = |t: &Tensor, axis: isize| {
        let mut order = vec![0isize, 1, 2];
        let lanes = order.remove(((axis + 3) % 3) as usize);
        t.permute(&[&[lanes], &order[..]].concat())
    };
    for axis in [0isize, 1, 2, -1, -2, -3] {
        // Lanes along the same axis of both: the result is the whole, with that axis where `out` says.
        for out in [0isize, 1, 2, -1, -3] {
            let y = vmap_axes(f, &[Some(axis)], out)(&(a.clone(), b.clone()));
            near(&back(&y, out), &back(&whole, axis));
        }
    }
    // Lanes along different axes, and in one input only.
    let (p, q) = (numbers(3, [5, 2]), numbers(4, [2, 5]));
    let rows = |(p, q): &(Tensor, Tensor)| p * q;
    let y = vmap_axes(rows, &[Some(0), Some(1)], 0)(&(p.clone(), q.clone()));
    near(&y, &(&p * q.t()));
    let shared = q.t().get(3);
    let y = vmap_axes(rows, &[Some(0), None], 1)(&(p.clone(), shared.clone()));
    near(&y, &(&p * &shared).t());
    let y = vmap_axes(rows, &[None, Some(-2)], 0)(&(q.clone(), p.t()));
    near(&y, &looped(|row| &q * row, &p.t()));
}

#[test]
fn an_output_that_no_example_touches_is_repeated() {
    let w = Tensor::from([1.0, 2.0]);
    let (y, z) = vmap(|x: &Tensor| (x.sum(), w.exp()))(&Tensor::ones([3, 4]));
    assert_eq!(y.to_vec::<f64>(), [4.0; 3]);
    near(&z, &w.exp().broadcast_to([3, 2]));
}

#[test]
fn structures_go_in_and_out() {
    #[derive(Tree)]
    struct Pair {
        x: Tensor,
        label: Tensor,
    }
    let logits = numbers(5, [4, 3]);
    let labels = Tensor::from([0i64, 2, 1, 1]);
    let loss = |p: &Pair| vec![p.x.cross_entropy(&p.label), p.x.argmax(-1).cast(DType::F64)];
    let out = vmap(loss)(&Pair { x: logits.clone(), label: labels.clone() });
    near(&out[0], &logits.cross_entropy(&labels));
    near(&out[1], &logits.argmax(-1).cast(DType::F64));
}

#[test]
fn one_example_and_none() {
    let f = |x: &Tensor| x.softmax(-1).max();
    assert_eq!(vmap(f)(&Tensor::zeros([1, 4])).to_vec::<f64>(), [0.25]);
    assert_eq!(vmap(f)(&Tensor::zeros([0, 4])).shape(), [0]);
    assert_eq!(vmap(grad(f))(&Tensor::zeros([0, 4])).shape(), [0, 4]);
}

// Compositions ---------------------------------------------------------------------------------------------------------

#[test]
fn nested() {
    let (xs, ys) = (numbers(6, [3, 4]), numbers(7, [5, 4]));
    let all_pairs = |xs: &Tensor, ys: &Tensor| {
        let ys = ys.clone();
        vmap(move |x: &Tensor| {
            let x = x.clone();
            vmap(move |y: &Tensor| (&x - y).square().sum().sqrt())(&ys)
        })(xs)
    };
    let expected = looped(|x| looped(|y| (x - y).square().sum().sqrt(), &ys), &xs);
    near(&all_pairs(&xs, &ys), &expected);
    // The Gram matrix, in the order that the outer axis says.
    let dots = vmap_axes(|x: &Tensor| vmap(|y: &Tensor| x.dot(y))(&ys), &[Some(0)], 1)(&xs);
    near(&dots, &ys.matmul(&xs.t()));
    // Three deep, over the axes of one tensor.
    let t = numbers(8, [2, 3, 4]);
    near(&vmap(vmap(vmap(|v: &Tensor| v.sin() * 2.0)))(&t), &(t.sin() * 2.0));
}

#[test]
fn gradients_of_each_example() {
    let w = numbers(9, [4, 3]);
    let xs = numbers(10, [6, 4]);
    near(&vmap(network(&w))(&xs), &looped(network(&w), &xs));
    near(&vmap(grad(network(&w)))(&xs), &looped(grad(network(&w)), &xs));
    near(
        &vmap(grad(|x: &Tensor| grad(network(&w))(x).square().sum()))(&xs),
        &looped(grad(|x: &Tensor| grad(network(&w))(x).square().sum()), &xs),
    );
    // With respect to what they share.
    let of_weights = |x: &Tensor| grad(|w: &Tensor| network(w)(x))(&w);
    let each = vmap(of_weights)(&xs);
    assert_eq!(each.shape(), [6, 4, 3]);
    near(&each, &looped(of_weights, &xs));
    // Their mean is the gradient of the mean.
    let mean = grad(|w: &Tensor| vmap(network(w))(&xs).mean())(&w);
    near(&mean, &each.mean_axes(0));
}

#[test]
fn gradients_through_vmap() {
    let w = numbers(11, [4, 3]);
    let xs = numbers(12, [6, 4]);
    let batched = |xs: &Tensor| vmap(network(&w))(xs).square().sum();
    let one_by_one = |xs: &Tensor| looped(network(&w), xs).square().sum();
    near(&grad(batched)(&xs), &grad(one_by_one)(&xs));
    let twice = |f: &dyn Fn(&Tensor) -> Tensor| grad(|x: &Tensor| grad(f)(x).sin().sum())(&xs);
    near(&twice(&batched), &twice(&one_by_one));
}

#[test]
fn several_cotangents_at_once() {
    let x = numbers(13, [3]);
    let (y, pull) = vjp(|x: &Tensor| x.exp().outer(&x.sin()), &x);
    let basis = Tensor::eye(9).reshape([9, 3, 3]);
    let jacobian = vmap(|g: &Tensor| pull(g))(&basis);
    assert_eq!(y.shape(), [3, 3]);
    near(&jacobian, &looped(|g| pull(g), &basis));
}

#[test]
fn tangents_inside_and_around() {
    let w = numbers(14, [4, 3]);
    let (xs, ts) = (numbers(15, [5, 4]), numbers(16, [5, 4]));
    let f = network(&w);
    let push = |(x, t): &(Tensor, Tensor)| jvp(&f, x, t).1;
    let inside = vmap(push)(&(xs.clone(), ts.clone()));
    let single: Vec<Tensor> = (0..5).map(|k| push(&(xs.get(k), ts.get(k)))).collect();
    near(&inside, &Tensor::stack(&single, 0));
    let (y, around) = jvp(vmap(network(&w)), &xs, &ts);
    near(&y, &looped(network(&w), &xs));
    near(&around, &inside);
    // One point, many directions: the columns of a Jacobian.
    let x = xs.get(0);
    let columns = vmap(|t: &Tensor| jvp(&f, &x, t).1)(&Tensor::eye(4));
    near(&columns, &grad(&f)(&x));
    // A Hessian, forward over reverse.
    let hessian = vmap(|t: &Tensor| jvp(grad(&f), &x, t).1)(&Tensor::eye(4));
    near(&hessian, &hessian.t());
    near(&hessian, &vmap(|t: &Tensor| grad(|x: &Tensor| grad(&f)(x).dot(t))(&x))(&Tensor::eye(4)));
}

#[test]
fn captured_parameters_have_their_gradients() {
    let w = numbers(17, [4, 3]).requires_grad();
    let table = numbers(18, [5, 4]).requires_grad();
    let ids = Tensor::from([[0i64, 3], [3, 3], [4, 0]]);
    let f = |ids: &Tensor| (table.index_select(0, ids).matmul(&w)).tanh().sum();
    vmap(f)(&ids).square().sum().backward();
    let (gw, gt) = (w.grad().unwrap(), table.grad().unwrap());
    w.zero_grad();
    table.zero_grad();
    looped(f, &ids).square().sum().backward();
    near(&gw, &w.grad().unwrap());
    near(&gt, &table.grad().unwrap());
    assert_eq!(gt.get(1).to_vec::<f64>(), [0.0; 4]);
}

#[test]
fn checkpoints_inside_and_around() {
    let w = numbers(19, [4, 3]);
    let xs = numbers(20, [5, 4]);
    let expected = looped(grad(network(&w)), &xs);
    near(&vmap(grad(checkpoint(network(&w))))(&xs), &expected);
    near(&grad(|xs: &Tensor| checkpoint(vmap(network(&w)))(xs).sum())(&xs), &expected);
}

#[test]
fn updates_in_place() {
    let f = |x: &Tensor| {
        let mut sum = Tensor::zeros([3]);
        sum += x;
        sum *= x;
        sum.slice_assign(0..1, x.get(2).unsqueeze(0));
        sum
    };
    let xs = numbers(21, [4, 3]);
    near(&vmap(f)(&xs), &looped(f, &xs));
    near(&vmap(grad(|x: &Tensor| f(x).sum()))(&xs), &looped(grad(|x: &Tensor| f(x).sum()), &xs));
}

#[test]
fn choices_lane_by_lane() {
    let f = |x: &Tensor| Tensor::where_(&x.gt(0.0), x.sqrt(), x * 0.1);
    let xs = Tensor::from([-2.0, 0.5, 3.0, -0.1]);
    near(&vmap(f)(&xs), &looped(f, &xs));
    near(&vmap(grad(f))(&xs), &looped(grad(f), &xs));
}

// Bad input ------------------------------------------------------------------------------------------------------------

#[test]
fn a_mapped_value_is_not_read() {
    let xs = Tensor::ones([3, 2]);
    let many = "many values at once";
    refused(&["item", many, "where_", "cond"], || {
        vmap(|x: &Tensor| if x.sum().item() > 0.0 { x.clone() } else { -x })(&xs)
    });
    refused(&["to_vec", many], || vmap(|x: &Tensor| Tensor::from(x.to_vec::<f64>()))(&xs));
    refused(&["item", many], || vmap(grad(|x: &Tensor| x * x.sum().item()))(&xs.get(0)));
    refused(&["item", many], || vmap(|x: &Tensor| jvp(|x| x * x.sum().item(), x, x).1)(&xs));
    // Printing shows what is known.
    let printed = std::cell::RefCell::new(String::new());
    vmap(|x: &Tensor| {
        *printed.borrow_mut() = format!("{x} {x:?}");
        x.clone()
    })(&xs);
    assert!(printed.borrow().contains("f64 [2]"), "{}", printed.borrow());
}

#[test]
fn axes_that_do_not_fit() {
    let (a, b) = (Tensor::ones([3, 2]), Tensor::ones([4, 2]));
    let add = |(a, b): &(Tensor, Tensor)| a + b;
    refused(&["vmap: ", "`0` has 3", "`1` has 4"], || vmap(add)(&(a.clone(), b.clone())));
    let given = [Some(0), None, Some(1)];
    refused(&["vmap_axes: ", "3 axes", "2 tensors"], || vmap_axes(add, &given, 0)(&(a.clone(), b.clone())));
    refused(&["vmap_axes: ", "no input"], || vmap_axes(add, &[None], 0)(&(a.clone(), b.clone())));
    refused(&["vmap: ", "no input"], || vmap(|n: &Vec<Tensor>| n.len() as f64)(&vec![]));
    refused(&["input `1`", "axis 2 ", "2 axes"], || {
        vmap_axes(add, &[Some(0), Some(2)], 0)(&(a.clone(), b.clone()))
    });
    refused(&["the output", "axis 2 ", "2 axes"], || vmap_axes(Tensor::exp, &[Some(0)], 2)(&a));
    refused(&["`1` is a scalar", "None"], || vmap(add)(&(a.clone(), Tensor::scalar(1.0))));
    refused(&["the input is a scalar"], || vmap(Tensor::exp)(&Tensor::scalar(1.0)));
}

#[test]
fn errors_inside_name_their_own_line_and_the_shape_of_one_example() {
    let xs = Tensor::ones([3, 2]);
    let w = Tensor::ones([5, 4]);
    refused(&["matmul: ", "[2]", "[5, 4]"], || vmap(|x: &Tensor| x.matmul(&w))(&xs));
    refused(&["reshape: ", "2 elements", "[3]"], || vmap(|x: &Tensor| x.reshape([3]))(&xs));
    // An index reaches into no other lane.
    let ids = Tensor::from([[0i64, 1], [1, 2], [0, 0]]);
    let both = (xs, ids);
    refused(&["index_select: ", "index 2", "length 2"], || {
        vmap(|(x, i): &(Tensor, Tensor)| x.index_select(0, i))(&both)
    });
    refused(&["index 2", "length 2"], || vmap(|(x, i): &(Tensor, Tensor)| x.gather(0, i))(&both));
    refused(&["index_add: ", "index 2", "length 2"], || {
        vmap(|(x, i): &(Tensor, Tensor)| x.index_add(0, i, x))(&both)
    });
}

#[derive(Tree, Clone)]
struct Layer {
    weight: Tensor,
    rest: Vec<Tensor>,
}

/// Axes as a tree, of which an entry holds for all that is below it.
#[test]
fn axes_as_a_tree() {
    let layer =
        Layer { weight: Tensor::linspace(0.0, 1.0, 6).reshape([2, 3]), rest: vec![Tensor::ones([4, 2]); 2] };
    let x = Tensor::linspace(1.0, 2.0, 12).reshape([3, 4]);
    let f = |(l, x): &(Layer, Tensor)| l.weight.matmul(x) + &l.rest[0] * &l.rest[1];
    let input = (layer, x);
    let by_order = vmap_axes(f, &[None, Some(0), Some(0), Some(1)], 0)(&input);
    let same = |y: Tensor| assert_eq!(y.to_vec::<f64>(), by_order.to_vec::<f64>());
    same(vmap_axes(f, ([("weight", None), ("rest", Some(0))], 1), 0)(&input));
    same(vmap_axes(f, ([("weight", None), ("rest.0", Some(0)), ("rest.1", Some(-2))], Some(-1)), 0)(&input));
    let per_leaf = (vec![0, 0], [None, Some(1)]);
    let g = |(l, [w, x]): &(Vec<Tensor>, [Tensor; 2])| w.matmul(x) + &l[0] * &l[1];
    same(vmap_axes(g, per_leaf, 0)(&(input.0.rest.clone(), [input.0.weight.clone(), input.1.clone()])));
    let all = vmap_axes(|x: &(Tensor, Vec<Tensor>)| &x.0 + &x.1[0], 0, 0);
    assert_eq!(all(&(Tensor::ones([3, 2]), vec![Tensor::ones([3, 2])])).shape(), [3, 2]);

    let some = vmap_axes(|x: &(Tensor, Vec<Tensor>)| x.1.iter().fold(x.0.clone(), |a, b| a + b), (0, 0), 0);
    assert_eq!(some(&(Tensor::ones([3, 2]), vec![])).shape(), [3, 2]);

    refused(&["vmap_axes: ", "no axis was given for input `0.rest.0`"], || {
        vmap_axes(f, ([("weight", None)], 1), 0)(&input)
    });
    refused(&["vmap_axes: ", "an axis was given for `0.bias`"], || {
        vmap_axes(f, ([("weight", None), ("rest", Some(0)), ("bias", None)], 1), 0)(&input)
    });
}
