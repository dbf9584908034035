//! The drivers against naive indexing, for views of every kind, and the promise that a result depends on its operands alone.

use super::{each1, each2, noise, row};
use crate::kernels::compute::Compute;
use crate::kernels::isa::Isa;
use crate::kernels::isa::forced::with_each_isa;
use crate::kernels::map::{
    Map1, Map2, map_with, map1, map1_in_place, map2, map2_into_left, select, zip_with,
};
use crate::kernels::math::Float;
use crate::kernels::view::View;
use crate::kernels::{cost::Cost, parallel};
use half::{bf16, f16};
use pullback_table::elementwise_table;

/// Shape, strides and offset of views into 6000 elements: contiguous, transposed, flipped, broadcast, stepped, empty.
const VIEWS: [(&[usize], &[isize], usize); 12] = [
    (&[6000], &[1], 0),
    (&[2, 3, 1000], &[3000, 1000, 1], 0),
    (&[], &[], 7),
    (&[1, 1], &[5, 9], 3),
    (&[40, 150], &[1, 40], 0),
    (&[700], &[-1], 5999),
    (&[3, 5, 7], &[0, 7, 1], 11),
    (&[30, 40], &[1, 0], 2),
    (&[1300], &[0], 5),
    (&[2, 3, 4, 5], &[-60, 3, -15, 600], 1000),
    (&[4, 600], &[1200, 2], 1),
    (&[3, 0, 2], &[1, 1, 1], 0),
];

/// The elements that a view sees, by the definition.
fn naive<T: Copy>(v: View<'_, T>) -> Vec<T> {
    let index = |mut flat: usize| {
        let mut position = v.offset as isize;
        for (&n, &s) in v.shape.iter().zip(v.strides).rev() {
            position += (flat % n) as isize * s;
            flat /= n;
        }
        position as usize
    };
    (0..v.len()).map(|k| v.data[index(k)]).collect()
}

fn contiguous<'a, T>(data: &'a [T], shape: &'a [usize; 1]) -> View<'a, T> {
    View::new(data, 0, shape, &[1])
}

/// Bits to compare by, with one pattern for every NaN.
fn bits<E: Compute + Into<f64>>(x: &[E]) -> Vec<u64> {
    x.iter().map(|&x| x.into()).map(|x: f64| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect()
}

/// Ordinary numbers, with rare ones among them: huge arguments of sines, infinities, NaN, zeros.
fn mixed(seed: u64) -> impl Iterator<Item = f64> {
    let rare = [1e12, f64::NAN, 0.0, -0.0, f64::INFINITY, -3e5, 1.0, -1.0];
    noise(seed)
        .zip(noise(seed + 1))
        .map(move |(u, v)| if v < 0.02 { rare[(u * 8.0) as usize] } else { 8.0 * u - 3.0 })
}

fn unary_law<M: Map1, E: Compute + Into<f64>>(name: &str, from: fn(f64) -> E) {
    let x: Vec<E> = mixed(5).take(1100).map(from).collect();
    let mut expected = x.clone();
    for (y, x) in expected.iter_mut().zip(&x) {
        map1::<M, E>(View::new(std::slice::from_ref(x), 0, &[], &[]), std::slice::from_mut(y));
    }
    for n in [2, 7, 513, 1100] {
        let mut y = vec![from(0.0); n];
        map1::<M, E>(contiguous(&x[..n], &[n]), &mut y);
        assert_eq!(bits(&y), bits(&expected[..n]), "{name} of {n} elements");
        let mut y = x[..n].to_vec();
        map1_in_place::<M, E>(&mut y);
        assert_eq!(bits(&y), bits(&expected[..n]), "{name} of {n} elements in place");
    }
}

fn binary_law<M: Map2, E: Compute + Into<f64>>(name: &str, from: fn(f64) -> E) {
    let a: Vec<E> = mixed(7).take(1100).map(from).collect();
    let b: Vec<E> = mixed(9).take(1100).map(from).collect();
    let mut expected = a.clone();
    for (y, b) in expected.iter_mut().zip(&b) {
        map2_into_left::<M, E>(std::slice::from_mut(y), View::new(std::slice::from_ref(b), 0, &[], &[]));
    }
    for n in [1, 7, 513, 1100] {
        let mut y = vec![from(0.0); n];
        map2::<M, E>(contiguous(&a[..n], &[n]), contiguous(&b[..n], &[n]), &mut y);
        assert_eq!(bits(&y), bits(&expected[..n]), "{name} of {n} elements");
        let mut y = a[..n].to_vec();
        map2_into_left::<M, E>(&mut y, contiguous(&b[..n], &[n]));
        assert_eq!(bits(&y), bits(&expected[..n]), "{name} of {n} elements in place");
    }
}

/// The instruction sets above the portable one compute the same bits.
fn isa_law(name: &str, compute: impl Fn() -> Vec<u64>) {
    let mut narrower = None;
    with_each_isa(|isa| {
        if isa > Isa::Portable {
            let bits = compute();
            assert!(*narrower.get_or_insert_with(|| bits.clone()) == bits, "{name} at {isa:?}");
        }
    });
}

fn unary_isa_law<M: Map1, E: Compute<Wide = E> + Float + Into<f64>>(name: &str, from: fn(f64) -> E) {
    let x: Vec<E> = mixed(5).take(1100).map(from).collect();
    isa_law(name, || bits(&each1::<M, E>(&x)));
}

fn binary_isa_law<M: Map2, E: Compute<Wide = E> + Float + Into<f64>>(name: &str, from: fn(f64) -> E) {
    let a: Vec<E> = mixed(7).take(1100).map(from).collect();
    let b: Vec<E> = mixed(9).take(1100).map(from).collect();
    isa_law(name, || bits(&each2::<M, E>(&a, &b)));
}

/// A row that says so gives the same bits with its operands in the other order.
fn commuting_law<M: Map2, E: Compute<Wide = E> + Float + Into<f64>>(name: &str, from: fn(f64) -> E) {
    let a: Vec<E> = mixed(7).take(1100).map(from).collect();
    let b: Vec<E> = mixed(9).take(1100).map(from).collect();
    assert_eq!(bits(&each2::<M, E>(&a, &b)), bits(&each2::<M, E>(&b, &a)), "{name} commutes");
}

macro_rules! law {
    ($law:ident $P:ident $m:ident) => {
        $law::<row::$P, f32>(stringify!($m), |x| x as f32);
        $law::<row::$P, f64>(stringify!($m), |x| x);
    };
    ($P:ident $m:ident($x:ident)) => {
        with_each_isa(|_| { law!(unary_law $P $m); });
        law!(unary_isa_law $P $m);
    };
    ($P:ident $m:ident($a:ident, $b:ident)) => {
        with_each_isa(|_| {
            law!(binary_law $P $m);
            if pullback_table::row::$P.commutes {
                law!(commuting_law $P $m);
            }
        });
        law!(binary_isa_law $P $m);
    };
}

macro_rules! every_row {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = [$($d:expr),+]; reads $([$($r:ident)*])+; $facts:tt)*) => {
        #[test]
        fn an_element_has_the_same_bits_alone_and_in_any_loop_of_an_isa() {
            $(law!{ $P $m($($x),+) })*
        }
    };
}
elementwise_table!(every_row);

#[test]
fn half_precision_is_computed_in_f32_and_rounded_once() {
    unary_law::<row::Exp, f16>("exp", f16::from_f64);
    unary_law::<row::Sin, bf16>("sin", bf16::from_f64);
    binary_law::<row::Mul, f16>("mul", f16::from_f64);
    binary_law::<row::Hypot, bf16>("hypot", bf16::from_f64);
    let x: Vec<f16> = noise(3).take(100).map(|u| f16::from_f64(9.0 * u)).collect();
    let mut y = vec![f16::ZERO; 100];
    map1::<row::Square, f16>(contiguous(&x, &[100]), &mut y);
    let expected: Vec<f16> = x.iter().map(|x| f16::from_f32(x.to_f32() * x.to_f32())).collect();
    assert_eq!(y, expected);
}

#[test]
fn views_of_every_kind_read_what_they_see() {
    let data: Vec<f32> = noise(11).take(6000).map(|u| u as f32).collect();
    for (shape, strides, offset) in VIEWS {
        let v = View::new(&data, offset, shape, strides);
        let seen = naive(v);
        let mut y = vec![0.0; seen.len()];
        map1::<row::Neg, f32>(v, &mut y);
        assert_eq!(y, seen.iter().map(|x| -x).collect::<Vec<_>>(), "{shape:?} {strides:?}");

        let n = [seen.len()];
        let other: Vec<f32> = noise(12).take(seen.len()).map(|u| u as f32).collect();
        let difference: Vec<f32> = other.iter().zip(&seen).map(|(a, b)| a - b).collect();
        map2::<row::Sub, f32>(contiguous(&other, &n), v, &mut y);
        assert_eq!(y, difference, "right {shape:?} {strides:?}");
        map2::<row::Sub, f32>(v, contiguous(&other, &n), &mut y);
        assert_eq!(y, difference.iter().map(|d| -d).collect::<Vec<_>>(), "left {shape:?} {strides:?}");
        let mut y = other.clone();
        map2_into_left::<row::Sub, f32>(&mut y, v);
        assert_eq!(y, difference, "into left {shape:?} {strides:?}");

        let mut less = vec![0u8; seen.len()];
        zip_with(v, contiguous(&other, &n), &mut less, |a, b| u8::from(a < b));
        assert_eq!(less, seen.iter().zip(&other).map(|(a, b)| u8::from(a < b)).collect::<Vec<_>>());
        let mut whole = vec![0i64; seen.len()];
        map_with(v, &mut whole, |x| (x * 100.0) as i64);
        assert_eq!(whole, seen.iter().map(|x| (x * 100.0) as i64).collect::<Vec<_>>());
        let mut larger = vec![0.0; seen.len()];
        select(contiguous(&less, &n), contiguous(&other, &n), v, &mut larger);
        assert_eq!(larger, seen.iter().zip(&other).map(|(a, b)| a.max(*b)).collect::<Vec<_>>());
    }
}

#[test]
fn broadcasts_of_half_precision() {
    let data: Vec<bf16> = noise(13).take(64).map(bf16::from_f64).collect();
    let (row, column) = (View::new(&data, 0, &[40, 30], &[0, 1]), View::new(&data, 5, &[40, 30], &[1, 0]));
    let mut y = vec![bf16::ZERO; 1200];
    map2::<row::Add, bf16>(row, column, &mut y);
    let sums = naive(row).into_iter().zip(naive(column));
    assert_eq!(y, sums.map(|(a, b)| bf16::from_f32(a.to_f32() + b.to_f32())).collect::<Vec<_>>());
}

#[test]
fn threads_do_not_change_a_bit() {
    let n = 400_000;
    assert!(n > 2 * row::Tanh::value(Cost::OPERAND).grain(), "long enough to be split");
    let x: Vec<f32> = mixed(17).take(n).map(|x| x as f32).collect();
    let run = |threads| {
        parallel::set_num_threads(threads);
        let mut y = vec![0.0; n];
        map1::<row::Tanh, f32>(View::new(&x, n - 1, &[n], &[-1]), &mut y);
        map2_into_left::<row::Atan2, f32>(&mut y, contiguous(&x, &[n]));
        bits(&y)
    };
    assert_eq!(run(1), run(5));
}

#[test]
fn sines_of_huge_arguments_are_those_of_the_standard_library() {
    let x = [1e12, 0.5, -1e300, 3e9, f64::INFINITY, 1.0];
    let mut y = [0.0; 6];
    map1::<row::Sin, f64>(contiguous(&x, &[6]), &mut y);
    for (y, x) in y.into_iter().zip(x) {
        assert!((y - x.sin()).abs() <= f64::EPSILON || (y.is_nan() && x.is_infinite()), "sin({x}) = {y}");
    }
}
