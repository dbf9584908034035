//! The conventions where a function has no derivative.

use super::*;

/// The table of guide/semantics.md.
#[test]
fn the_subgradient_of_least_norm() {
    assert_eq!(slope(|x| x.relu(), 0.0), 0.0);
    assert_eq!(slope(|x| x.abs(), 0.0), 0.0);
    assert_eq!(slope(|x| x.sign(), 0.0), 0.0);
    assert_eq!(slope(|x| x.norm(), 0.0), 0.0);
    assert_eq!(slope(|x| x.hypot(0.0), 0.0), 0.0);
    assert_eq!(slope(|x| x.atan2(x * 0.0), 0.0), 0.0);
    assert_eq!(slope(|x| (x * Tensor::ones([3])).std(), 5.0), 0.0);
    assert_eq!(slope(|x| x.logaddexp(f64::NEG_INFINITY), f64::NEG_INFINITY), 0.5);
    assert_eq!(slope(|x| x.maximum(0.0), 0.0), 0.5);
    assert_eq!(slope(|x| x.minimum(0.0), 0.0), 0.5);
    assert_eq!(slope(|x| x.floor() + x.ceil() + x.round() + x.trunc(), 1.0), 0.0);
    for at in [-1.0, 0.3, 1.0] {
        assert_eq!(slope(|x| x.clamp(-1.0, 1.0), at), 1.0, "clamp includes its ends");
    }
    assert_eq!(slope(|x| x.clamp(-1.0, 1.0), 1.0 + 1e-12), 0.0);
}

#[test]
fn ties_share_equally() {
    let (a, b) = grad(|(a, b): &(Tensor, Tensor)| a.maximum(b))(&(scalar(2.0), scalar(2.0)));
    assert_eq!((a.item(), b.item()), (0.5, 0.5));
    let x = Tensor::from([[1.0, 7.0, 7.0], [4.0, 4.0, 4.0]]);
    let third = 1.0 / 3.0;
    let g = grad(|x: &Tensor| x.max_axes(1).sum())(&x).to_vec::<f64>();
    assert_eq!(g, [0.0, 0.5, 0.5, third, third, third]);
    let g = grad(|x: &Tensor| x.min())(&Tensor::from([2.0, 2.0, 2.0, 2.0])).to_vec::<f64>();
    assert_eq!(g, [0.25; 4]);
}

#[test]
fn forward_mode_follows_the_same_table() {
    let both = |f: fn(&Tensor) -> Tensor, at: f64| {
        let forward = jvp(f, &scalar(at), &scalar(1.0)).1.item();
        assert_eq!(forward, slope(f, at));
    };
    both(|x| x.relu(), 0.0);
    both(|x| x.abs(), 0.0);
    both(|x| x.norm(), 0.0);
    both(|x| x.maximum(0.0), 0.0);
    both(|x| x.clamp(0.0, 1.0), 0.0);
}

#[test]
fn the_norm_away_from_its_kink() {
    let g = grad(|x: &Tensor| x.norm())(&Tensor::from([3.0, 4.0])).to_vec::<f64>();
    assert!((g[0] - 0.6).abs() < 1e-15 && (g[1] - 0.8).abs() < 1e-15);
}
