//! Tensors as text and as JSON.

use pullback::Tensor;
use pullback_expr::json::Json;
use pullback_expr::{Digits, number};

/// More elements than this are summed up.
const FEW: usize = 6;

/// A number, `[1, 2; 3, 4]`, or what can be said of many.
pub fn text(t: &Tensor, digits: Digits) -> String {
    let v = t.to_vec::<f64>();
    let show = |v: &f64| number(*v, digits);
    if t.dtype() == pullback::DType::Bool && v.len() == 1 {
        return (if v[0] != 0.0 { "true" } else { "false" }).to_string();
    }
    match (t.shape(), v.len()) {
        ([], _) => show(&v[0]),
        (shape, n) if n > FEW || n == 0 || shape.len() > 2 => summary(shape, &v),
        ([_], _) => format!("[{}]", v.iter().map(show).collect::<Vec<_>>().join(", ")),
        (shape, _) => {
            let rows: Vec<String> =
                v.chunks(shape[1]).map(|r| r.iter().map(show).collect::<Vec<_>>().join(", ")).collect();
            format!("[{}]", rows.join("; "))
        }
    }
}

fn summary(shape: &[usize], v: &[f64]) -> String {
    let lengths: Vec<String> = shape.iter().map(usize::to_string).collect();
    let shape = lengths.join("×");
    if v.is_empty() {
        return shape;
    }
    let short = |v: f64| number(v, Digits::Significant(4));
    let low = v.iter().copied().fold(f64::INFINITY, f64::min);
    let high = v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!(
        "{shape} from {} to {}, mean {}",
        short(low),
        short(high),
        short(v.iter().sum::<f64>() / v.len() as f64)
    )
}

/// A number, or lists in lists.
pub fn json(t: &Tensor) -> Json {
    if t.dtype() == pullback::DType::Bool && t.rank() == 0 {
        return Json::Bool(t.to_vec::<f64>()[0] != 0.0);
    }
    nested(t.shape(), &t.to_vec::<f64>())
}

fn nested(shape: &[usize], v: &[f64]) -> Json {
    match shape {
        [] => Json::Number(v[0]),
        [_] => Json::list(v.iter().map(|v| Json::Number(*v))),
        [0, ..] => Json::List(Vec::new()),
        [n, rest @ ..] => Json::list((0..*n).map(|k| {
            let part = v.len() / n;
            nested(rest, &v[k * part..(k + 1) * part])
        })),
    }
}
