//! Running totals of an associative operation, in logarithmic depth.

use super::{Steps, first_misfit};
use crate::AxisRange;
use crate::error::{Result, caught, err, or_panic};
use crate::tensor::Tensor;
use crate::transform::{Tree, from_leaves, vmap};
use std::panic::Location;

/// All running totals `x0`, `x0 * x1`, `x0 * x1 * x2`, .. of an associative operation, along the first axis. The operation is given
/// for two elements; it runs on many pairs at once, in `2 log2 n` rounds where [`scan`](crate::scan) needs `n` steps.
///
/// ```
/// use pullback::{associative_scan, prelude::*};
/// // A linear recurrence h <- a h + b, as a composition of affine maps.
/// let after = |f: &(Tensor, Tensor), g: &(Tensor, Tensor)| (&g.0 * &f.0, &g.0 * &f.1 + &g.1);
/// let (a, b) = (Tensor::from([0.5, 0.5, 2.0]), Tensor::from([1.0, 1.0, 1.0]));
/// let (_, h) = associative_scan(after, &(a, b));
/// assert_eq!(h.to_vec::<f64>(), [1.0, 1.5, 4.0]);
/// ```
#[track_caller]
pub fn associative_scan<X: Tree>(op: impl Fn(&X, &X) -> X, xs: &X) -> X {
    let location = Location::caller();
    let _entered = crate::location::entered(location);
    let combine = |(a, b): &(X, X)| {
        let both = op(a, b);
        or_panic(same_element(a, &both).map_err(|e| e.in_op("associative_scan").at(location)));
        both
    };
    let run =
        xs.count().and_then(|n| caught(|| totals(&vmap(combine), xs.map(&mut Tensor::clone), n)).flatten());
    or_panic(run.map_err(|e| e.in_op("associative_scan").at(location)))
}

/// An error unless the operation returns what it takes.
fn same_element<X: Tree>(a: &X, both: &X) -> Result<()> {
    let wrong = |e| err!(Structure, "the operation changes the structure of its elements: {e}");
    a.same_structure(both).map_err(wrong)?;
    match first_misfit(a, both) {
        None => Ok(()),
        Some((place, a, both)) => Err(err!(
            Shape,
            "the elements{place} are {} {:?}, but the operation returns {} {:?} for two of them; it must keep their shape and \
             type",
            a.dtype(),
            a.shape(),
            both.dtype(),
            both.shape()
        )),
    }
}

/// The totals of pairs of neighbours, by recursion, are every second total; one more operation gives those between.
fn totals<X: Tree>(op: &impl Fn(&(X, X)) -> X, xs: X, n: usize) -> Result<X> {
    if n < 2 {
        return Ok(xs);
    }
    let pairs = op(&(part(&xs, 0, n - 1, 2), part(&xs, 1, n, 2)));
    let odd = totals(op, pairs, n / 2)?;
    if n == 2 {
        return join(&[part(&xs, 0, 1, 1), odd]);
    }
    let even = op(&(part(&odd, 0, (n - 1) / 2, 1), part(&xs, 2, n, 2)));
    let even = join(&[part(&xs, 0, 1, 1), even])?;
    let woven = even.try_zip(&odd, |even, odd| {
        let pairs = n / 2;
        let mut shape = odd.shape().to_vec();
        shape[0] = 2 * pairs;
        Tensor::stack(&[even.narrow(0, 0, pairs), odd.clone()], 1).reshape(shape)
    })?;
    match n % 2 {
        0 => Ok(woven),
        _ => join(&[woven, part(&even, n / 2, n / 2 + 1, 1)]),
    }
}

/// Every `step`-th element from `start` on, before `end`.
fn part<X: Tree>(xs: &X, start: usize, end: usize, step: isize) -> X {
    let range = AxisRange::from(start as isize..end as isize).step(step);
    xs.map(&mut |t| t.slice(range))
}

fn join<X: Tree>(parts: &[X; 2]) -> Result<X> {
    let [a, b] = parts;
    let joined = a.leaves().into_iter().zip(b.leaves()).map(|(a, b)| Tensor::try_concat(&[a, b], 0));
    Ok(from_leaves(a, joined.collect::<Result<Vec<Tensor>>>()?))
}
