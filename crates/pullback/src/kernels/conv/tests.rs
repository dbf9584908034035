//! All faces against plain loops, on random shapes and layouts.

use super::super::isa::forced::with_each_isa;
use super::super::sample::{Dice, Strided, cases};
use super::*;

fn random(r: &mut Dice) -> (Geometry, usize) {
    let dims = 1 + r.roll(3);
    let mut spans = [Span::NONE; 3];
    for span in &mut spans[3 - dims..] {
        let (k, stride, dilation, low) = (1 + r.roll(4), 1 + r.roll(3), 1 + r.roll(2), r.roll(4));
        let reach = dilation * (k - 1) + 1;
        let (most, high) = ([40, 9, 4][dims - 1], r.roll(4));
        let x = reach.saturating_sub(low + high).max(1) + r.roll(most);
        *span = Span { x, k, y: (x + low + high - reach) / stride + 1, stride, dilation, low };
    }
    let groups = [1, 1, 2, 3][r.roll(4)];
    let channels = |r: &mut Dice| [1, 1, 2, 3, 5, 9, 17][r.roll(7)];
    (Geometry { images: 1 + r.roll(3), groups, inputs: channels(r), outputs: channels(r), spans }, dims)
}

/// The shapes of the three factors, with so many inner axes.
fn shapes(g: &Geometry, dims: usize) -> [Vec<usize>; 3] {
    let of = |outer: [usize; 2], f: fn(&Span) -> usize| {
        let inner = g.spans[3 - dims..].iter().map(f);
        outer.into_iter().chain(inner).collect()
    };
    [
        of([g.images, g.groups * g.inputs], |s| s.x),
        of([g.groups * g.outputs, g.inputs], |s| s.k),
        of([g.images, g.groups * g.outputs], |s| s.y),
    ]
}

/// Calls `f` with the place of each product in the input, the kernel and the output.
fn products(g: &Geometry, mut f: impl FnMut([usize; 5], [usize; 5], [usize; 5])) {
    let [d, h, w] = g.spans;
    let place =
        |s: Span, i: usize, t: usize| (i * s.stride + t * s.dilation).checked_sub(s.low).filter(|&p| p < s.x);
    for n in 0..g.images {
        for o in 0..g.groups * g.outputs {
            for c in 0..g.inputs {
                for (i, s) in (0..d.y).flat_map(|i| (0..d.k).map(move |t| (i, t))) {
                    for (j, t) in (0..h.y).flat_map(|i| (0..h.k).map(move |t| (i, t))) {
                        for (k, u) in (0..w.y).flat_map(|i| (0..w.k).map(move |t| (i, t))) {
                            let at = (place(d, i, s), place(h, j, t), place(w, k, u));
                            if let (Some(p), Some(q), Some(r)) = at {
                                let channel = o / g.outputs * g.inputs + c;
                                f([n, channel, p, q, r], [o, c, s, t, u], [n, o, i, j, k]);
                            }
                        }
                    }
                }
            }
        }
    }
}

fn flat(place: [usize; 5], shape: &[usize]) -> usize {
    let skipped = 5 - shape.len();
    let inner = place[..2].iter().chain(&place[2 + skipped..]);
    inner.zip(shape).fold(0, |at, (&i, &n)| at * n + i)
}

fn compare<T: Fused + Convolved + Into<f64>>(
    r: &mut Dice,
    g: &Geometry,
    dims: usize,
    number: fn(f64) -> T,
    tolerance: f64,
) {
    let shapes = shapes(g, dims);
    let factors = shapes.each_ref().map(|s| Strided::random(r, s, |r| number(r.unit() * 2.0 - 1.0)));
    let index =
        |place: [usize; 5]| -> Vec<usize> { place[..2].iter().chain(&place[5 - dims..]).copied().collect() };
    let mut expected = shapes.each_ref().map(|s| vec![0.0; s.iter().product()]);
    products(g, |x, k, y| {
        let [a, b, c] = [(0, x), (1, k), (2, y)].map(|(i, p)| factors[i].at(&index(p)).into());
        expected[0][flat(x, &shapes[0])] += b * c;
        expected[1][flat(k, &shapes[1])] += a * c;
        expected[2][flat(y, &shapes[2])] += a * b;
    });
    let [x, k, y] = factors.each_ref().map(|f| f.view());
    for (face, a, b, which) in [(Face::Output, x, k, 2), (Face::Input, y, k, 0), (Face::Kernel, x, y, 1)] {
        let mut out = vec![number(f64::NAN); expected[which].len()];
        T::convolve(face, g, a, b, &mut out);
        for (i, (a, &b)) in out.iter().zip(&expected[which]).enumerate() {
            let a: f64 = (*a).into();
            assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{face:?} of {g:?} at {i}: {a} for {b}");
        }
    }
}

#[test]
fn every_face_is_the_plain_sum() {
    let mut r = Dice(7);
    for _ in cases(50) {
        let (g, dims) = random(&mut r);
        compare::<f32>(&mut r, &g, dims, |x| x as f32, 1e-4);
        compare::<f64>(&mut r, &g, dims, |x| x, 1e-12);
    }
}

#[test]
fn every_instruction_set_gives_it() {
    let mut r = Dice(9);
    for _ in cases(12) {
        let (g, dims) = random(&mut r);
        with_each_isa(|_| compare::<f32>(&mut r, &g, dims, |x| x as f32, 1e-4));
    }
}
