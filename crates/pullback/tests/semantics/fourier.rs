//! Fourier transforms: identities, gradients and errors.

use super::*;
use pullback::fft::{self, Norm};
use pullback::{Complex, check};

fn wave(n: usize) -> Tensor {
    Tensor::from((0..n).map(|k| (k as f64 * 0.7).sin() + 0.2).collect::<Vec<f64>>())
}

fn close(a: &Tensor, b: &Tensor) {
    assert!(a.is_close(b, 1e-10, 1e-10), "{a}\nfor\n{b}");
}

#[test]
fn the_power_of_a_spectrum_is_that_of_the_signal() {
    for n in [1, 4, 7, 1 << 15] {
        let x = wave(n);
        let power = |x: &Tensor| fft::fft(x).abs().square().sum();
        close(&power(&x), &(x.square().sum() * n as i64));
        close(&grad(power)(&x), &(&x * (2 * n) as i64));
        // Half of a spectrum has half of the power, but for what stands for itself.
        let ortho = |x: &Tensor| fft::over(-1).norm(Norm::Ortho).fft(x).abs().square().sum();
        close(&grad(ortho)(&x), &(&x * 2.0));
    }
}

#[test]
fn inverses_bring_back_what_was_there() {
    for n in [1, 2, 5, 6, 1 << 15] {
        let x = wave(2 * n).reshape([2, n]);
        close(&fft::irfft(&fft::rfft(&x), n), &x);
        close(&fft::ifft(&fft::fft(&x)).real(), &x);
        close(&fft::irfft2(&fft::rfft2(&x), n), &x);
        close(&fft::ifft2(&fft::fft2(&x)).real(), &x);
        close(&fft::irfftn(&fft::rfftn(&x), n), &x);
        close(&fft::ifftn(&fft::fftn(&x)).real(), &x);
        close(&fft::ifftshift(&fft::fftshift(&x, [0, 1]), [0, 1]), &x);
    }
}

#[test]
fn a_product_of_spectra_is_a_convolution() {
    let (x, h) = (wave(5), Tensor::from([1.0, -2.0, 0.5]));
    let padded = fft::over(0).lengths([7]);
    let filter = |x: &Tensor| padded.irfft(&(padded.rfft(x) * padded.rfft(&h)));
    let by_hand = |x: &Tensor| {
        let shifted = |k: usize| {
            Tensor::concat(&[Tensor::zeros([k]), x * h.get(k as isize), Tensor::zeros([2 - k])], 0)
        };
        shifted(0) + shifted(1) + shifted(2)
    };
    close(&filter(&x), &by_hand(&x));
    let loss = |f: &dyn Fn(&Tensor) -> Tensor, x: &Tensor| f(x).exp().sum();
    close(&grad(|x: &Tensor| loss(&filter, x))(&x), &grad(|x: &Tensor| loss(&by_hand, x))(&x));
    close(&hessian(|x: &Tensor| loss(&filter, x))(&x), &hessian(|x: &Tensor| loss(&by_hand, x))(&x));
}

#[test]
fn every_transform_of_functions_goes_through_them() {
    let x = wave(12).reshape([3, 4]);
    let f = |x: &Tensor| {
        let y = fft::over([1, 0]).norm(Norm::Ortho).rfft(x);
        (fft::fft2(&y.exp()).abs() + 1.0).ln().sum() + fft::irfft(&(&y * y.conj()), 5).sin().sum()
    };
    check::gradients(f, &x).unwrap();
    let expected = grad(f)(&x);
    close(&compile(grad(f)).call(&x), &expected);
    close(&vmap(grad(f))(&Tensor::stack(&[&x, &(&x * 2.0)], 0)).get(0), &expected);
    let text = trace(f, &x).to_string();
    assert_eq!(text.parse::<Graph>().unwrap().to_string(), text);
}

#[test]
fn imaginary_parts_that_belong_to_no_real_numbers_are_not_read() {
    let spectrum =
        |im: f64| Tensor::from([Complex::new(3.0, im), Complex::new(1.0, 2.0), Complex::new(-1.0, im)]);
    close(&fft::irfft(&spectrum(5.0), 4), &fft::irfft(&spectrum(0.0), 4));
    let g = grad(|z: &Tensor| fft::irfft(z, 4).square().sum())(&spectrum(5.0)).imag().to_vec::<f64>();
    assert_eq!((g[0], g[2]), (0.0, 0.0));
    assert!(g[1] != 0.0);
}

#[test]
fn what_does_not_fit_is_said() {
    let x = wave(4);
    let cases: [(&str, String); 7] = [
        ("rfft: takes real numbers, got c128; use fft", message(|| fft::rfft(&fft::fft(&x)))),
        ("fft: an axis of length 0 has no transform", message(|| fft::fft(&Tensor::zeros([0])))),
        ("fft: axis 1 is out of range", message(|| fft::over(1).fft(&x))),
        ("fft: axis 0 is named twice", message(|| fft::over([0, -1]).fft(&x))),
        ("ifft: 2 lengths were given for 1 axes", message(|| fft::over(0).lengths([1, 2]).ifft(&x))),
        ("irfft: an axis of length 0", message(|| fft::irfft(&fft::rfft(&x), 0))),
        ("rfft: needs an axis", message(|| fft::over(&[] as &[isize]).rfft(&x))),
    ];
    for (words, e) in cases {
        assert!(e.contains(words), "{e}\nshould say: {words}");
    }
    assert!(fft::over(1).try_fft(&x).is_err());
}
