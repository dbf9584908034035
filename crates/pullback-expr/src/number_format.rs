//! Numbers for people.

/// How many digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// Significant digits, without zeros at the end.
    Significant(usize),
    /// As many as it takes to read the same number back.
    All,
}

/// A number as text: plain where that is short, else with an exponent.
///
/// ```
/// use pullback_expr::{number, Digits};
/// assert_eq!(number(2.0, Digits::Significant(10)), "2");
/// assert_eq!(number(1.0 / 3.0, Digits::Significant(6)), "0.333333");
/// assert_eq!(number(1e300, Digits::All), "1e300");
/// ```
pub fn number(v: f64, digits: Digits) -> String {
    if v.is_nan() {
        return "NaN".to_string();
    }
    if v.is_infinite() {
        return if v > 0.0 { "inf" } else { "-inf" }.to_string();
    }
    if v == 0.0 {
        return "0".to_string();
    }
    let text = match digits {
        Digits::All => format!("{v:e}"),
        Digits::Significant(n) => format!("{:.*e}", n.max(1) - 1, v),
    };
    let (mantissa, exponent) = text.split_once('e').expect("scientific notation has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is an integer");
    let mantissa =
        if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    if !(-5..15).contains(&exponent) {
        return format!("{mantissa}e{exponent}");
    }
    let (sign, bare) = match mantissa.strip_prefix('-') {
        Some(bare) => ("-", bare),
        None => ("", mantissa),
    };
    let all: String = bare.chars().filter(char::is_ascii_digit).collect();
    let point = exponent + 1;
    let plain = if point <= 0 {
        format!("0.{}{all}", "0".repeat(-point as usize))
    } else if all.len() as i32 <= point {
        format!("{all}{}", "0".repeat(point as usize - all.len()))
    } else {
        format!("{}.{}", &all[..point as usize], &all[point as usize..])
    };
    format!("{sign}{plain}")
}
