//! How tensors print, compared with `print` of NumPy 2.

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
