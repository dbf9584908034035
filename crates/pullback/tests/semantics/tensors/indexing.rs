//! Indexing and updates by random indices, against a slow reference that follows NumPy's rules one element at a time.

mod reference;

use super::*;
use pullback::{Ellipsis, IndexItem, vmap_axes};
use pullback_testing::{Dice, assert_close, message};
use reference::{Item, all, index, reference};

fn drawn(r: &mut Dice) -> Vec<usize> {
    (0..r.roll(5)).map(|_| if r.roll(12) == 0 { 0 } else { 1 + r.roll(4) }).collect()
}

fn numbers(r: &mut Dice, shape: &[usize]) -> Tensor {
    let all: Vec<f64> = (0..shape.iter().product()).map(|_| r.unit()).collect();
    Tensor::from_slice(&all, shape)
}

/// The same numbers in another layout.
fn laid_out(r: &mut Dice, x: &Tensor) -> Tensor {
    let back: Vec<isize> = (0..x.rank() as isize).rev().collect();
    match r.roll(3) {
        0 => Tensor::concat(&[&x.permute(&back).reshape(x.numel()), &Tensor::zeros([0])], 0)
            .reshape(x.shape().iter().rev().copied().collect::<Vec<_>>())
            .permute(&back),
        1 if x.rank() > 0 => x.flip(0).detach().flip(0),
        _ => x.clone(),
    }
}

#[test]
fn random_indices_pick_what_the_reference_does() {
    let mut r = Dice(7);
    let mut mixed = 0;
    for _ in 0..3000 {
        let shape = drawn(&mut r);
        let items = index(&mut r, &shape, true);
        let x = numbers(&mut r, &shape);
        let x = laid_out(&mut r, &x);
        let (result, sources) = reference(&shape, &items);
        let (y, pull) = vjp(|x: &Tensor| x.index(all(&items)), &x);
        assert_eq!(y.shape(), result, "{shape:?} {items:?}");
        let elements = x.to_vec::<f64>();
        let expected: Vec<f64> = sources.iter().map(|&k| elements[k]).collect();
        assert_eq!(y.to_vec::<f64>(), expected, "{shape:?} {items:?}");
        let g = numbers(&mut r, &result);
        let mut expected = vec![0.0; x.numel()];
        sources.iter().zip(g.to_vec::<f64>()).for_each(|(&k, g)| expected[k] += g);
        assert_close(&pull(&g).to_vec::<f64>(), &expected, 1e-13);
        assert_eq!(jvp(|x: &Tensor| x.index(all(&items)), &x, &x).1.to_vec::<f64>(), y.to_vec::<f64>());
        mixed += usize::from(
            items.iter().filter(|i| matches!(i, Item::Integers(..) | Item::Mask(..))).count() > 1,
        );
    }
    assert!(mixed > 500, "{mixed} indices had several tensors");
}

/// Values and gradients of an update, by the reference.
fn updated(how: &str, x: &[f64], sources: &[usize], v: &[f64], g: &[f64]) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let at = |k: usize| {
        sources.iter().zip(v).enumerate().filter(move |(_, (s, _))| **s == k).map(|(j, (_, &v))| (j, v))
    };
    let (mut y, mut dx, mut dv) = (x.to_vec(), g.to_vec(), vec![0.0; v.len()]);
    for k in 0..x.len() {
        let Some((last, value)) = at(k).next_back() else { continue };
        match how {
            "set" => {
                (y[k], dx[k]) = (value, 0.0);
                dv[last] = g[k];
            }
            "add" => at(k).for_each(|(j, v)| {
                y[k] += v;
                dv[j] = g[k];
            }),
            "mul" => {
                let product = |but: Option<usize>| {
                    at(k).filter(|(j, _)| Some(*j) != but).map(|(_, v)| v).product::<f64>()
                };
                y[k] = x[k] * product(None);
                dx[k] = g[k] * product(None);
                at(k).for_each(|(j, _)| dv[j] = g[k] * x[k] * product(Some(j)));
            }
            _ => {
                let sign = if how == "max" { 1.0 } else { -1.0 };
                let best = at(k).map(|(_, v)| sign * v).fold(sign * x[k], f64::max);
                y[k] = sign * best;
                let ties = at(k).filter(|(_, v)| *v == y[k]).count() + usize::from(x[k] == y[k]);
                let share = g[k] / ties as f64;
                dx[k] = if x[k] == y[k] { share } else { 0.0 };
                at(k).filter(|(_, v)| *v == y[k]).for_each(|(j, _)| dv[j] = share);
            }
        }
    }
    (y, dx, dv)
}

fn update(how: &str, x: &Tensor, items: &[Item], v: &Tensor) -> Tensor {
    let selected = x.at(all(items));
    match how {
        "set" => selected.set(v),
        "add" => selected.add(v),
        "mul" => selected.mul(v),
        "max" => selected.max(v),
        _ => selected.min(v),
    }
}

#[test]
fn random_updates_are_those_of_the_reference() {
    let mut r = Dice(11);
    for case in 0..3000 {
        let shape = drawn(&mut r);
        let items = index(&mut r, &shape, true);
        let (result, sources) = reference(&shape, &items);
        let how = ["set", "add", "mul", "max", "min"][case % 5];
        // Small whole numbers tie now and then, and some are zero.
        let round = |t: Tensor| if case % 2 == 0 { (t * 2.0).round() } else { t };
        let (x, v) = (round(numbers(&mut r, &shape)), round(numbers(&mut r, &result)));
        let (x, v) = (laid_out(&mut r, &x), laid_out(&mut r, &v));
        let f = |(x, v): &(Tensor, Tensor)| update(how, x, &items, v);
        let (y, pull) = vjp(f, &(x.clone(), v.clone()));
        let g = numbers(&mut r, &shape);
        let (dx, dv) = pull(&g);
        let all: Vec<Vec<f64>> = [&x, &v, &g].iter().map(|t| t.to_vec::<f64>()).collect();
        let (ey, ex, ev) = updated(how, &all[0], &sources, &all[1], &all[2]);
        for (found, expected) in [(&y, ey), (&dx, ex), (&dv, ev)] {
            let near = found.to_vec::<f64>().iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12);
            assert!(
                near && found.numel() == expected.len(),
                "{how} {shape:?} {items:?}\n{found}\nfor {expected:?}"
            );
        }
        // Forward mode says the same.
        let (a, b) = (numbers(&mut r, &shape), numbers(&mut r, &result));
        let along = jvp(f, &(x, v), &(a.clone(), b.clone())).1;
        let (forward, backward) = ((along * &g).sum().item(), ((a * dx).sum() + (b * dv).sum()).item());
        assert!((forward - backward).abs() < 1e-11, "{how} {shape:?} {items:?}: {forward} {backward}");
    }
}

/// A tensor, the values it gets, and where.
type Lane = (Tensor, Tensor, Vec<Tensor>);

/// Compiled, and under `vmap` with the tensor, the positions, the values or all of them different in each lane.
#[test]
fn random_indices_agree_in_all_transforms() {
    let mut r = Dice(13);
    let lanes = 3;
    for case in 0..100 {
        let shape = drawn(&mut r);
        let items = index(&mut r, &shape, false);
        let how = ["get", "set", "add", "mul", "max"][case % 5];
        // Other positions in each lane, of the same shapes.
        let axes = |items: &[Item]| {
            items
                .iter()
                .filter_map(|i| {
                    if let Item::Integers(s, at) = i {
                        Some(Tensor::from_slice(at, s.as_slice()))
                    } else {
                        None
                    }
                })
                .collect::<Vec<Tensor>>()
        };
        let own = axes(&items);
        let (result, _) = reference(&shape, &items);
        let with = |index: &[Tensor]| {
            let mut index = index.iter();
            let item = |i: &Item| {
                if let Item::Integers(..) = i {
                    IndexItem::from(index.next().unwrap().clone())
                } else {
                    i.item()
                }
            };
            items.iter().map(item).collect::<Vec<_>>()
        };
        let f = |(x, v, index): &(Tensor, Tensor, Vec<Tensor>)| {
            let items = with(index);
            match how {
                "get" => x.index(items) * v,
                "set" => x.at(items).set(v),
                "add" => x.at(items).add(v),
                "mul" => x.at(items).mul(v),
                _ => x.at(items).max(v),
            }
        };
        let gradient = |all: &(Tensor, Tensor, Vec<Tensor>)| {
            let index = all.2.clone();
            grad(move |(x, v): &(Tensor, Tensor)| f(&(x.clone(), v.clone(), index.clone())).square().sum())(
                &(all.0.clone(), all.1.clone()),
            )
        };
        let lane = |r: &mut Dice, k: usize| {
            let turned = |t: &Tensor| if k == 0 || t.rank() == 0 { t.clone() } else { t.roll(1, 0) };
            (numbers(r, &shape), numbers(r, &result), own.iter().map(turned).collect())
        };
        let each: Vec<_> = (0..lanes).map(|k| lane(&mut r, k)).collect();
        let what = format!("{how} {shape:?} {items:?}");
        let (value, slopes) = (f(&each[0]), gradient(&each[0]));
        let compiled = compile(f).call(&each[0]);
        assert_eq!(compiled.to_vec::<f64>(), value.to_vec::<f64>(), "{what}");
        let compiled = compile(gradient).call(&each[0]);
        assert_close(&compiled.0.to_vec::<f64>(), &slopes.0.to_vec::<f64>(), 1e-12);
        assert_close(&compiled.1.to_vec::<f64>(), &slopes.1.to_vec::<f64>(), 1e-12);
        // Which of the inputs are mapped.
        for subset in 1..8 {
            let mapped = |bit: usize| subset >> bit & 1 == 1;
            if own.is_empty() && subset == 4 {
                continue;
            }
            let pick = |k: usize| {
                let of = |bit: usize| &each[if mapped(bit) { k } else { 0 }];
                (of(0).0.clone(), of(1).1.clone(), of(2).2.clone())
            };
            let rows: Vec<_> = (0..lanes).map(pick).collect();
            let stack = |of: &dyn Fn(&Lane) -> Tensor, bit: usize| match mapped(bit) {
                true => Tensor::stack(&rows.iter().map(of).collect::<Vec<_>>(), 0),
                false => of(&rows[0]),
            };
            let index = (0..own.len()).map(|j| stack(&|r| r.2[j].clone(), 2)).collect::<Vec<_>>();
            let all = (stack(&|r| r.0.clone(), 0), stack(&|r| r.1.clone(), 1), index);
            let axes: Vec<Option<isize>> = [mapped(0).then_some(0), mapped(1).then_some(0)]
                .into_iter()
                .chain(own.iter().map(|_| mapped(2).then_some(0)))
                .collect();
            let batched = vmap_axes(f, &axes, 0)(&all);
            let single = Tensor::stack(&rows.iter().map(f).collect::<Vec<_>>(), 0);
            assert_eq!(batched.to_vec::<f64>(), single.to_vec::<f64>(), "{what} {subset}");
            let batched = vmap_axes(gradient, &axes, 0)(&all);
            let single: Vec<_> = rows.iter().map(gradient).collect();
            let stacked = |of: fn(&(Tensor, Tensor)) -> Tensor| {
                Tensor::stack(&single.iter().map(of).collect::<Vec<_>>(), 0).to_vec::<f64>()
            };
            assert_close(&batched.0.to_vec::<f64>(), &stacked(|g| g.0.clone()), 1e-12);
            assert_close(&batched.1.to_vec::<f64>(), &stacked(|g| g.1.clone()), 1e-12);
        }
    }
}

#[test]
fn a_product_at_one_place_is_exact_at_zeros_to_the_second_order() {
    let at = Tensor::from([0, 1, 0, 0]);
    let x = Tensor::from([3.0, 5.0]);
    let f = |v: &Tensor| x.at(&at).mul(v).sum();
    let v = Tensor::from([0.0, 2.0, 0.0, 7.0]);
    assert_eq!(grad(f)(&v).to_vec::<f64>(), [0.0, 5.0, 0.0, 0.0]);
    let second = [0.0, 0.0, 21.0, 0.0, 0.0, 0.0, 0.0, 0.0, 21.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(hessian(f)(&v).to_vec::<f64>(), second);
    assert_eq!(compile(hessian(f)).call(&v).to_vec::<f64>(), second);
}

#[test]
fn masks_of_unknown_values_keep_the_shape_or_are_refused() {
    let x = Tensor::from([[1.0, -2.0], [-3.0, 4.0]]);
    let f = |x: &Tensor| x.at(x.lt(0.0)).set(0.0) + x.at(x.lt(0.0)).mul(Tensor::from([10.0]));
    assert_eq!(f(&x).to_vec::<f64>(), [2.0, -20.0, -30.0, 8.0]);
    assert_eq!(compile(f).call(&x).to_vec::<f64>(), f(&x).to_vec::<f64>());
    assert_eq!(vmap(|x: &Tensor| x.at(x.lt(0.0)).max(0.5))(&x).to_vec::<f64>(), [1.0, 0.5, 0.5, 4.0]);
    // Rows and columns that a mask selects.
    let (rows, columns) = (Tensor::from([false, true]), Tensor::from([true, false]));
    let mixed = |x: &Tensor| {
        x.at(&rows).add(Tensor::from([10.0, 20.0])).at((.., &columns)).mul(Tensor::from([[2.0], [3.0]]))
    };
    assert_eq!(compile(mixed).call(&x).to_vec::<f64>(), [2.0, -2.0, 21.0, 24.0]);
    assert_eq!(mixed(&x).to_vec::<f64>(), [2.0, -2.0, 21.0, 24.0]);
    for refused in [
        message(|| compile(|x: &Tensor| x.index(x.gt(0.0))).call(&x)),
        message(|| compile(|x: &Tensor| x.masked_select(&x.gt(0.0))).call(&x)),
        message(|| compile(|x: &Tensor| x.at(x.gt(0.0)).set(Tensor::from([1.0, 2.0]))).call(&x)),
        message(|| vmap(|x: &Tensor| x.nonzero())(&x)),
    ] {
        assert!(refused.contains("values of a mask") && refused.contains("where_"), "{refused}");
    }
}

#[test]
fn wrong_indices_say_what_is_wrong() {
    let x = Tensor::zeros([2, 3]);
    let refused = |r: pullback::Result<Tensor>, words: &[&str]| {
        let e = r.unwrap_err().to_string();
        assert!(words.iter().all(|w| e.contains(w)), "{e} has none of {words:?}");
    };
    refused(x.try_index([0, 2]), &["index: ", "index 2", "position 1", "length 2"]);
    refused(x.try_index(([0, 1], [0, -4])), &["index: ", "index -4", "length 3"]);
    refused(x.try_index([usize::MAX]), &["index: ", "length 2"]);
    refused(x.try_index([isize::MIN]), &["index: ", "length 2"]);
    refused(x.try_index((0, 3)), &["index: ", "position 3", "length 3"]);
    refused(x.try_index((0, 0, 0)), &["index: ", "3 axes", "[2, 3]"]);
    refused(x.try_index((Ellipsis, Ellipsis)), &["one ellipsis"]);
    refused(x.try_index(([0, 1], [0, 1, 2])), &["[2]", "[3]", "broadcast"]);
    refused(x.try_index([true, false, true]), &["[3]", "[2, 3]"]);
    refused(x.try_index(Tensor::from([0.5])), &["integers or truth values", "f64"]);
    refused(x.at(0).try_set(Tensor::zeros([2])), &["at.set: ", "[2]", "[3]"]);
    refused(x.at([5]).try_add(1.0), &["at.add: ", "index 5"]);
    refused(x.try_scatter(1, &Tensor::from([[3]]), 1.0), &["scatter: ", "index 3", "length 3"]);
    refused(x.try_put(&Tensor::from([6]), 1.0), &["put: ", "index 6", "length 6"]);
    refused(Tensor::from([3]).try_one_hot(3, DType::F64), &["one_hot: ", "index 3", "length 3"]);
    refused(x.try_pad(&[(0, 0), (0, 0)], 1.0).and_then(|x| x.try_unfold(1, 4, 1)), &["unfold: ", "[2, 3]"]);
    refused(x.try_take(1, &Tensor::from([[0, 9]])), &["take: ", "index 9"]);
}
