use crate::recorded::{Case, check};
use pullback::fft::{self, Norm, Transform};
use pullback::prelude::*;

fn transform(case: &Case) -> Transform {
    let numbers = |name: &str| case.options[name].as_array().map(|a| a.iter().map(|v| v.as_i64().unwrap()));
    let axes: Vec<isize> = numbers("axes").expect("a case has axes").map(|a| a as isize).collect();
    let norm = match case.options["norm"].as_str() {
        Some("backward") => Norm::Backward,
        Some("ortho") => Norm::Ortho,
        Some("forward") => Norm::Forward,
        other => panic!("no such norm: {other:?}"),
    };
    let t = fft::over(axes.as_slice()).norm(norm);
    match numbers("lengths") {
        Some(lengths) => t.lengths(lengths.map(|n| n as usize).collect::<Vec<_>>()),
        None => t,
    }
}

#[test]
fn fourier_transforms() {
    check(include_str!("cases/fourier.json"), |case: &Case, x: &[Tensor]| match case.name.as_str() {
        "fft" => transform(case).fft(&x[0]),
        "ifft" => transform(case).ifft(&x[0]),
        "rfft" => transform(case).rfft(&x[0]),
        "irfft" => transform(case).irfft(&x[0]),
        "fftshift" => fft::fftshift(&x[0], [0, 1]),
        "ifftshift" => fft::ifftshift(&x[0], [0, 1]),
        "fftfreq" => fft::fftfreq(case.int("n") as usize, 0.5),
        "rfftfreq" => fft::rfftfreq(case.int("n") as usize, 0.5),
        other => panic!("no such case: {other}"),
    });
}
