//! Printing tensors as NumPy does: aligned columns, nested brackets, a summary of what is large.

use super::Tensor;
use crate::dtype::Scalar;
use std::fmt;

/// Larger tensors are summarised.
const LIMIT: usize = 1000;
/// How much of each end of an axis a summary shows.
const EDGE: usize = 3;

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.concrete().is_err() {
            return write!(f, "<{} {:?}, not known here>", self.dtype(), self.shape());
        }
        let shown = if self.numel() > LIMIT { self.edges() } else { self.stripped() };
        let texts = texts(&shown.scalars(), f.precision());
        let width = texts.iter().map(String::len).max().unwrap_or(0);
        let mut cells = texts.iter().map(|t| format!("{t:>width$}"));
        write_axis(f, self.shape(), self.numel() > LIMIT, 0, &mut cells)
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({self}, {}, {:?})", self.dtype(), self.shape())
    }
}

impl Tensor {
    /// The corners that a summary shows.
    fn edges(&self) -> Tensor {
        (0..self.rank()).fold(self.stripped(), |t, k| {
            let n = t.shape()[k];
            if n <= 2 * EDGE {
                return t;
            }
            Tensor::concat(&[t.narrowed(k, 0, EDGE), t.narrowed(k, n - EDGE, EDGE)], k as isize)
        })
    }
}

/// Numbers with as many digits as tell them apart, at most `precision` (8) after the point.
fn texts(values: &[Scalar], precision: Option<usize>) -> Vec<String> {
    let finite = || {
        values
            .iter()
            .filter_map(|v| if let Scalar::F64(v) = v { Some(v.abs()) } else { None })
            .filter(|v| v.is_finite())
    };
    let largest = finite().fold(0.0, f64::max);
    let smallest = finite().filter(|&v| v > 0.0).fold(f64::INFINITY, f64::min);
    let scientific = largest >= 1e8
        || (smallest < 1e-4 && largest > 0.0)
        || (smallest.is_finite() && largest / smallest > 1e8);
    let most = precision.unwrap_or(8);
    let digits = |v: f64| {
        let text = if scientific { format!("{v:.most$e}") } else { format!("{v:.most$}") };
        let mantissa = text.split('e').next().unwrap_or("");
        mantissa.split_once('.').map_or(0, |(_, d)| d.trim_end_matches('0').len())
    };
    let digits = finite().map(digits).max().unwrap_or(0);
    let one = |v: &Scalar| match *v {
        Scalar::Bool(b) => b.to_string(),
        Scalar::I64(n) => n.to_string(),
        Scalar::F64(v) if !v.is_finite() => v.to_string(),
        Scalar::F64(v) if scientific => format!("{v:.digits$e}"),
        Scalar::F64(v) if digits == 0 => format!("{v:.0}."),
        Scalar::F64(v) => format!("{v:.digits$}"),
    };
    values.iter().map(one).collect()
}

fn write_axis(
    f: &mut fmt::Formatter<'_>,
    shape: &[usize],
    summary: bool,
    depth: usize,
    cells: &mut impl Iterator<Item = String>,
) -> fmt::Result {
    let Some((&n, inner)) = shape.split_first() else {
        return f.write_str(&cells.next().unwrap_or_default());
    };
    let cut = summary && n > 2 * EDGE;
    let shown = if cut { 2 * EDGE } else { n };
    f.write_str("[")?;
    for k in 0..shown {
        if k > 0 {
            if inner.is_empty() {
                f.write_str(" ")?;
            } else {
                let newlines = "\n".repeat(inner.len());
                write!(f, "{newlines}{}", " ".repeat(depth + 1))?;
            }
        }
        if cut && k == EDGE {
            match inner.is_empty() {
                true => f.write_str("... ")?,
                false => write!(f, "...\n{}", " ".repeat(depth + 1))?,
            }
        }
        write_axis(f, inner, summary, depth + 1, cells)?;
    }
    f.write_str("]")
}
