use super::*;
use crate::kernels::isa::forced::with_each_isa;
use crate::kernels::strided::row_major;
use pullback_testing::{Dice, close};

fn random(dice: &mut Dice, n: usize) -> Vec<f64> {
    (0..n).map(|_| dice.roll(2000) as f64 / 1000.0 - 1.0).collect()
}

/// One head, as it is written down: results, totals, and the cotangents of queries, keys and values.
#[allow(clippy::type_complexity)]
fn by_hand(
    l: Lengths,
    [q, k, v, g]: [&[f64]; 4],
    seen: impl Fn(usize, usize) -> bool,
    scale: f64,
) -> (Vec<f64>, Vec<f64>) {
    let mut y = vec![0.0; l.queries * (l.v + 1)];
    let mut out = vec![0.0; l.queries * l.d + l.keys * (l.d + l.v)];
    let (dk, dv) = (l.queries * l.d, l.queries * l.d + l.keys * l.d);
    for i in 0..l.queries {
        let score = |j: usize| scale * (0..l.d).map(|c| q[i * l.d + c] * k[j * l.d + c]).sum::<f64>();
        let total = (0..l.keys).filter(|&j| seen(i, j)).map(|j| score(j).exp()).sum::<f64>();
        let p: Vec<f64> =
            (0..l.keys).map(|j| if seen(i, j) { score(j).exp() / total } else { 0.0 }).collect();
        for c in 0..l.v {
            y[i * l.v + c] = (0..l.keys).map(|j| p[j] * v[j * l.v + c]).sum();
        }
        y[l.queries * l.v + i] = if total == 0.0 { 0.0 } else { total.ln() };
        let h = |j: usize| (0..l.v).map(|c| g[i * l.v + c] * v[j * l.v + c]).sum::<f64>();
        let centre = (0..l.v).map(|c| g[i * l.v + c] * y[i * l.v + c]).sum::<f64>() - g[l.queries * l.v + i];
        for j in 0..l.keys {
            let slope = p[j] * (h(j) - centre) * scale;
            for c in 0..l.d {
                out[i * l.d + c] += slope * k[j * l.d + c];
                out[dk + j * l.d + c] += slope * q[i * l.d + c];
            }
            for c in 0..l.v {
                out[dv + j * l.v + c] += p[j] * g[i * l.v + c];
            }
        }
    }
    (y, out)
}

fn check<T: Real>(l: Lengths, causal: bool, masked: bool, from: fn(f64) -> T, to: fn(T) -> f64, eps: f64) {
    let mut dice = Dice(l.queries as u64 * 7 + l.keys as u64);
    let sizes = [l.queries * l.d, l.keys * l.d, l.keys * l.v, l.queries * (l.v + 1)];
    let data = sizes.map(|n| random(&mut dice, l.heads * n));
    let mask: Vec<u8> = (0..l.heads * l.queries * l.keys).map(|_| (dice.roll(3) > 0) as u8).collect();
    let typed: Vec<Vec<T>> = data.iter().map(|d| d.iter().map(|&x| from(x)).collect()).collect();
    let shapes = [
        vec![l.heads, l.queries, l.d],
        vec![l.heads, l.keys, l.d],
        vec![l.heads, l.keys, l.v],
        vec![l.heads, l.queries * (l.v + 1)],
        vec![l.heads, l.queries, l.keys],
    ];
    let strides: Vec<_> = shapes.iter().map(|s| row_major(s)).collect();
    let view = |k: usize| View::new(&typed[k], 0, &shapes[k], &strides[k]);
    let kept = View::new(&mask, 0, &shapes[4], &strides[4]);
    let how = Attention {
        scale: 0.7,
        causal,
        mask: if masked { Mask::Kept(kept) } else { Mask::None },
        dropout: None,
    };
    let mut y = vec![T::default(); l.heads * sizes[3]];
    attention(view(0), view(1), view(2), &how, &mut y);
    let each = sizes[0] + sizes[1] + sizes[2];
    let mut out = vec![T::default(); l.heads * each];
    let results = Results { y: View::new(&y, 0, &shapes[3], &strides[3]), g: view(3) };
    attention_pullback(view(0), view(1), view(2), results, &how, &mut out);
    for h in 0..l.heads {
        let part = |k: usize| &data[k][h * sizes[k]..(h + 1) * sizes[k]];
        let seen = |i: usize, j: usize| {
            (!causal || j <= i) && (!masked || mask[(h * l.queries + i) * l.keys + j] != 0)
        };
        let (expected, cotangents) = by_hand(l, [part(0), part(1), part(2), part(3)], seen, 0.7);
        let same = |a: &[T], b: &[f64], what: &str| {
            for (i, (&a, &b)) in a.iter().zip(b).enumerate() {
                assert!(close(to(a), b, eps), "{what} {i} of head {h}: {} for {b}", to(a));
            }
        };
        same(&y[h * sizes[3]..(h + 1) * sizes[3]], &expected, "result");
        same(&out[h * each..(h + 1) * each], &cotangents, "cotangent");
    }
}

#[test]
fn tiles_are_the_whole() {
    let all = [
        [1, 1, 1, 1, 1],
        [2, 3, 5, 2, 3],
        [1, 70, 140, 9, 17],
        [3, 130, 33, 16, 8],
        [1, 65, 129, 33, 40],
        [1, 5, 0, 2, 2],
        [2, 0, 3, 2, 2],
    ];
    for [heads, queries, keys, d, v] in all {
        let l = Lengths { heads, queries, keys, d, v };
        for (causal, masked) in [(false, false), (true, false), (false, true), (true, true)] {
            with_each_isa(|_| {
                check::<f64>(l, causal, masked, |x| x, |x| x, 1e-12);
                check::<f32>(l, causal, masked, |x| x as f32, |x| x as f64, 1e-4);
            });
        }
    }
}
