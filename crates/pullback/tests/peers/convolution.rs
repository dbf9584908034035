use crate::recorded::{Case, check};
use pullback::prelude::*;
use pullback::{Conv, Interpolation, Pool};

/// An argument that is a list of lengths.
fn list(case: &Case, name: &str) -> Vec<usize> {
    let all = case.options[name].as_array().unwrap_or_else(|| panic!("{} has no list {name}", case.name));
    all.iter().map(|n| n.as_u64().expect("a length") as usize).collect()
}

fn conv(case: &Case) -> Conv {
    let [stride, padding, dilation] = ["stride", "padding", "dilation"].map(|name| list(case, name));
    let both: Vec<(usize, usize)> = padding.iter().map(|&n| (n, n)).collect();
    let options = Conv::new().stride(&stride[..]).dilation(&dilation[..]).groups(case.int("groups") as usize);
    match both[..] {
        [a] => options.padding([a]),
        [a, b] => options.padding([a, b]),
        [a, b, c] => options.padding([a, b, c]),
        _ => panic!("one to three axes"),
    }
}

fn pool(case: &Case) -> Pool {
    let [size, stride, padding] = ["size", "stride", "padding"].map(|name| list(case, name));
    let mut pool = Pool::new(&size[..]).stride(&stride[..]);
    pool = match padding[..] {
        [a] => pool.padding([a]),
        [a, b] => pool.padding([a, b]),
        [a, b, c] => pool.padding([a, b, c]),
        _ => panic!("one to three axes"),
    };
    if !case.options["dilation"].is_null() {
        pool = pool.dilation(&list(case, "dilation")[..]);
    }
    if case.options["ceil_mode"] == true {
        pool = pool.ceil();
    }
    if case.options["count_include_pad"] == false {
        pool = pool.exclude_padding();
    }
    pool
}

#[test]
fn convolution_pooling_and_interpolation() {
    check(include_str!("cases/convolution.json"), |case: &Case, x: &[Tensor]| match case.name.as_str() {
        "conv" => match case.int("axes") {
            1 => x[0].conv1d(&x[1], conv(case)),
            2 => x[0].conv2d(&x[1], conv(case)),
            _ => x[0].conv3d(&x[1], conv(case)),
        },
        "conv_same" => x[0].conv2d(&x[1], Conv::new().same().dilation(case.int("dilation") as usize)),
        "conv_transpose" => {
            let options = conv(case).output_padding(&list(case, "output_padding")[..]);
            match case.int("axes") {
                1 => x[0].conv_transpose1d(&x[1], options),
                2 => x[0].conv_transpose2d(&x[1], options),
                _ => x[0].conv_transpose3d(&x[1], options),
            }
        }
        "max_pool" => match case.int("axes") {
            1 => x[0].max_pool1d(pool(case)),
            2 => x[0].max_pool2d(pool(case)),
            _ => x[0].max_pool3d(pool(case)),
        },
        "max_pool_indices" => x[0].max_pool2d_with_indices(pool(case)).1,
        "avg_pool" => match case.int("axes") {
            1 => x[0].avg_pool1d(pool(case)),
            2 => x[0].avg_pool2d(pool(case)),
            _ => x[0].avg_pool3d(pool(case)),
        },
        "lp_pool" => {
            let (p, size) = (case.options["p"].as_f64().unwrap(), list(case, "size"));
            if case.int("axes") == 1 { x[0].lp_pool1d(p, &size[..]) } else { x[0].lp_pool2d(p, &size[..]) }
        }
        "adaptive_avg_pool" => match (case.int("axes"), &list(case, "to")[..]) {
            (1, to) => x[0].adaptive_avg_pool1d(to),
            (2, to) => x[0].adaptive_avg_pool2d(to),
            (_, to) => x[0].adaptive_avg_pool3d(to),
        },
        "adaptive_max_pool" | "adaptive_max_pool_indices" => {
            let (value, index) = match (case.int("axes"), &list(case, "to")[..]) {
                (1, to) => x[0].adaptive_max_pool1d(to),
                (2, to) => x[0].adaptive_max_pool2d(to),
                (_, to) => x[0].adaptive_max_pool3d(to),
            };
            if case.name.ends_with("indices") { index } else { value }
        }
        "interpolate" => {
            let how = match case.options["mode"].as_str().unwrap() {
                "nearest" => Interpolation::nearest(),
                "bicubic" => Interpolation::cubic(),
                _ => Interpolation::linear(),
            };
            let how = if case.options["corners"] == true { how.align_corners() } else { how };
            x[0].interpolate(list(case, "to"), how)
        }
        other => panic!("no such case: {other}"),
    });
}
