//! Printing tensors as NumPy does: aligned columns, nested brackets, long rows wrapped, a summary of what is large.

use super::{Data, Tensor};
use crate::dtype::{DType, Scalar};
use crate::error::or_panic;
use crate::location::caller;
use num_complex::Complex;
use std::fmt;

/// Larger tensors are summarised.
const LIMIT: usize = 1000;
/// How much of each end of an axis a summary shows.
const EDGE: usize = 3;
/// Longest line.
const WIDTH: usize = 75;
/// Most digits after the point, unless the format says otherwise.
const PRECISION: usize = 8;

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A placeholder is not printed by mistake: whoever prints wants the value. `Debug` tells what it is.
        if let Data::Traced(t) = self.data() {
            let e = self.host().expect_err("a placeholder has no value");
            or_panic::<()>(Err(e.in_op("print").made_at(t.location().unwrap_or(caller()))));
        }
        self.fmt_known(f)
    }
}

impl Tensor {
    fn fmt_known(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_known() {
            return write!(f, "<{} {:?}, not known here>", self.dtype(), self.shape());
        }
        let summary = self.numel() > LIMIT;
        let shown = if summary { self.edges() } else { self.stripped() };
        let values = shown.scalars();
        if self.rank() == 0 {
            return match values[0] {
                // As many digits as the format asks for, as Rust writes its own numbers.
                Scalar::F64(v) if f.precision().is_some() => fmt::Display::fmt(&v, f),
                v => f.pad(&single(v, self.dtype())),
            };
        }
        if values.is_empty() {
            return f.write_str("[]");
        }
        let texts = texts(&values, self.dtype(), f.precision());
        let width = texts.iter().map(String::len).max().unwrap_or(0);
        let mut cells = texts.iter().map(|t| format!("{t:>width$}"));
        write_axis(f, self.shape(), summary, 1, &mut cells)
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tensor(")?;
        self.fmt_known(f)?;
        write!(f, ", {}, {:?})", self.dtype(), self.shape())
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

/// A finite number in decimal.
struct Decimal {
    /// With the sign.
    whole: String,
    fraction: String,
    exponent: i32,
}

impl Decimal {
    /// The fewest digits that tell the number from its neighbours of the same type, at most `precision` after the point.
    fn new(v: f64, dtype: DType, scientific: bool, precision: usize) -> Decimal {
        let exactly = |p: usize| if scientific { format!("{v:.p$e}") } else { format!("{v:.p$}") };
        let shortest = match (dtype, scientific) {
            (DType::F64, true) => format!("{v:e}"),
            (DType::F64, false) => format!("{v}"),
            (DType::F32, true) => format!("{:e}", v as f32),
            (DType::F32, false) => format!("{}", v as f32),
            _ => {
                let same = |text: &String| rounded(text.parse().unwrap_or(f64::NAN), dtype) == v;
                (0..).map(exactly).find(same).unwrap_or_default()
            }
        };
        let all = Decimal::parse(&shortest);
        if all.fraction.len() <= precision {
            return all;
        }
        let mut cut = Decimal::parse(&exactly(precision));
        cut.fraction.truncate(cut.fraction.trim_end_matches('0').len());
        cut
    }

    fn parse(text: &str) -> Decimal {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        Decimal {
            whole: whole.into(),
            fraction: fraction.into(),
            exponent: exponent.parse().expect("an exponent that Rust has written"),
        }
    }

    /// The exponent as NumPy writes it, of at least two digits.
    fn power(&self, digits: usize) -> String {
        let sign = if self.exponent < 0 { '-' } else { '+' };
        format!("e{sign}{:0>digits$}", self.exponent.abs())
    }
}

/// A number as an element of a half-precision type.
fn rounded(v: f64, dtype: DType) -> f64 {
    if dtype == DType::F16 { half::f16::from_f64(v).to_f64() } else { half::bf16::from_f64(v).to_f64() }
}

/// What is not a finite float is written as it is.
fn plain(v: Scalar) -> Result<String, f64> {
    match v {
        Scalar::Bool(b) => Ok(b.to_string()),
        Scalar::I64(n) => Ok(n.to_string()),
        Scalar::F64(v) if v.is_nan() => Ok("nan".into()),
        Scalar::F64(v) if v.is_infinite() => Ok(v.to_string()),
        Scalar::F64(v) => Err(v),
        Scalar::Complex(_) => unreachable!("the parts of complex numbers are written as numbers"),
    }
}

/// The texts of the parts of complex numbers, joined: `1.5-2.j`, with the sign of the imaginary part right behind the real one.
fn joined(re: &str, im: &str) -> String {
    let (digits, sign) = (im.trim(), if im.trim_start().starts_with('-') { "" } else { "+" });
    format!("{re}{sign}{digits}j{}", " ".repeat(im.len() - im.trim_end().len()))
}

/// A number that stands alone, as Python's `str` has it.
fn single(v: Scalar, dtype: DType) -> String {
    if let Scalar::Complex(v) = v {
        let [re, im] = [v.re, v.im].map(|v| single(Scalar::F64(v), dtype.real()));
        return joined(&re, &im);
    }
    plain(v).unwrap_or_else(|v| {
        let scientific = v != 0.0 && !(1e-4..1e16).contains(&v.abs());
        let d = Decimal::new(v, dtype, scientific, usize::MAX);
        match (scientific, d.fraction.is_empty()) {
            (false, true) => format!("{}.0", d.whole),
            (false, false) => format!("{}.{}", d.whole, d.fraction),
            (true, true) => format!("{}{}", d.whole, d.power(2)),
            (true, false) => format!("{}.{}{}", d.whole, d.fraction, d.power(2)),
        }
    })
}

/// Numbers with their points below each other; all with exponents if they differ much in size and no precision was asked for.
fn texts(values: &[Scalar], dtype: DType, precision: Option<usize>) -> Vec<String> {
    if dtype.is_complex() {
        let part = |f: fn(Complex<f64>) -> f64| {
            let numbers: Vec<Scalar> = values.iter().map(|v| Scalar::F64(f(v.to_complex()))).collect();
            texts(&numbers, dtype.real(), precision)
        };
        let (re, im) = (part(|v| v.re), part(|v| v.im));
        let width = re.iter().map(String::len).max().unwrap_or(0);
        return re.iter().zip(&im).map(|(re, im)| joined(&format!("{re:>width$}"), im)).collect();
    }
    let sizes = || values.iter().filter_map(|&v| plain(v).err()).map(f64::abs).filter(|&v| v > 0.0);
    let (largest, smallest) = (sizes().fold(0.0, f64::max), sizes().fold(f64::INFINITY, f64::min));
    let uneven = largest >= 1e8 || smallest < 1e-4 || largest / smallest > 1000.0;
    let scientific = uneven && precision.is_none();
    let precision = precision.unwrap_or(PRECISION);
    let numbers: Vec<Result<String, Decimal>> =
        values.iter().map(|&v| plain(v).map_err(|v| Decimal::new(v, dtype, scientific, precision))).collect();
    let most =
        |f: fn(&Decimal) -> usize| numbers.iter().filter_map(|n| n.as_ref().err()).map(f).max().unwrap_or(0);
    let fraction = most(|d| d.fraction.len());
    let power = most(|d| d.exponent.abs().to_string().len()).max(2);
    let one = |n: &Result<String, Decimal>| match n {
        Ok(text) => text.clone(),
        Err(d) if scientific => format!("{}.{:0<fraction$}{}", d.whole, d.fraction, d.power(power)),
        Err(d) => format!("{}.{:<fraction$}", d.whole, d.fraction),
    };
    numbers.iter().map(one).collect()
}

/// Writes the cells of one axis; lines after the first start `indent` to the right.
fn write_axis(
    f: &mut fmt::Formatter<'_>,
    shape: &[usize],
    summary: bool,
    indent: usize,
    cells: &mut impl Iterator<Item = String>,
) -> fmt::Result {
    let (&n, inner) = shape.split_first().expect("a scalar is written by itself");
    let cut = summary && n > 2 * EDGE;
    let shown = if cut { 2 * EDGE } else { n };
    let margin = " ".repeat(indent);
    f.write_str("[")?;
    if inner.is_empty() {
        let dots = cut.then(|| "...".to_string());
        let first = shown.min(EDGE);
        let head: Vec<String> = cells.take(first).collect();
        let tail: Vec<String> = cells.take(shown - first).collect();
        let mut column = indent;
        for (k, word) in head.into_iter().chain(dots).chain(tail).enumerate() {
            if k > 0 && column + 1 + word.len() > WIDTH - indent {
                write!(f, "\n{margin}")?;
                column = indent;
            } else if k > 0 {
                f.write_str(" ")?;
                column += 1;
            }
            f.write_str(&word)?;
            column += word.len();
        }
        return f.write_str("]");
    }
    let newlines = "\n".repeat(inner.len());
    for k in 0..shown {
        if k > 0 {
            write!(f, "{newlines}{margin}")?;
        }
        if cut && k == EDGE {
            write!(f, "...{newlines}{margin}")?;
        }
        write_axis(f, inner, summary, indent + 1, cells)?;
    }
    f.write_str("]")
}
