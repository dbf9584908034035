//! Bad input never gives a wrong number or a crash without words.

use pullback::{AxisRange, Error, ErrorKind, prelude::*, save, strict_dtypes, try_grad_of};
use pullback_testing::message;

/// The error of a `try_` form, of the right kind, naming the operation, what it was given and this file.
#[track_caller]
fn refused<T: std::fmt::Debug>(result: pullback::Result<T>, kind: ErrorKind, words: &[&str]) -> Error {
    let e = result.expect_err("bad input was accepted");
    let text = e.to_string();
    assert_eq!(e.kind(), kind, "{text}");
    for word in words.iter().chain(&["bad_input.rs"]) {
        assert!(text.contains(word), "no `{word}` in: {text}");
    }
    assert!(e.op().is_some(), "{text}");
    e
}

fn zeros<const N: usize>(shape: [usize; N]) -> Tensor {
    Tensor::zeros(shape)
}

#[test]
fn shapes_that_do_not_fit() {
    use ErrorKind::Shape;
    let (a, b) = (zeros([2, 3]), zeros([4, 5]));
    refused(a.try_add(&b), Shape, &["add", "[2, 3]", "[4, 5]", "axis -2", "equal or 1"]);
    refused(a.try_gt(&b), Shape, &["gt", "[2, 3]", "[4, 5]"]);
    refused(a.try_maximum(zeros([2])), Shape, &["maximum", "[2, 3]", "[2]"]);
    refused(Tensor::try_where(&a.gt(0.0), &a, &b), Shape, &["where", "[2, 3]", "[4, 5]"]);
    refused(Tensor::try_where(&zeros([7]).gt(0.0), &a, 0.0), Shape, &["where", "[7]", "[2, 3]"]);
    refused(a.try_matmul(&b), Shape, &["matmul", "[2, 3]", "[4, 5]"]);
    refused(a.try_matmul(&Tensor::scalar(1.0)), Shape, &["matmul", "[2, 3]", "[]", "*"]);
    refused(zeros([2, 1, 3]).try_matmul(&zeros([5, 3, 3])), Shape, &["matmul", "[2, 1, 3]", "[5, 3, 3]"]);
    refused(a.try_dot(&a), Shape, &["dot", "[2, 3]", "matmul"]);
    refused(a.try_outer(&a), Shape, &["outer", "[2, 3]"]);
    refused(a.try_reshape([4, 2]), Shape, &["reshape", "[4, 2]", "6"]);
    refused(a.try_reshape([-1, -1]), Shape, &["reshape", "only one"]);
    refused(a.try_reshape([-1, 4]), Shape, &["reshape", "divide"]);
    refused(a.try_reshape([-2, 3]), Shape, &["reshape", "negative"]);
    refused(zeros([0, 3]).try_reshape([0, -1]), Shape, &["reshape", "ambiguous"]);
    refused(a.try_broadcast_to([3, 3]), Shape, &["broadcast_to", "[2, 3]", "[3, 3]"]);
    refused(a.try_broadcast_to([3]), Shape, &["broadcast_to", "[2, 3]", "[3]"]);
    refused(a.try_squeeze(0), Shape, &["squeeze", "[2, 3]", "length 2"]);
    refused(zeros([3]).try_t(), Shape, &["t:", "[3]"]);
    refused(a.try_pad(&[(1, 1)], 0.0), Shape, &["pad", "[2, 3]"]);
    refused(a.try_repeat(&[2]), Shape, &["repeat", "[2, 3]"]);
    refused(a.try_split(&[1, 1], 1), Shape, &["split", "[1, 1]", "[2, 3]"]);
    refused(Tensor::try_concat(&[&a, &b], 0), Shape, &["concat", "[2, 3]", "[4, 5]"]);
    refused(Tensor::try_concat(&[&a, &zeros([2])], 1), Shape, &["concat", "[2, 3]", "[2]"]);
    refused(Tensor::try_concat(&[&zeros([2]), &a], 0), Shape, &["concat", "[2]", "[2, 3]"]);
    refused(Tensor::try_stack(&[&a, &b], 0), Shape, &["stack", "[1, 2, 3]", "[1, 4, 5]"]);
    refused(Tensor::try_concat::<Tensor>(&[], 0), Shape, &["concat", "at least one"]);
    refused(Tensor::try_from_slice(&[1.0, 2.0], [3]), Shape, &["from_slice", "[3]", "2"]);
    refused(a.try_item(), Shape, &["item", "[2, 3]"]);
    refused(a.clone().try_add_assign(zeros([5, 2, 3])), Shape, &["[5, 2, 3]", "[2, 3]"]);
    refused(a.clone().try_slice_assign(0, zeros([2])), Shape, &["[2]", "[3]"]);
    let said = message(|| Tensor::from(vec![vec![1.0, 2.0], vec![3.0]]));
    assert!(said.contains("row 1") && said.contains('2'), "{said}");
}

#[test]
fn axes_out_of_range() {
    use ErrorKind::Axis;
    let x = zeros([2, 3]);
    refused(x.try_sum_axes(2), Axis, &["sum", "axis 2", "2 axes"]);
    refused(x.try_sum_axes(-3), Axis, &["sum", "axis -3"]);
    refused(x.try_mean_axes([0, 0]), Axis, &["mean", "twice"]);
    refused(x.try_max_axes([0, -2]), Axis, &["max", "twice"]);
    refused(x.try_argmax(5), Axis, &["argmax", "axis 5"]);
    refused(x.try_transpose(0, 2), Axis, &["transpose", "axis 2"]);
    refused(x.try_permute(&[0]), Axis, &["permute", "[0]"]);
    refused(x.try_permute(&[0, 0]), Axis, &["permute", "[0, 0]"]);
    refused(x.try_permute(&[0, 7]), Axis, &["permute", "axis 7"]);
    refused(x.try_unsqueeze(4), Axis, &["unsqueeze", "axis 4"]);
    refused(x.try_squeeze(2), Axis, &["squeeze", "axis 2"]);
    refused(x.try_flip(2), Axis, &["flip", "axis 2"]);
    refused(x.try_softmax(2), Axis, &["softmax", "axis 2"]);
    refused(x.try_narrow(2, 0, 1), Axis, &["narrow", "axis 2"]);
    refused(x.try_split(&[1], 9), Axis, &["split", "axis 9"]);
    refused(x.try_slice((0, 0, 0)), Axis, &["slice", "3 ranges", "2 axes"]);
    refused(x.try_gather(2, &Tensor::from([[0i64]])), Axis, &["gather", "axis 2"]);
    refused(Tensor::try_concat(&[&x, &x], 2), Axis, &["concat", "axis 2"]);
    refused(Tensor::scalar(1.0).try_sum_axes(0), Axis, &["sum", "axis 0", "0 axes"]);
    refused(x.try_sum_axes(isize::MIN), Axis, &["sum"]);
    refused(x.try_sum_axes(usize::MAX), Axis, &["sum"]);
}

/// A `usize` below zero, which wraps to a huge number, must not become a count from the end.
#[test]
fn unsigned_numbers_never_count_from_the_end() {
    let below_zero = 0usize.wrapping_sub(1);
    let x = Tensor::arange(0.0, 6.0, 1.0);
    refused(x.try_slice(below_zero), ErrorKind::Index, &["slice", "length 6"]);
    refused(x.try_reshape([below_zero]), ErrorKind::Shape, &["reshape"]);
    refused(x.try_sum_axes([below_zero]), ErrorKind::Axis, &["sum"]);
    assert_eq!(x.slice(..below_zero).numel(), 6, "ends outside of the axis are moved to it");
    assert_eq!(x.slice(below_zero..).numel(), 0);
    assert_eq!(x.slice(..=below_zero).numel(), 6);
}

#[test]
fn extremes_of_nothing() {
    use ErrorKind::Shape;
    let x = zeros([0, 3]);
    refused(x.try_max(), Shape, &["max", "[0, 3]", "length 0"]);
    refused(x.try_min_axes(0), Shape, &["min", "[0, 3]"]);
    refused(x.try_argmax(0), Shape, &["argmax", "[0, 3]"]);
    refused(zeros([3, 0]).try_softmax(-1), Shape, &["softmax", "[3, 0]"]);
    refused(Tensor::scalar(1.0).try_softmax(-1), ErrorKind::Axis, &["softmax"]);
    // Over an axis that is not empty there is nothing to choose, and nothing wrong.
    assert_eq!(x.max_axes(1).shape(), [0]);
    assert_eq!(zeros([3, 0]).argmax(0).shape(), [0]);
}

#[test]
fn reductions_that_nothing_has_a_value_for() {
    let x = zeros([0, 3]);
    assert_eq!(x.sum().item(), 0.0);
    assert_eq!(x.prod().item(), 1.0);
    assert!(x.mean().item().is_nan() && x.var().item().is_nan());
    assert_eq!(x.logsumexp().item(), f64::NEG_INFINITY);
    assert_eq!((x.any().item(), x.all().item()), (0.0, 1.0));
    assert_eq!(x.sum_axes(0).to_vec::<f64>(), [0.0; 3]);
}

#[test]
fn types_that_do_not_fit() {
    use ErrorKind::DType;
    let ints = Tensor::from([1, 2]);
    let truth = Tensor::from([true, false]);
    refused(ints.try_sqrt(), DType, &["sqrt", "i32", "cast"]);
    refused(ints.try_mean(), DType, &["mean", "i32", "cast"]);
    refused(ints.try_var(), DType, &["var", "i32"]);
    refused(ints.try_logsumexp(), DType, &["logsumexp", "i32"]);
    refused(ints.try_softmax(-1), DType, &["softmax", "i32"]);
    refused(truth.try_add(&truth), DType, &["add", "bool"]);
    refused(truth.try_neg(), DType, &["neg", "bool"]);
    refused(Tensor::from([1.0]).try_and(Tensor::from([1.0])), DType, &["and", "f64", "bool"]);
    refused(Tensor::from([1.0]).try_bitwise_not(), DType, &["bitwise_not", "f64", "bool"]);
    refused(truth.try_left_shift(&truth), DType, &["left_shift", "integers"]);
    refused(ints.try_gammainc(&ints), DType, &["gammainc", "i32", "cast"]);
    refused(ints.try_bessel_j0(), DType, &["bessel_j0", "i32", "cast"]);
    refused(Tensor::try_where(&ints, 1.0, 0.0), DType, &["where", "i32", "bool"]);
    refused(ints.try_gather(0, &Tensor::zeros([2])), DType, &["gather", "i64", "f64"]);
    refused(
        Tensor::zeros([1, 2]).try_cross_entropy(&Tensor::from([0.0])),
        DType,
        &["cross_entropy", "i64", "f64"],
    );
    refused(
        Tensor::try_concat(&[ints.clone(), Tensor::from([1.0])], 0),
        ErrorKind::Shape,
        &["concat", "i32", "f64"],
    );
    refused(truth.try_matmul(&truth), DType, &["matmul", "bool"]);
}

#[test]
fn numbers_that_do_not_fit_the_tensor() {
    use ErrorKind::DType;
    refused(Tensor::from([1, 2]).try_add(0.5), DType, &["add", "0.5", "i32"]);
    refused(Tensor::from([1u8]).try_add(300), DType, &["add", "300", "u8"]);
    refused(Tensor::from([1u8]).try_mul(-1), DType, &["mul", "-1", "u8"]);
    refused(Tensor::from([1]).try_add(3_000_000_000i64), DType, &["add", "3000000000", "i32"]);
    refused(Tensor::from([1i64]).try_add(1e300), DType, &["add", "i64"]);
    refused(Tensor::from([true]).try_and(2), DType, &["2", "bool"]);
    assert_eq!((Tensor::from([1u8]) + 254).to_vec::<u8>(), [255]);
    assert_eq!((Tensor::from([1]) * 2.0).to_vec::<i32>(), [2], "a whole float is an integer");
}

#[test]
fn integer_division_by_zero() {
    refused(Tensor::from([1, 2]).try_div(Tensor::from([1, 0])), ErrorKind::Value, &["div", "zero"]);
    refused(Tensor::from([1, 2]).try_rem(0), ErrorKind::Value, &["rem", "zero"]);
    // The one quotient that overflows wraps, as all integer arithmetic here does.
    assert_eq!((Tensor::from([i64::MIN]) / -1).to_vec::<i64>(), [i64::MIN]);
}

#[test]
fn positions_out_of_range() {
    use ErrorKind::Index;
    let x = zeros([2, 3]);
    refused(x.try_slice((0, 3)), Index, &["slice", "position 3", "length 3"]);
    refused(x.try_get(-3), Index, &["get", "position -3", "length 2"]);
    refused(x.try_slice(isize::MIN), Index, &["slice"]);
    refused(x.try_narrow(1, 2, 2), Index, &["narrow", "[2, 3]"]);
    refused(x.try_narrow(1, usize::MAX, 1), Index, &["narrow"]);
    refused(x.try_narrow(1, 1, usize::MAX), Index, &["narrow"]);
    refused(x.try_gather(1, &Tensor::from([[3i64]])), Index, &["gather", "index 3", "length 3"]);
    refused(x.try_gather(1, &Tensor::from([[-4i64]])), Index, &["gather", "index -4"]);
    refused(
        x.try_index_select(0, &Tensor::from([0i64, 2])),
        Index,
        &["index_select", "index 2", "position 1"],
    );
    let one = Tensor::from([[1.0]]);
    refused(x.try_scatter_add(1, &Tensor::from([[5i64]]), &one), Index, &["scatter_add", "index 5"]);
    refused(x.try_index_add(0, &Tensor::from([9i64]), &zeros([1, 3])), Index, &["index_add", "index 9"]);
    refused(x.try_cross_entropy(&Tensor::from([0i64, 3])), Index, &["cross_entropy", "label 3"]);
    refused(x.try_slice(AxisRange::from(..).step(0)), ErrorKind::Value, &["slice", "step"]);
    assert!(message(|| x.item_at([0])).contains("[2, 3]"));
    assert!(message(|| x.item_at([0, 5])).contains("position 5"));
    // As in NumPy, the ends of ranges may lie outside.
    assert_eq!(x.slice((.., 2..100)).shape(), [2, 1]);
    assert_eq!(x.slice((.., 5..)).shape(), [2, 0]);
    assert_eq!(x.slice((.., -100..-2)).shape(), [2, 1]);
    assert_eq!(x.slice(AxisRange::from(..).step(isize::MAX)).shape(), [1, 3]);
    assert_eq!(x.slice(AxisRange::from(..).step(isize::MIN)).shape(), [1, 3]);
}

#[test]
fn indices_of_wrong_shape() {
    use ErrorKind::Shape;
    let x = zeros([2, 3]);
    refused(x.try_gather(1, &Tensor::from([0i64])), Shape, &["gather", "[1]", "[2, 3]"]);
    refused(x.try_gather(1, &Tensor::from([[0i64], [0], [0]])), Shape, &["gather", "[3, 1]"]);
    refused(x.try_index_select(0, &Tensor::from([[0i64]])), Shape, &["index_select", "[1, 1]"]);
    refused(x.try_scatter_add(1, &Tensor::from([[0i64]]), &zeros([2, 1])), Shape, &["scatter_add", "[2, 1]"]);
    refused(x.try_cross_entropy(&Tensor::from([0i64])), Shape, &["cross_entropy", "[1]", "[2, 3]"]);
}

#[test]
fn shapes_too_large_to_count() {
    use ErrorKind::Shape;
    let half = usize::MAX / 2;
    for shape in [vec![usize::MAX], vec![half, half], vec![1 << 32, 1 << 32], vec![0, half, half]] {
        let said = message(|| Tensor::zeros(shape.clone()));
        assert!(said.contains("memory can address") && said.contains(&format!("{shape:?}")), "{said}");
    }
    let x = Tensor::scalar(1.0);
    refused(x.try_broadcast_to([half, half]), Shape, &["broadcast_to", "memory"]);
    refused(x.try_reshape([half, half]), Shape, &["reshape"]);
    refused(zeros([1]).try_pad(&[(usize::MAX, 1)], 0.0), Shape, &["pad", "overflows"]);
    refused(zeros([1]).try_pad(&[(half, 0)], 0.0), Shape, &["pad", "memory"]);
    refused(zeros([2]).try_repeat(&[half]), Shape, &["repeat", "memory"]);
    refused(zeros([2]).try_split(&[usize::MAX, 3], 0), Shape, &["split"]);
    refused(Tensor::try_from_slice(&[0.0], [half, half]), Shape, &["from_slice", "memory"]);
    let (long, wide) = (x.broadcast_to([1 << 40, 1]), x.broadcast_to([1, 1 << 40]));
    refused(long.try_add(&wide), Shape, &["add", "memory"]);
    refused(long.try_matmul(&wide), Shape, &["matmul", "memory"]);
    refused(x.try_reshape(vec![1usize; 65]), Shape, &["reshape", "64 axes"]);
    assert!(message(|| Tensor::eye(1 << 40)).contains("eye"));
    assert!(message(|| Tensor::linspace(0.0, 1.0, usize::MAX)).contains("linspace"));
    assert!(message(|| Tensor::arange(0.0, 1e300, 1.0)).contains("arange"));
}

/// What can be counted but not allocated, on any machine: it is larger than the address space.
#[test]
fn shapes_too_large_to_hold() {
    let huge = Tensor::zeros([1 << 49]);
    assert_eq!((&huge + 1.0).slice(7).item(), 1.0, "a repeated number needs no memory");
    let view = Tensor::from([1.0, 2.0]).broadcast_to([1 << 48, 2]);
    assert_eq!(view.slice((-1, 1)).item(), 2.0, "nor does a view");
    let said = message(|| &view + 1.0);
    assert!(said.contains("out of memory"), "{said}");
    refused(view.try_add(1.0), ErrorKind::Memory, &["add", "out of memory", "45035996"]);
    let mut zeros = Tensor::zeros([1 << 49]);
    refused(zeros.try_slice_assign(0..1, 1.0), ErrorKind::Memory, &["slice_assign", "bytes"]);
    assert_eq!(zeros.get(0).item(), 0.0, "what failed has changed nothing");
    refused(Tensor::try_eye(1 << 25), ErrorKind::Memory, &["eye", "bytes"]);
    refused(Tensor::try_linspace(0.0, 1.0, 1 << 50), ErrorKind::Memory, &["linspace", "bytes"]);
    refused(Tensor::try_arange(0, 1i64 << 50, 1), ErrorKind::Memory, &["arange"]);
    refused(huge.try_to_vec::<f32>(), ErrorKind::Memory, &["to_vec"]);
    refused(save::to_bytes(&huge), ErrorKind::Memory, &["to_bytes"]);
    refused(Tensor::try_permutation(Key::new(0), 1 << 50), ErrorKind::Memory, &["permutation"]);
    let (row, column) = (huge.reshape([1, -1]), huge.reshape([-1, 1]));
    refused(row.try_matmul(&column), ErrorKind::Memory, &["matmul"]);
    let half = row.cast(DType::F16);
    refused(half.try_logsumexp_axes(-1), ErrorKind::Memory, &["logsumexp"]);
}

/// With so much memory as a limit allows: an error says how much was asked for, and the process goes on.
#[test]
#[cfg(target_os = "linux")]
fn a_process_without_memory_gets_errors() {
    const CASE: &str = "PULLBACK_TEST_CASE";
    let name = "bad_input::a_process_without_memory_gets_errors";
    if std::env::var_os(CASE).is_none() {
        let command = format!("ulimit -v 4000000 && exec \"$0\" --exact {name} --nocapture");
        let mut limited = std::process::Command::new("sh");
        let ended =
            limited.args(["-c", &command]).arg(std::env::current_exe().unwrap()).env(CASE, "1").output();
        let ended = ended.unwrap();
        assert!(ended.status.success(), "{}\n{ended:?}", String::from_utf8_lossy(&ended.stderr));
        return;
    }
    // 8 GiB of f64.
    const N: usize = 1 << 30;
    let bytes = &(N * 8).to_string()[..];
    let memory = |result: pullback::Result<()>| drop(refused(result, ErrorKind::Memory, &["out of memory"]));
    let key = Key::new(1);
    refused(Tensor::try_eye(1 << 15), ErrorKind::Memory, &["eye"]);
    refused(Tensor::try_linspace(0.0, 1.0, N), ErrorKind::Memory, &["linspace"]);
    refused(Tensor::try_randn(&key, [N], DType::F64), ErrorKind::Memory, &["randn"]);
    refused(Tensor::try_permutation(&key, N), ErrorKind::Memory, &["permutation"]);
    let zeros = Tensor::zeros([N]);
    refused(zeros.try_to_vec::<f64>(), ErrorKind::Memory, &["to_vec", bytes]);
    refused(save::to_bytes(&zeros), ErrorKind::Memory, &["to_bytes", bytes]);
    let path = std::env::temp_dir().join(format!("pullback-{name}-{}", std::process::id()));
    refused(save(&zeros, &path), ErrorKind::Memory, &["save", bytes]);
    assert!(!path.exists());
    refused(zeros.reshape([1, N]).try_matmul(&zeros.reshape([N, 1])), ErrorKind::Memory, &["matmul", bytes]);
    let pair = Tensor::from([1.0, 2.0]);
    refused(pair.broadcast_to([N / 2, 2]).try_exp(), ErrorKind::Memory, &["exp"]);
    memory(compile(|x: &Tensor| x.exp()).try_call(&pair.broadcast_to([N / 2, 2])).map(drop));
    // The gradient of a slice is as large as what was sliced.
    let all = zeros.requires_grad();
    memory(all.slice(0..2).try_backward_with(&pair));
    memory(try_grad_of(&all.slice(0..1).sum(), &[&all]).map(drop));
    assert_eq!((&pair + 1.0).to_vec::<f64>(), [2.0, 3.0], "the process goes on");
}

#[test]
fn empty_tensors_go_through_everything() {
    let x = zeros([0, 3]).requires_grad();
    let y = (&x * 2.0 + 1.0).exp().matmul(&zeros([3, 4]));
    assert_eq!(y.shape(), [0, 4]);
    y.sum().backward();
    assert_eq!(x.grad().unwrap().shape(), [0, 3]);
    assert_eq!(zeros([2, 0]).matmul(&zeros([0, 2])).to_vec::<f64>(), [0.0; 4]);
    assert_eq!(Tensor::concat(&[zeros([0, 3]), zeros([2, 3])], 0).shape(), [2, 3]);
    assert_eq!(x.flip(0).t().reshape([3, 0, 1]).shape(), [3, 0, 1]);
    assert_eq!(x.broadcast_to([5, 0, 3]).numel(), 0);
    assert_eq!(x.softmax(-1).shape(), [0, 3]);
    assert_eq!(zeros([4, 3]).index_select(0, &Tensor::from(Vec::<i64>::new())).shape(), [0, 3]);
    assert_eq!(Tensor::from(Vec::<f64>::new()).to_string(), "[]");
    assert!(x.to_vec::<f64>().is_empty());
}

#[test]
fn backward_from_what_is_not_a_scalar() {
    use ErrorKind::Gradient;
    let x = Tensor::from([1.0, 2.0, 3.0]).requires_grad();
    let y = x.square();
    refused(y.try_backward(), Gradient, &["backward", "scalar", "[3]", "sum()", "backward_with"]);
    refused(try_grad_of(&y, &[&x]), Gradient, &["grad_of", "scalar", "[3]"]);
    let said = message(|| grad(|x: &Tensor| x.square())(&Tensor::from([1.0, 2.0])));
    assert!(said.contains("grad") && said.contains("[2]") && said.contains("vjp"), "{said}");
    assert!(x.grad().is_none(), "a refused call leaves nothing behind");
}

#[test]
fn seeds_of_wrong_shape_or_type() {
    use ErrorKind::Gradient;
    let x = Tensor::from([1.0, 2.0]).requires_grad();
    let y = x.square();
    refused(y.try_backward_with(&zeros([3])), Gradient, &["seed", "[2]", "[3]"]);
    refused(y.try_backward_with(&Tensor::scalar(1.0)), Gradient, &["seed", "[2]", "[]"]);
    refused(y.try_backward_with(&Tensor::from([1.0f32, 1.0])), Gradient, &["seed", "f64", "f32"]);
    let (_, pull) = vjp(|x: &Tensor| x.square(), &Tensor::from([1.0, 2.0]));
    let said = message(|| pull(&zeros([3])));
    assert!(said.contains("vjp") && said.contains("[2]") && said.contains("[3]"), "{said}");
    let said = message(|| jvp(|x: &Tensor| x.square(), &zeros([2]), &zeros([3])));
    assert!(said.contains("jvp") && said.contains("[2]") && said.contains("[3]"), "{said}");
    let said = message(|| {
        let x = vec![zeros([1]), zeros([1])];
        jvp(|x: &Vec<Tensor>| x[0].clone(), &x, &x[..1].to_vec())
    });
    assert!(said.contains("2 tensors"), "{said}");
}

#[test]
fn arguments_outside_their_values() {
    use ErrorKind::Value;
    refused(zeros([1]).try_clamp(1.0, 0.0), Value, &["clamp", "1", "0"]);
    refused(zeros([1]).try_clamp(f64::NAN, 0.0), Value, &["clamp", "NaN"]);
    let key = Key::new(0);
    assert!(message(|| Tensor::randint(&key, [1], 3, 3)).contains("3..3"));
    assert!(message(|| Tensor::bernoulli(&key, [1], 1.5)).contains("1.5"));
    assert!(message(|| Tensor::bernoulli(&key, [1], f64::NAN)).contains("probability"));
    assert!(message(|| Tensor::uniform(&key, [1], DType::I32)).contains("i32"));
    assert!(message(|| Tensor::arange(0.0, 1.0, 0.0)).contains("arange"));
    assert!(message(|| Tensor::arange(0, 1, 0)).contains("arange"));
    assert!(message(|| Tensor::arange(0.0, f64::NAN, 1.0)).contains("arange"));
}

/// Operators and plain methods say what their `try_` forms say, and panic at the caller's line.
#[test]
fn operators_panic_with_the_same_words() {
    let (a, b) = (zeros([2, 3]), zeros([4, 5]));
    let line = line!() + 1;
    let said = message(|| &a + &b);
    let tried = a.try_add(&b).unwrap_err().to_string();
    let words = |s: &str| s.rsplit_once(" [").unwrap().0.to_string();
    assert_eq!(words(&said), words(&tried));
    assert!(said.contains(&format!("bad_input.rs:{line}:")), "{said}");
}

#[test]
fn labels_that_are_no_classes() {
    let logits = zeros([2, 3]);
    refused(
        logits.try_cross_entropy(&Tensor::from([0i64, 5])),
        ErrorKind::Index,
        &["cross_entropy", "label 5", "position 1", "has 3", "from 0"],
    );
    let one_hot = Tensor::from([[1i64, 0, 0], [0, 0, 1]]);
    refused(
        logits.try_cross_entropy(&one_hot),
        ErrorKind::Shape,
        &["cross_entropy", "one-hot", "labels.argmax(-1)", ".cast(F64)"],
    );
    // What the message advises is the same number.
    let logits = Tensor::from([[0.5, -1.0, 2.0], [1.0, 0.0, 3.0]]);
    let (classes, rows) = (one_hot.argmax(-1), one_hot.cast(DType::F64));
    assert!(logits.cross_entropy(&rows).is_close(&logits.cross_entropy(&classes), 1e-14, 0.0));
}

#[test]
fn branches_that_do_not_agree() {
    let both = |x: &Tensor| cond(&x.sum().gt(0.0), |x: &Tensor| x.clone(), |x| x.sum(), x);
    let e = refused(
        pullback::try_trace(both, &zeros([2])),
        ErrorKind::Shape,
        &["cond: the branches return a result of f64 [2] and of f64 []"],
    );
    assert_eq!(e.op(), Some("cond"));
    let pairs =
        |x: &Tensor| cond(&x.sum().gt(0.0), |x: &Tensor| (x.clone(), x.sum()), |x| (x.clone(), x.clone()), x);
    refused(pullback::try_trace(pairs, &zeros([2])), ErrorKind::Shape, &["cond: the branches return `1` of"]);
}

/// A parameter that was updated outside of `no_grad` is no leaf any more, and has no gradient: the classic slip.
#[test]
fn the_gradient_of_a_value_that_an_update_made_a_non_leaf() {
    use ErrorKind::Gradient;
    let mut w = Tensor::scalar(3.0).requires_grad();
    refused(w.try_grad(), Gradient, &["grad", "no backward pass"]);
    w.square().backward();
    assert_eq!(w.try_grad().unwrap().item(), 6.0);
    let line = line!() + 1;
    w = &w - w.grad().unwrap() * 0.1;
    w.square().backward();
    let place = format!("sub at {}:{line}:", file!());
    refused(w.try_grad(), Gradient, &["not a leaf", &place, "no_grad", "requires_grad()", "retain_grad()"]);
    refused(zeros([2]).try_grad(), Gradient, &["does not depend on anything that requires a gradient"]);
    let mut w = Tensor::scalar(3.0).requires_grad();
    for _ in 0..2 {
        w.square().backward();
        let g = w.try_grad().unwrap();
        no_grad(|| w -= g * 0.1);
        w.zero_grad();
    }
    assert!((w.item() - 1.92).abs() < 1e-12);
}

#[test]
fn mixed_types_are_found_in_strict_mode() {
    use ErrorKind::DType as Kind;
    let (x, y) = (DType::F32.ones([2]), Tensor::from([0.1, 0.2]));
    let words = ["f32 [2] and f64 [2] would both become f64", "DType::F32.tensor"];
    strict_dtypes(|| {
        refused(x.try_mul(&y), Kind, &[&["mul"][..], &words].concat());
        refused(x.try_maximum(&y), Kind, &[&["maximum"][..], &words].concat());
        refused(x.try_gt(&y), Kind, &[&["gt"][..], &words].concat());
        refused(x.try_matmul(&y), Kind, &[&["matmul"][..], &words].concat());
        refused(Tensor::try_where(&x.gt(0.0), &x, &y), Kind, &[&["where"][..], &words].concat());
        refused(x.clone().try_add_assign(&y), Kind, &["add", "would both become f32"]);
        refused(x.clone().try_slice_assign(0, y.get(0)), Kind, &["slice_assign", "would both become f32"]);
        refused(x.try_add(Tensor::from([1i64, 2])), Kind, &["add", "i64"]);
    });
    assert_eq!((&x * &y).dtype(), DType::F64, "outside, types are promoted");
}

/// A model of f32 is of f32 throughout, derivatives and all: nothing inside of the library mixes types.
#[test]
fn an_f32_model_stays_f32_in_strict_mode() {
    let dtype = DType::F32;
    let [a, b, c] = Key::new(3).split();
    let model = (dtype.randn(a, [4, 8]) * 0.5, dtype.zeros([8]), dtype.uniform(b, [8, 3]));
    let (x, labels) = (dtype.randn(c, [5, 4]), Tensor::from([0i64, 2, 1, 1, 0]));
    let loss = |(w, b, v): &(Tensor, Tensor, Tensor)| {
        let h = (x.matmul(w) + b).tanh();
        let h = (&h - h.mean_axes(0)) / (h.var_axes(0) + 1e-3).sqrt();
        let gated = Tensor::where_(&h.gt(0.0), h.gelu(), &h * 0.1);
        let y = gated.matmul(v);
        y.cross_entropy(&labels).mean()
            + y.softmax(-1).max_axes(-1).sum() * 0.01
            + w.norm() * dtype.full([], 0.1)
    };
    strict_dtypes(|| {
        let (value, g) = value_and_grad(loss)(&model);
        assert_eq!(value.dtype(), dtype);
        assert!(g.leaves().iter().all(|g| g.dtype() == dtype));
        let along = hvp(loss, &model, &g);
        assert!(along.leaves().iter().all(|g| g.dtype() == dtype));
        let compiled = compile(value_and_grad(loss)).call(&model);
        assert!(compiled.0.is_close(&value, 1e-5, 0.0));
    });
    assert_eq!(dtype.eye(2).to_vec::<f32>(), [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(dtype.linspace(0.0, 1.0, 3).to_vec::<f32>(), [0.0, 0.5, 1.0]);
    assert!(message(|| DType::I64.full([2], 0.5)).contains("0.5 does not fit i64"));
    assert!(message(|| DType::I64.randn(Key::new(1), [2])).contains("i64"));
}
