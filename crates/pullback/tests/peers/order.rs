use crate::recorded::{Case, check};
use pullback::Between;
use pullback::prelude::*;

/// What the case says about the axis, and about another argument.
fn axis(case: &Case) -> isize {
    case.int("axis") as isize
}

fn is(case: &Case, name: &str) -> bool {
    case.options[name].as_bool().expect("a truth value")
}

fn between(case: &Case) -> Between {
    match case.options["between"].as_str().expect("a word") {
        "linear" => Between::Linear,
        "lower" => Between::Lower,
        "higher" => Between::Higher,
        "nearest" => Between::Nearest,
        "midpoint" => Between::Midpoint,
        other => panic!("no such interpolation: {other}"),
    }
}

fn sorted(case: &Case, x: &Tensor) -> (Tensor, Tensor) {
    if is(case, "descending") { x.sort_descending(axis(case)) } else { x.sort(axis(case)) }
}

fn extremes(case: &Case, x: &Tensor) -> (Tensor, Tensor) {
    let (k, axis) = (case.int("k") as usize, axis(case));
    if is(case, "largest") { x.topk(k, axis) } else { x.bottomk(k, axis) }
}

#[test]
fn reductions_scans_and_orders() {
    check(include_str!("cases/order.json"), |case: &Case, x: &[Tensor]| {
        let number = |name: &str| case.options[name].as_f64().expect("a number");
        let n = || case.int("n") as usize;
        match case.name.as_str() {
            "cumsum" => x[0].cumsum(axis(case)),
            "cumprod" => x[0].cumprod(axis(case)),
            "logcumsumexp" => x[0].cumlogsumexp(axis(case)),
            "cummax" => x[0].cummax(axis(case)),
            "cummin" => x[0].cummin(axis(case)),
            "sort" => sorted(case, &x[0]).0,
            "argsort" => {
                let order = sorted(case, &x[0]).1;
                let alone = if is(case, "descending") { Tensor::argsort_descending } else { Tensor::argsort };
                assert_eq!(alone(&x[0], axis(case)).to_vec::<i64>(), order.to_vec::<i64>());
                order
            }
            "topk" => extremes(case, &x[0]).0,
            "topk_order" => extremes(case, &x[0]).1,
            "kthvalue" => x[0].kthvalue(case.int("k") as usize, axis(case)).0,
            "p_norm" => {
                let p: f64 = case.options["p"].as_str().expect("a number as a word").parse().unwrap();
                x[0].p_norm(p, axis(case))
            }
            "var" => x[0].var_with(axis(case), number("correction")),
            "std" => x[0].std_with(axis(case), number("correction")),
            "quantile" => x[0].quantile_with(number("q"), axis(case), between(case)),
            "median" => x[0].median_axes(axis(case)),
            "count_nonzero" => x[0].count_nonzero_axes(axis(case)),
            "argmax" => x[0].argmax_all(),
            "argmin" => x[0].argmin_all(),
            "unique" => x[0].unique(),
            "searchsorted" if is(case, "right") => x[0].searchsorted_right(&x[1]),
            "searchsorted" => x[0].searchsorted(&x[1]),
            "histogram" => x[0].histogram(&x[1]),
            "bincount" => x[0].bincount(n()),
            "segment_sum" => x[0].segment_sum(&x[1], n()),
            "segment_mean" => x[0].segment_mean(&x[1], n()),
            "segment_amax" => x[0].segment_max(&x[1], n()),
            "segment_amin" => x[0].segment_min(&x[1], n()),
            other => panic!("no such case: {other}"),
        }
    });
}
