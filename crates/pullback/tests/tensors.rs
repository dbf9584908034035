//! Tensors as containers: making, reading, typing, slicing, printing and moving them.

use proptest::prelude::*;
use pullback::{AxisRange, NewAxis, prelude::*};

fn ints(n: i64) -> Tensor {
    Tensor::arange(0, n, 1)
}

mod creation {
    use super::*;

    #[test]
    fn from_rust_values() {
        assert_eq!(Tensor::from(2.5).dtype(), DType::F64);
        assert_eq!(Tensor::from(2.5f32).dtype(), DType::F32);
        assert_eq!(Tensor::from(3).dtype(), DType::I32);
        assert_eq!(Tensor::from([true, false]).to_vec::<bool>(), [true, false]);
        assert_eq!(Tensor::from(vec![1u8, 2]).dtype(), DType::U8);
        assert_eq!(Tensor::from(&[1.0, 2.0][..]).shape(), [2]);
        assert_eq!(Tensor::from([[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]]]).shape(), [3, 2, 1]);
        assert_eq!(Tensor::from([[[[0i64; 5]; 4]; 3]; 2]).shape(), [2, 3, 4, 5]);
        assert_eq!(Tensor::from(vec![vec![1.0, 2.0], vec![3.0, 4.0]]).to_vec::<f64>(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(Tensor::from_slice(&[1, 2, 3, 4], [2, 2]).at([1, 0]), 3.0);
    }

    #[test]
    fn in_row_major_order_whatever_the_rank() {
        let lengths = [2, 3, 1, 4, 2, 3];
        for rank in 0..=lengths.len() {
            let shape = &lengths[..rank];
            let n = shape.iter().product::<usize>() as i64;
            let x = ints(n).reshape(shape.to_vec()).cast(DType::F64) + 0.5;
            let last = shape.iter().fold(x.clone(), |x, _| x.get(-1));
            assert_eq!(last.item(), n as f64 - 0.5);
            assert_eq!(x.to_vec::<f64>(), (0..n).map(|k| k as f64 + 0.5).collect::<Vec<_>>());
        }
    }

    #[test]
    fn by_pattern() {
        assert_eq!(Tensor::full([2], 7i64).to_vec::<i64>(), [7, 7]);
        assert_eq!(Tensor::eye(3).sum_axes(0).to_vec::<f64>(), [1.0; 3]);
        assert_eq!(Tensor::eye(3).at([1, 1]), 1.0);
        assert_eq!(Tensor::arange(5, -5, -4).to_vec::<i32>(), [5, 1, -3]);
        assert_eq!(Tensor::arange(0.0, 1.0, 0.3).numel(), 4);
        assert!(Tensor::arange(3, 3, 1).to_vec::<i32>().is_empty());
        assert_eq!(Tensor::linspace(0.0, 1.0, 1).to_vec::<f64>(), [0.0]);
        let third = Tensor::linspace(0.0, 1.0, 4).to_vec::<f64>();
        assert_eq!((third[0], third[3]), (0.0, 1.0));
        let x = Tensor::from([[1.0f32]]);
        assert_eq!((x.ones_like().dtype(), x.zeros_like().shape()), (DType::F32, &[1, 1][..]));
    }

    #[test]
    fn handles_are_send_and_sync() {
        fn check<T: Send + Sync>() {}
        check::<Tensor>();
        check::<pullback::Error>();
    }
}

mod types {
    use super::*;
    use half::{bf16, f16};

    const ALL: [DType; 8] =
        [DType::Bool, DType::U8, DType::I32, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64];

    /// The order of docs/semantics.md, and its one exception.
    #[test]
    fn promotion_follows_one_rule() {
        for (i, &a) in ALL.iter().enumerate() {
            for (j, &b) in ALL.iter().enumerate() {
                let halves = [a, b].contains(&DType::F16) && [a, b].contains(&DType::BF16);
                let expected = if halves { DType::F32 } else { ALL[i.max(j)] };
                assert_eq!(DType::promote(a, b), expected);
                if expected != DType::Bool {
                    let sum = Tensor::full([1], 1.0).cast(a) + Tensor::full([1], 1.0).cast(b);
                    assert_eq!((sum.dtype(), sum.item()), (expected, 2.0));
                }
            }
        }
    }

    #[test]
    fn a_rust_number_never_widens_a_tensor() {
        for dtype in ALL.into_iter().filter(|d| *d != DType::Bool) {
            let x = Tensor::ones([2]).cast(dtype);
            assert_eq!((&x + 1.0).dtype(), dtype);
            assert_eq!((2 * &x).dtype(), dtype);
            assert_eq!(x.maximum(0).dtype(), dtype);
            assert_eq!(Tensor::where_(&x.gt(0), &x, 0.0).dtype(), dtype);
        }
    }

    #[test]
    fn casts_truncate_saturate_and_test_for_zero() {
        let x = Tensor::from([-1.7, 1.7, 300.0, 3e9, 1e30, f64::NAN]);
        assert_eq!(x.cast(DType::U8).to_vec::<u8>(), [0, 1, 255, 255, 255, 0]);
        assert_eq!(x.cast(DType::I32).to_vec::<i32>(), [-1, 1, 300, i32::MAX, i32::MAX, 0]);
        assert_eq!(x.cast(DType::I64).to_vec::<i64>(), [-1, 1, 300, 3_000_000_000, i64::MAX, 0]);
        assert_eq!(Tensor::from([0.0, -0.5]).cast(DType::Bool).to_vec::<bool>(), [false, true]);
        let exact = Tensor::from([i64::MAX, i64::MIN]);
        assert_eq!(exact.to_vec::<i64>(), [i64::MAX, i64::MIN]);
    }

    #[test]
    fn halves_are_stored_in_two_bytes_and_computed_in_four() {
        let x = Tensor::from([f16::from_f32(1.0), f16::from_f32(1e-4)]);
        assert_eq!(x.dtype().size(), 2);
        assert_eq!(Tensor::from([bf16::from_f32(3.0)]).item(), 3.0);
        // exp of 11 is within f16, its square is not; the step in between is rounded to f16.
        let y = Tensor::from([11.0]).cast(DType::F16).exp();
        assert!((y.item() - 11f64.exp()).abs() < 32.0);
        assert_eq!((&y * &y).item(), f64::INFINITY);
    }

    /// The sum does not fit f16, the mean does.
    #[test]
    fn means_of_halves_do_not_overflow() {
        let x = Tensor::full([1000], 100.0).cast(DType::F16);
        assert_eq!((x.sum().item(), x.mean().item(), x.var().item()), (f64::INFINITY, 100.0, 0.0));
        let x = Tensor::from([0.0, 600.0]).cast(DType::F16);
        assert_eq!(x.std_axes(0).dtype(), DType::F16);
        let g = grad(|x: &Tensor| x.mean())(&x);
        assert_eq!((g.dtype(), g.to_vec::<f64>()), (DType::F16, vec![0.5, 0.5]));
    }

    #[test]
    fn means_are_quotients() {
        for n in 1..200 {
            assert_eq!(Tensor::ones([n]).mean().item(), 1.0, "of {n} ones");
        }
    }

    #[test]
    fn sums_and_products_of_integers_are_wide() {
        let x = Tensor::full([3], 2_000_000_000);
        assert_eq!((x.sum().dtype(), x.sum().to_vec::<i64>()), (DType::I64, vec![6_000_000_000]));
        let x = Tensor::from([100_000, 100_000]);
        assert_eq!(x.prod().to_vec::<i64>(), [10_000_000_000]);
        assert_eq!(Tensor::from([true, true, false]).sum().to_vec::<i64>(), [2]);
    }

    #[test]
    fn gradients_in_half_precision() {
        for dtype in [DType::F16, DType::BF16] {
            let x = Tensor::from([[0.5, -1.5], [2.0, 1.0]]).cast(dtype).requires_grad();
            x.matmul(&x).relu().sum().backward();
            let g = x.grad().unwrap();
            assert_eq!(g.dtype(), dtype);
            let exact = grad(|x: &Tensor| x.matmul(x).relu().sum())(&x.detach().cast(DType::F64));
            assert_eq!(g.to_vec::<f64>(), exact.to_vec::<f64>(), "these numbers are exact in halves");
        }
    }
}

mod slices {
    use super::*;

    #[test]
    fn ranges_steps_positions_and_new_axes() {
        let x = ints(24).reshape([2, 3, 4]);
        let v = |t: Tensor| t.to_vec::<i64>();
        assert_eq!(v(x.slice((1, 2, 3))), [23]);
        assert_eq!(v(x.slice((-1, -1))), [20, 21, 22, 23]);
        assert_eq!(x.slice((.., 1..=1)).shape(), [2, 1, 4]);
        assert_eq!(v(x.slice((0, .., AxisRange::from(..).step(3)))), [0, 3, 4, 7, 8, 11]);
        assert_eq!(v(x.slice((0, 0, AxisRange::from(..).step(-1)))), [3, 2, 1, 0]);
        assert_eq!(v(x.slice((0, 0, AxisRange::from(..2).step(-1)))), [3]);
        assert_eq!(v(x.slice((0, 0, AxisRange::from(-2..0).step(-1)))), [2, 1]);
        assert_eq!(v(x.slice((0, 0, ..=-2))), [0, 1, 2]);
        let last = -1; // a literal would be taken for an empty range by clippy
        assert_eq!(v(x.slice((0, 0, 1..=last))), [1, 2, 3]);
        assert_eq!(x.slice((NewAxis, .., 0, NewAxis)).shape(), [1, 2, 1, 4]);
        assert_eq!(x.slice((.., NewAxis, NewAxis)).shape(), [2, 1, 1, 3, 4]);
        let ranges = [AxisRange::from(1), AxisRange::from(..2)];
        assert_eq!(x.slice(&ranges[..]).shape(), [2, 4]);
    }

    #[test]
    fn assignment_to_parts() {
        let mut x = Tensor::zeros([3, 3]);
        x.slice_assign((.., 0), Tensor::from([1.0, 2.0, 3.0]));
        x.slice_assign(1, 9);
        x.slice_assign((AxisRange::from(..).step(-2), 2), Tensor::from([5.0f32, 6.0]));
        assert_eq!(x.to_vec::<f64>(), [1.0, 0.0, 6.0, 9.0, 9.0, 9.0, 3.0, 0.0, 5.0]);
    }

    fn range() -> impl Strategy<Value = (Option<isize>, Option<isize>, isize)> {
        let end = || proptest::option::of(-8isize..8);
        (end(), end(), prop_oneof![-3isize..=-1, 1isize..=3])
    }

    /// Python's rule, written as a walk.
    fn walked(n: isize, (start, end, step): (Option<isize>, Option<isize>, isize)) -> Vec<i64> {
        let place = |p: isize| {
            let p = if p < 0 { p + n } else { p };
            if step > 0 { p.clamp(0, n) } else { p.clamp(-1, n - 1) }
        };
        let mut at = start.map_or(if step > 0 { 0 } else { n - 1 }, place);
        let end = end.map_or(if step > 0 { n } else { -1 }, place);
        let mut out = Vec::new();
        while if step > 0 { at < end } else { at > end } {
            out.push(at as i64);
            at += step;
        }
        out
    }

    proptest! {
        #[test]
        fn ranges_follow_python(n in 0i64..7, (start, end, step) in range()) {
            let taken = ints(n).slice(AxisRange::Range { start, end, step });
            prop_assert_eq!(taken.to_vec::<i64>(), walked(n as isize, (start, end, step)));
        }

        #[test]
        fn what_is_assigned_is_read_back(n in 0i64..7, (start, end, step) in range()) {
            let range = AxisRange::Range { start, end, step };
            let mut x = ints(n).cast(DType::F64).requires_grad() * 1.0;
            let part = Tensor::arange(100, 100 + x.slice(range).numel() as i64, 1);
            x.slice_assign(range, &part);
            prop_assert_eq!(x.slice(range).to_vec::<i64>(), part.to_vec::<i64>());
        }
    }
}

/// Compared with `print` of NumPy 2.
mod printing {
    use super::*;

    #[track_caller]
    fn prints(x: Tensor, expected: &str) {
        assert_eq!(x.to_string(), expected);
    }

    #[test]
    fn floats_stand_with_their_points_below_each_other() {
        prints(Tensor::from([1.0, 2.5, 3.0]), "[1.  2.5 3. ]");
        prints(Tensor::from([[1.0, -2.0], [3.25, 4.0]]), "[[ 1.   -2.  ]\n [ 3.25  4.  ]]");
        prints(Tensor::from([1.0 / 3.0, 2.0 / 3.0]), "[0.33333333 0.66666667]");
        prints(Tensor::from([0.1 + 0.2]), "[0.3]");
        prints(Tensor::from([12345678.9]), "[12345678.9]");
        prints(Tensor::from([1000.5, 1.25]), "[1000.5     1.25]");
        prints(Tensor::zeros([2]), "[0. 0.]");
    }

    #[test]
    fn numbers_of_very_different_size_get_exponents() {
        prints(Tensor::from([1e-5, 1.5]), "[1.0e-05 1.5e+00]");
        prints(Tensor::from([1e9, 1.0]), "[1.e+09 1.e+00]");
        prints(Tensor::from([10001.5, 1.25]), "[1.00015e+04 1.25000e+00]");
        prints(Tensor::from([-0.0, 1e-10, 1e10]), "[-0.e+00  1.e-10  1.e+10]");
        prints(Tensor::from([1e100, 1e-100]), "[1.e+100 1.e-100]");
    }

    #[test]
    fn every_type_has_its_own_digits() {
        prints(Tensor::from([1.0f32 / 3.0, 123_456.79]), "[3.3333334e-01 1.2345679e+05]");
        prints(Tensor::from([0.1f32, 123.456]), "[1.00000e-01 1.23456e+02]");
        prints(Tensor::from([0.1, 0.2]).cast(DType::F16), "[0.1 0.2]");
        prints(ints(12).reshape([2, 2, 3]), "[[[ 0  1  2]\n  [ 3  4  5]]\n\n [[ 6  7  8]\n  [ 9 10 11]]]");
        // Truth values are written as Rust has them.
        prints(Tensor::from([true, false]), "[ true false]");
        prints(Tensor::from([f64::NAN, 1.0, f64::NEG_INFINITY]), "[ nan   1. -inf]");
    }

    #[test]
    fn scalars_stand_alone() {
        prints(Tensor::scalar(2.0), "2.0");
        prints(Tensor::scalar(0.1f32), "0.1");
        prints(Tensor::scalar(3), "3");
        prints(Tensor::scalar(1e-7), "1e-07");
        prints(Tensor::scalar(0.0001), "0.0001");
        prints(Tensor::scalar(1e16), "1e+16");
        prints(Tensor::scalar(f64::INFINITY), "inf");
        prints(Tensor::scalar(0.1 + 0.2), "0.30000000000000004");
    }

    #[test]
    fn long_rows_wrap() {
        let expected = "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n \
                        24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39]";
        prints(ints(40), expected);
        let expected = "[0.         0.16666667 0.33333333 0.5        0.66666667 0.83333333\n 1.        ]";
        prints(Tensor::linspace(0.0, 1.0, 7), expected);
        let two = Tensor::linspace(0.0, 1.0, 30).reshape([2, 15]).to_string();
        assert_eq!(two.lines().nth(2).unwrap(), "  0.4137931  0.44827586 0.48275862]");
    }

    #[test]
    fn large_ones_are_summarised() {
        prints(
            Tensor::arange(0.0, 2000.0, 1.0),
            "[0.000e+00 1.000e+00 2.000e+00 ... 1.997e+03 1.998e+03 1.999e+03]",
        );
        let rows = "[[0. 0.]\n [0. 0.]\n [0. 0.]\n ...\n [0. 0.]\n [0. 0.]\n [0. 0.]]";
        prints(Tensor::zeros([1001, 2]), rows);
        let cube = Tensor::zeros([11, 11, 11]).to_string();
        assert!(cube.starts_with("[[[0. 0. 0. ... 0. 0. 0.]\n  [0."), "{cube}");
        assert!(cube.contains("]]\n\n ...\n\n [["), "{cube}");
    }

    #[test]
    fn nothing_and_other_formats() {
        prints(Tensor::zeros([0, 3]), "[]");
        prints(Tensor::zeros([3, 0]), "[]");
        assert_eq!(format!("{:.2}", Tensor::from([1.0 / 3.0, 10.0])), "[ 0.33 10.  ]");
        assert_eq!(format!("{:?}", Tensor::from([1.0f32])), "Tensor([1.], f32, [1])");
    }

    #[test]
    fn values_inside_transforms_print_too() {
        let seen = std::sync::Mutex::new(String::new());
        let _ = jvp(
            |x: &Tensor| {
                *seen.lock().unwrap() = x.to_string();
                x.clone()
            },
            &Tensor::from([1.5]),
            &Tensor::from([1.0]),
        );
        assert_eq!(*seen.lock().unwrap(), "[1.5]");
    }
}

mod random {
    use super::*;

    const N: usize = 100_000;

    #[test]
    fn a_key_always_draws_the_same() {
        let key = Key::new(42);
        let all = || {
            [
                Tensor::uniform(&key, [100], DType::F64),
                Tensor::randn(&key, [100], DType::F32),
                Tensor::randint(&key, [100], -5, 5),
                Tensor::bernoulli(&key, [100], 0.3),
                Tensor::permutation(&key, 100),
            ]
        };
        let elsewhere = std::thread::scope(|s| s.spawn(|| all().map(|t| t.to_vec::<f64>())).join().unwrap());
        assert_eq!(all().map(|t| t.to_vec::<f64>()), elsewhere);
    }

    #[test]
    fn elements_do_not_depend_on_the_shape() {
        let key = Key::new(7);
        let few = Tensor::randn(&key, [2, 3], DType::F64).to_vec::<f64>();
        assert_eq!(few, Tensor::randn(&key, [100], DType::F64).to_vec::<f64>()[..6]);
    }

    #[test]
    fn keys_that_were_split_draw_other_numbers() {
        let key = Key::new(1);
        let [a, b, c] = key.split();
        let draws: Vec<Vec<f64>> = [&key, &a, &b, &c, &a.fold_in(0), &Key::new(2)]
            .map(|k| Tensor::uniform(k, [8], DType::F64).to_vec())
            .to_vec();
        for (i, x) in draws.iter().enumerate() {
            assert!(draws[..i].iter().all(|y| x.iter().all(|v| !y.contains(v))));
        }
        let words = |key: &Key| key.leaves()[0].to_vec::<i64>();
        assert_eq!(
            words(&key.split::<2>()[0]),
            words(&a),
            "the first keys do not depend on how many there are"
        );
    }

    /// Bounds are five standard errors; the keys are fixed, so this passes or fails for good.
    #[test]
    fn moments() {
        let near = |x: f64, expected: f64, error: f64| assert!((x - expected).abs() < error, "{x}");
        let root = (N as f64).sqrt();
        for dtype in [DType::F32, DType::F64] {
            let u = Tensor::uniform(Key::new(3), [N], dtype).cast(DType::F64);
            near(u.mean().item(), 0.5, 5.0 * 0.2887 / root);
            near(u.var().item(), 1.0 / 12.0, 5.0 * 0.0745 / root);
            assert!(u.min().item() >= 0.0 && u.max().item() < 1.0);
            let z = Tensor::randn(Key::new(4), [N], dtype).cast(DType::F64);
            near(z.mean().item(), 0.0, 5.0 / root);
            near(z.var().item(), 1.0, 5.0 * 2f64.sqrt() / root);
            near(z.pow(4.0).mean().item(), 3.0, 5.0 * 9.8 / root);
        }
        let b = Tensor::bernoulli(Key::new(5), [N], 0.3).cast(DType::F64);
        near(b.mean().item(), 0.3, 5.0 * 0.4583 / root);
    }

    #[test]
    fn neighbours_are_not_correlated() {
        let z = Tensor::randn(Key::new(6), [N], DType::F64);
        let correlation = (z.slice(1..) * z.slice(..-1)).mean().item();
        assert!(correlation.abs() < 5.0 / (N as f64).sqrt(), "{correlation}");
    }

    #[test]
    fn integers_cover_their_range_evenly() {
        let counts = (0..7).map(|k| Tensor::randint(Key::new(8), [N], -3, 4).eq(k - 3i64).sum().item());
        assert!(counts.into_iter().all(|c| (c - N as f64 / 7.0).abs() < 5.0 * (N as f64 / 7.0).sqrt()));
    }

    #[test]
    fn permutations_are_permutations() {
        let mut p = Tensor::permutation(Key::new(9), 1000).to_vec::<i64>();
        assert_ne!(p, (0..1000).collect::<Vec<_>>());
        p.sort();
        assert_eq!(p, (0..1000).collect::<Vec<_>>());
    }
}

mod layout {
    use super::*;

    /// All positions of a shape, in row-major order.
    fn positions(shape: &[usize]) -> Vec<Vec<usize>> {
        shape.iter().fold(vec![vec![]], |all, &n| {
            all.iter().flat_map(|p| (0..n).map(move |k| [p.as_slice(), &[k]].concat())).collect()
        })
    }

    /// Row-major elements by position.
    fn read(elements: &[f64], shape: &[usize], at: &[usize]) -> f64 {
        elements[at.iter().zip(shape).fold(0, |o, (&k, &n)| o * n + k)]
    }

    /// A tensor of the given shape whose strides are not those of its shape: permuted, reversed, with gaps.
    fn strided(shape: &[usize], layout: usize, key: u64) -> Tensor {
        let n = shape.len();
        let order: Vec<isize> = (0..n).map(|k| ((k + layout) % n.max(1)) as isize).collect();
        let doubled: Vec<usize> = order.iter().map(|&a| shape[a as usize] * 2).collect();
        let base = Tensor::uniform(Key::new(key), doubled, DType::F64);
        let step = if layout.is_multiple_of(2) { -2 } else { 2 };
        let thinned: Vec<AxisRange> = (0..n).map(|_| AxisRange::from(..).step(step)).collect();
        let mut inverse = vec![0; n];
        order.iter().enumerate().for_each(|(k, &a)| inverse[a as usize] = k as isize);
        base.slice(&thinned[..]).permute(&inverse)
    }

    /// A shape, and one that broadcasts with it.
    fn pair() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
        proptest::collection::vec((0usize..4, any::<bool>(), any::<bool>()), 0..4).prop_flat_map(|axes| {
            let a: Vec<usize> = axes.iter().map(|&(n, one, _)| if one { 1 } else { n }).collect();
            let b: Vec<usize> = axes.iter().map(|&(n, _, one)| if one { 1 } else { n }).collect();
            (0..=b.len()).prop_map(move |cut| (a.clone(), b[cut..].to_vec()))
        })
    }

    proptest! {
        #[test]
        fn broadcasting_is_naive_indexing((a, b) in pair(), layouts in (0usize..4, 0usize..4)) {
            let (x, y) = (strided(&a, layouts.0, 1), strided(&b, layouts.1, 2));
            let z = &x * &y - x.maximum(&y);
            let (xs, ys) = (x.to_vec::<f64>(), y.to_vec::<f64>());
            let lead = a.len() - b.len();
            let shape: Vec<usize> = (0..a.len())
                .map(|k| if k < lead || b[k - lead] == 1 { a[k] } else { b[k - lead] })
                .collect();
            prop_assert_eq!(z.shape(), &shape[..]);
            let clip = |p: &[usize], s: &[usize]| -> Vec<usize> { p.iter().zip(s).map(|(&k, &n)| if n == 1 { 0 } else { k }).collect() };
            let expected: Vec<f64> = positions(&shape)
                .iter()
                .map(|p| (read(&xs, &a, &clip(p, &a)), read(&ys, &b, &clip(&p[lead..], &b))))
                .map(|(x, y)| x * y - x.max(y))
                .collect();
            prop_assert_eq!(z.to_vec::<f64>(), expected);
        }

        #[test]
        fn gradients_of_broadcast_products_sum_over_what_was_repeated((a, b) in pair(), layouts in (0usize..4, 0usize..4)) {
            let (x, y) = (strided(&a, layouts.0, 3).requires_grad(), strided(&b, layouts.1, 4));
            let z = &x * &y;
            z.sum().backward();
            let full = y.broadcast_to(z.shape().to_vec()).to_vec::<f64>();
            let shape = z.shape().to_vec();
            let mut expected = vec![0.0; x.numel()];
            for p in positions(&shape) {
                let at = p.iter().zip(&a).fold(0, |o, (&k, &n)| o * n + if n == 1 { 0 } else { k });
                expected[at] += read(&full, &shape, &p);
            }
            let found = x.grad().unwrap().to_vec::<f64>();
            prop_assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} {expected:?}");
        }

        #[test]
        fn reductions_are_naive_sums(shape in proptest::collection::vec(1usize..5, 1..4), layout in 0usize..4, mask in 0usize..8) {
            let x = strided(&shape, layout, 5);
            let over: Vec<usize> = (0..shape.len()).filter(|k| mask >> k & 1 == 1).collect();
            let kept: Vec<usize> = (0..shape.len()).filter(|k| !over.contains(k)).collect();
            let out: Vec<usize> = kept.iter().map(|&k| shape[k]).collect();
            let elements = x.to_vec::<f64>();
            let index = |p: &[usize]| kept.iter().fold(0, |o, &k| o * shape[k] + p[k]);
            let (mut sums, mut highs) = (vec![0.0; out.iter().product()], vec![f64::MIN; out.iter().product()]);
            for p in positions(&shape) {
                let v = read(&elements, &shape, &p);
                sums[index(&p)] += v;
                highs[index(&p)] = f64::max(highs[index(&p)], v);
            }
            let found = x.sum_axes(&over[..]);
            prop_assert_eq!(found.shape(), &out[..]);
            prop_assert!(found.to_vec::<f64>().iter().zip(&sums).all(|(a, b)| (a - b).abs() < 1e-12));
            prop_assert_eq!(x.max_axes(&over[..]).to_vec::<f64>(), highs);
        }

        #[test]
        fn matrix_products_are_naive_sums(m in 0usize..5, k in 0usize..5, n in 0usize..5, layouts in (0usize..4, 0usize..4)) {
            let (a, b) = (strided(&[m, k], layouts.0, 6), strided(&[k, n], layouts.1, 7));
            let (x, y) = (a.to_vec::<f64>(), b.to_vec::<f64>());
            let c = a.matmul(&b);
            prop_assert_eq!(c.shape(), [m, n]);
            for (o, found) in c.to_vec::<f64>().into_iter().enumerate() {
                let expected: f64 = (0..k).map(|l| x[o / n * k + l] * y[l * n + o % n]).sum();
                prop_assert!((found - expected).abs() < 1e-14);
            }
        }

        #[test]
        fn a_copy_is_what_the_view_says(shape in proptest::collection::vec(0usize..5, 1..4), layout in 0usize..4) {
            let view = strided(&shape, layout, 8);
            let copy = Tensor::from_slice(&view.to_vec::<f64>(), &shape[..]);
            prop_assert_eq!(view.flatten().to_vec::<f64>(), copy.to_vec::<f64>());
            prop_assert_eq!(view.flip(0).to_vec::<f64>(), copy.flip(0).to_vec::<f64>());
            prop_assert_eq!(view.exp().to_vec::<f64>(), copy.exp().to_vec::<f64>());
        }
    }

    #[test]
    fn rearranging() {
        let x = ints(6).reshape([2, 3]);
        let v = |t: Tensor| t.to_vec::<i64>();
        assert_eq!(v(x.t()), [0, 3, 1, 4, 2, 5]);
        assert_eq!(v(x.permute(&[-1, 0])), v(x.t()));
        assert_eq!(v(x.transpose(0, 1)), v(x.t()));
        assert_eq!(v(x.flip(1)), [2, 1, 0, 5, 4, 3]);
        assert_eq!(v(x.repeat(&[1, 2])), [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]);
        assert_eq!(v(x.pad(&[(0, 1), (1, 0)], -1.0)), [-1, 0, 1, 2, -1, 3, 4, 5, -1, -1, -1, -1]);
        assert_eq!(x.unsqueeze(-1).shape(), [2, 3, 1]);
        assert_eq!(x.unsqueeze(0).squeeze(0).shape(), [2, 3]);
        assert_eq!(v(Tensor::stack(&[x.get(0), x.get(1)], 0)), v(x.clone()));
        let parts = x.split(&[1, 2], 1);
        assert_eq!((v(parts[0].clone()), v(parts[1].clone())), (vec![0, 3], vec![1, 2, 4, 5]));
        assert_eq!(v(Tensor::concat(&parts, 1)), v(x));
    }

    #[test]
    fn vectors_and_batches_in_products() {
        let (a, v) = (ints(6).reshape([2, 3]).cast(DType::F64), Tensor::from([1.0, 2.0, 3.0]));
        assert_eq!(a.matmul(&v).to_vec::<f64>(), [8.0, 26.0]);
        assert_eq!(v.matmul(&a.t()).to_vec::<f64>(), [8.0, 26.0]);
        assert_eq!(v.dot(&v).item(), 14.0);
        assert_eq!(v.outer(&v).at([2, 1]), 6.0);
        let batch = Tensor::ones([4, 1, 2, 3]).matmul(&Tensor::ones([5, 3, 6]));
        assert_eq!((batch.shape(), batch.at([3, 4, 1, 5])), (&[4, 5, 2, 6][..], 3.0));
        assert_eq!(Tensor::from([[1, 2], [3, 4]]).matmul(&Tensor::from([1, 1])).to_vec::<i32>(), [3, 7]);
    }
}

/// A tensor that repeats one number is reduced without looking at every element, to the same result.
#[test]
fn repeated_numbers_are_reduced_at_once() {
    let x = Tensor::full([1 << 30, 1 << 10], 0.5f32);
    assert_eq!(x.sum().item(), 0.5 * 2f64.powi(40));
    assert_eq!((x.max().item(), x.min_axes(0).shape()), (0.5, &[1 << 10][..]));
    assert_eq!(x.mean_axes(1).at([7]), 0.5);
    assert_eq!(Tensor::full([0, 3], f64::INFINITY).sum_axes(0).to_vec::<f64>(), [0.0; 3]);
    let dense = Tensor::from([3.0, 3.0, 3.0]);
    assert_eq!(dense.sum().item(), Tensor::full([3], 3.0).sum().item());
    let g = grad(|x: &Tensor| (x.broadcast_to([1000, 3]) * 2.0).mean())(&Tensor::from([1.0, 2.0, 3.0]));
    assert!(g.is_close(&Tensor::full([3], 2.0 / 3.0), 1e-14, 0.0), "{g}");
}

/// `{:.3}` gives what was asked for: a loss is printed like any number.
#[test]
fn format_precision_is_obeyed() {
    let two = Tensor::scalar(2.0);
    assert_eq!(format!("{two:.3}"), "2.000");
    assert_eq!(format!("{:.3}", Tensor::scalar(1e-7)), "0.000");
    assert_eq!(format!("{:.3}", Tensor::scalar(-123456.789012)), "-123456.789");
    assert_eq!(format!("{:.0}", Tensor::scalar(1.7)), "2");
    assert_eq!(format!("{:.3}", Tensor::scalar(0.1f32)), "0.100");
    assert_eq!(format!("{two:8.3}|{two:<8.3}|{two:+.1}"), "   2.000|2.000   |+2.0");
    assert_eq!(format!("{:>5}|{:<5}|", two, Tensor::scalar(7i64)), "  2.0|7    |");
    assert_eq!(format!("{two:.2?}"), "Tensor(2.00, f64, [])");
    assert_eq!(format!("{:.3}", Tensor::from([1000.123456, 0.5])), "[1000.123    0.5  ]");
    assert_eq!(format!("{:.3}", Tensor::from([1e-7, 2.0])), "[0. 2.]");
    assert_eq!(format!("{}", Tensor::from([1e-7, 2.0])), "[1.e-07 2.e+00]");
}
