//! NumPy's rules of indexing, one element at a time, and random indices.

use pullback::{AxisRange, Ellipsis, IndexItem, NewAxis, prelude::*};
use pullback_testing::Dice;

/// One item of an index.
#[derive(Clone, Debug)]
pub enum Item {
    Range(Option<isize>, Option<isize>, isize),
    Position(isize),
    New,
    Ellipsis,
    Integers(Vec<usize>, Vec<i64>),
    Mask(Vec<usize>, Vec<bool>),
}

impl Item {
    pub fn item(&self) -> IndexItem<'static> {
        match self {
            &Item::Range(start, end, step) => AxisRange::Range { start, end, step }.into(),
            Item::Position(at) => (*at).into(),
            Item::New => NewAxis.into(),
            Item::Ellipsis => Ellipsis.into(),
            Item::Integers(shape, at) => Tensor::from_slice(at, shape.as_slice()).into(),
            Item::Mask(shape, is) => Tensor::from_slice(is, shape.as_slice()).into(),
        }
    }
}

pub fn all(items: &[Item]) -> Vec<IndexItem<'static>> {
    items.iter().map(Item::item).collect()
}

/// All positions of a shape, in row-major order.
fn places(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![vec![]], |all, &n| {
        all.iter().flat_map(|p| (0..n).map(move |k| [p.as_slice(), &[k]].concat())).collect()
    })
}

fn flat(shape: &[usize], at: &[usize]) -> usize {
    at.iter().zip(shape).fold(0, |flat, (&k, &n)| flat * n + k)
}

fn from_end(at: isize, n: usize) -> usize {
    (if at < 0 { at + n as isize } else { at }) as usize
}

/// What Python's `range(*slice(start, end, step).indices(n))` lists.
fn listed(start: Option<isize>, end: Option<isize>, step: isize, n: usize) -> Vec<usize> {
    let n = n as isize;
    let place = |p: isize| if p < 0 { p + n } else { p };
    let first = start.map_or(if step > 0 { 0 } else { n - 1 }, |s| {
        place(s).clamp(if step > 0 { 0 } else { -1 }, if step > 0 { n } else { n - 1 })
    });
    let last = end.map_or(if step > 0 { n } else { -1 }, |e| {
        place(e).clamp(if step > 0 { 0 } else { -1 }, if step > 0 { n } else { n - 1 })
    });
    let mut list = Vec::new();
    let mut at = first;
    while if step > 0 { at < last } else { at > last } {
        list.push(at as usize);
        at += step;
    }
    list
}

/// An axis of the tensor after all items are spelled out, or a new one.
enum Spelled {
    Along(Vec<usize>),
    Integers(Vec<usize>, Vec<usize>),
    New,
    Between,
}

/// The shape of the result, and for each of its elements the place in the flattened tensor that it comes from.
pub fn reference(shape: &[usize], items: &[Item]) -> (Vec<usize>, Vec<usize>) {
    let named: usize = items
        .iter()
        .map(|i| match i {
            Item::New | Item::Ellipsis => 0,
            Item::Mask(s, _) => s.len(),
            _ => 1,
        })
        .sum();
    let mut items = items.to_vec();
    if !items.iter().any(|i| matches!(i, Item::Ellipsis)) {
        items.push(Item::Ellipsis);
    }
    let fancy = items.iter().any(|i| matches!(i, Item::Integers(..) | Item::Mask(..)));
    let (mut spelled, mut axis) = (Vec::new(), 0);
    for item in &items {
        match item {
            &Item::Range(a, b, step) => {
                spelled.push(Spelled::Along(listed(a, b, step, shape[axis])));
                axis += 1;
            }
            Item::Position(at) => {
                spelled.push(Spelled::Integers(vec![], vec![from_end(*at, shape[axis])]));
                axis += 1;
            }
            Item::New => spelled.push(Spelled::New),
            Item::Ellipsis => {
                spelled.push(Spelled::Between);
                for _ in 0..shape.len() - named {
                    spelled.push(Spelled::Along((0..shape[axis]).collect()));
                    axis += 1;
                }
            }
            Item::Integers(s, at) => {
                let at = at.iter().map(|&k| from_end(k as isize, shape[axis])).collect();
                spelled.push(Spelled::Integers(s.clone(), at));
                axis += 1;
            }
            Item::Mask(s, is) => {
                // As many lists of positions as the mask has axes.
                let found: Vec<Vec<usize>> =
                    places(s).into_iter().zip(is).filter(|(_, is)| **is).map(|(p, _)| p).collect();
                for k in 0..s.len() {
                    spelled.push(Spelled::Integers(vec![found.len()], found.iter().map(|p| p[k]).collect()));
                }
                axis += s.len();
            }
        }
    }
    let integers = |s: &Spelled| matches!(s, Spelled::Integers(..));
    let mut common: Vec<usize> = vec![];
    for s in &spelled {
        if let Spelled::Integers(other, _) = s {
            let rank = common.len().max(other.len());
            let pad = |s: &[usize]| [vec![1; rank - s.len()], s.to_vec()].concat();
            common =
                pad(&common).into_iter().zip(pad(other)).map(|(a, b)| if a == 1 { b } else { a }).collect();
        }
    }
    let first = spelled.iter().position(integers).unwrap_or(0);
    let last = spelled.iter().rposition(integers).unwrap_or(0);
    let adjacent = spelled[first..=last].iter().all(integers);
    let lengths = |s: &[Spelled]| -> Vec<usize> {
        s.iter()
            .filter_map(|s| match s {
                Spelled::Along(list) => Some(list.len()),
                Spelled::New => Some(1),
                _ => None,
            })
            .collect()
    };
    let before = if fancy && adjacent { lengths(&spelled[..first]).len() } else { 0 };
    let kept = lengths(&spelled);
    let result = [&kept[..before], &common, &kept[before..]].concat();
    let source = |place: &Vec<usize>| {
        let picked = &place[before..before + common.len()];
        let mut other = place[..before].iter().chain(&place[before + common.len()..]);
        let mut at = Vec::new();
        for s in &spelled {
            match s {
                Spelled::Along(list) => at.push(list[*other.next().unwrap()]),
                Spelled::New => drop(other.next()),
                Spelled::Between => {}
                Spelled::Integers(s, list) => {
                    let own: Vec<usize> = s
                        .iter()
                        .zip(&picked[picked.len() - s.len()..])
                        .map(|(&n, &k)| if n == 1 { 0 } else { k })
                        .collect();
                    at.push(list[flat(s, &own)]);
                }
            }
        }
        flat(shape, &at)
    };
    let sources = places(&result).iter().map(source).collect();
    (result, sources)
}

/// A random index of a tensor of the given shape. Tensors of positions broadcast against each other.
pub fn index(r: &mut Dice, shape: &[usize], masks: bool) -> Vec<Item> {
    let common: Vec<usize> = (0..r.roll(3)).map(|_| 1 + r.roll(3)).collect();
    let (mut items, mut axis, mut masked) = (Vec::new(), 0, false);
    let named = if shape.is_empty() { 0 } else { 1 + r.roll(shape.len()) };
    let ellipsis = r.roll(2 * named + 3);
    while axis < named {
        if items.len() == ellipsis && !items.iter().any(|i| matches!(i, Item::Ellipsis)) {
            items.push(Item::Ellipsis);
        }
        // Behind an ellipsis items name the last axes.
        let behind = items.iter().any(|i| matches!(i, Item::Ellipsis));
        let n = shape[if behind { shape.len() - named + axis } else { axis }];
        match r.roll(9) {
            0 => items.push(Item::New),
            1 | 2 => {
                let end = |r: &mut Dice| (r.roll(3) > 0).then(|| r.roll(2 * n + 3) as isize - n as isize - 1);
                items.push(Item::Range(end(r), end(r), [1, 1, 2, -1, -2][r.roll(5)]));
                axis += 1;
            }
            3 if n > 0 => {
                items.push(Item::Position(r.roll(2 * n) as isize - n as isize));
                axis += 1;
            }
            4 if masks && !masked => {
                let from = if behind { shape.len() - named + axis } else { axis };
                let rank = 1 + r.roll(named - axis);
                let s = shape[from..from + rank].to_vec();
                let count = s.iter().product::<usize>();
                // As many as broadcast with the other positions: one, or as many as these have last.
                let wanted = if r.roll(2) == 0 { 1 } else { common.last().copied().unwrap_or(1) };
                if count >= wanted {
                    let mut is = vec![false; count];
                    while is.iter().filter(|i| **i).count() < wanted {
                        is[r.roll(count)] = true;
                    }
                    items.push(Item::Mask(s, is));
                    axis += rank;
                    masked = true;
                }
            }
            5.. if n > 0 => {
                let s: Vec<usize> = common[r.roll(common.len() + 1)..]
                    .iter()
                    .map(|&n| if r.roll(4) == 0 { 1 } else { n })
                    .collect();
                let at = (0..s.iter().product()).map(|_| r.roll(2 * n) as i64 - n as i64).collect();
                items.push(Item::Integers(s, at));
                axis += 1;
            }
            _ => {
                items.push(Item::Range(None, None, 1));
                axis += 1;
            }
        }
    }
    items
}
