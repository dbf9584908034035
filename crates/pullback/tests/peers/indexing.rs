use crate::recorded::{Case, check};
use pullback::{AxisRange, Ellipsis, IndexItem, NewAxis, PadMode, prelude::*};

fn list(case: &Case, name: &str) -> Vec<usize> {
    let all = case.options[name].as_array().expect("a list");
    all.iter().map(|v| v.as_u64().expect("a whole number") as usize).collect()
}

fn pad(case: &Case) -> PadMode {
    match case.options["mode"].as_str() {
        Some("reflect") => PadMode::Reflect,
        Some("symmetric") => PadMode::Symmetric,
        Some("edge") => PadMode::Edge,
        Some("wrap") => PadMode::Wrap,
        other => panic!("no such mode: {other:?}"),
    }
}

/// The cases of NumPy's indexing, in the order of the script.
fn index(case: &Case, x: &Tensor) -> Tensor {
    let a = &Tensor::from([[0, 1], [1, 1]]);
    let m = &Tensor::from([[true, false, true], [false, true, true]]);
    let b = [2, -1];
    match case.int("index") {
        0 => x.index(a),
        1 => x.index((.., b)),
        2 => x.index((Ellipsis, b)),
        3 => x.index((a, b)),
        4 => x.index((a, .., b)),
        5 => x.index((0, .., b)),
        6 => x.index((.., 1, b)),
        7 => x.index((1.., b, 0)),
        8 => x.index((.., NewAxis, [0, 1], b)),
        9 => x.index(([0, 1], NewAxis, b)),
        10 => x.index((.., AxisRange::from(..).step(-2), b)),
        11 => x.index(m),
        12 => x.index((m, 1..3)),
        13 => x.index((.., [true, false, true])),
        14 => x.index(([true, false], Ellipsis, b)),
        15 => x.index((.., a, Ellipsis, b)),
        other => panic!("no such index: {other}"),
    }
}

fn named(case: &Case) -> Vec<IndexItem<'static>> {
    match case.int("index") {
        0 => vec![(..).into(), [2, 0].into()],
        1 => vec![[0, 1, 1].into(), [2, -1, 0].into()],
        2 => vec![Tensor::from([[true, false, true], [false, true, true]]).into()],
        3 => vec![0.into(), (1..).into()],
        other => panic!("no such index: {other}"),
    }
}

#[test]
fn layout_and_indexing() {
    check(include_str!("cases/indexing.json"), |case: &Case, x: &[Tensor]| {
        let int = |name| case.int(name) as isize;
        match case.name.as_str() {
            "flatten_axes" => x[0].flatten_axes(int("start"), int("end")),
            "swap_axes" => x[0].swap_axes(int("a"), int("b")),
            "move_axis" => x[0].move_axis(0, int("to")),
            "roll" => x[0].roll(int("shift"), int("axis")),
            "tile" => x[0].tile(&list(case, "times")),
            "repeat_interleave" => x[0].repeat_interleave(list(case, "times"), int("axis")),
            "flip" => x[0].flip(&list(case, "axes")[..]),
            "rot90" => x[0].rot90(int("times"), int("a"), int("b")),
            "chunk" => x[0].chunk(int("n") as usize, int("axis")).pop().expect("a piece"),
            "diagonal" => x[0].diagonal(int("offset"), int("a"), int("b")),
            "tril" => x[0].tril(int("offset")),
            "triu" => x[0].triu(int("offset")),
            "diag_embed" => x[0].diag_embed(int("offset")),
            "diag" => x[0].diag(int("offset")),
            "unfold" => x[0].unfold(int("axis"), int("size") as usize, int("step") as usize),
            // Columns are windows there.
            "fold" => x[0].t().fold(0, int("step") as usize, int("length") as usize),
            "pad" => {
                let widths: Vec<(usize, usize)> =
                    list(case, "widths").chunks(2).map(|w| (w[0], w[1])).collect();
                let rank = widths.len();
                x[0].reshape(&x[0].shape()[x[0].rank() - rank..]).pad(&widths, pad(case))
            }
            "eye" => Tensor::eye([int("n") as usize, int("m") as usize]),
            "meshgrid" => Tensor::meshgrid(x).swap_remove(int("k") as usize),
            "hstack" => Tensor::hstack(x),
            "vstack" => Tensor::vstack(x),
            "take" => x[0].take(int("axis"), &x[1]),
            "take_along_axis" => x[0].take_along_axis(int("axis"), &x[1]),
            "embedding" => x[0].embedding(&x[1]),
            "put" => x[0].put(&x[1], &x[2]),
            "scatter" => x[0].scatter(int("axis"), &x[1], &x[2]),
            "scatter_mul" => x[0].scatter_mul(int("axis"), &x[1], &x[2]),
            "scatter_max" => x[0].scatter_max(int("axis"), &x[1], &x[2]),
            "scatter_min" => x[0].scatter_min(int("axis"), &x[1], &x[2]),
            "masked_select" => x[0].masked_select(&x[1]),
            "compress" => x[0].compress(int("axis"), &x[1]),
            "nonzero" => x[0].nonzero(),
            "one_hot" => x[0].one_hot(int("n") as usize, DType::F64),
            "index" => index(case, &x[0]),
            "set" => x[0].at(named(case)).set(&x[1]),
            "add" => x[0].at(named(case)).add(&x[1]),
            other => panic!("no such case: {other}"),
        }
    });
}
