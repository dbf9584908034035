//! JSON, written; the program reads it by `serde_json`.
//!
//! Writing stays by hand: the engine of the page writes too, and is to stay small and without dependencies; and `serde_json` does other things where it
//! matters. It writes `null` for NaN and infinities, which a derivative may well be, `1.0` for 1, and `<` as it is, which could end the script
//! that a page carries its data in.
//!
//! ```
//! use pullback_expr::json::Json;
//! let found = Json::object([("x", Json::list([1.0.into(), f64::NAN.into()])), ("text", Json::text("a < \"b\""))]);
//! assert_eq!(found.to_string(), r#"{"x":[1,"NaN"],"text":"a \u003c \"b\""}"#);
//! ```

use std::fmt;

/// A JSON value. Objects keep their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number. What JSON has no number for is written as the text `NaN`, `inf` or `-inf`.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// Names with values.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// An object.
    pub fn object<const N: usize>(fields: [(&str, Json); N]) -> Json {
        Json::Object(fields.into_iter().map(|(k, v)| (k.to_string(), v)).collect())
    }

    /// A text.
    pub fn text(s: impl Into<String>) -> Json {
        Json::Text(s.into())
    }

    /// A list.
    pub fn list(items: impl IntoIterator<Item = Json>) -> Json {
        Json::List(items.into_iter().collect())
    }
}

impl From<f64> for Json {
    fn from(v: f64) -> Json {
        Json::Number(v)
    }
}

impl From<usize> for Json {
    fn from(v: usize) -> Json {
        Json::Number(v as f64)
    }
}

impl From<String> for Json {
    fn from(v: String) -> Json {
        Json::Text(v)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(b) => write!(f, "{b}"),
            Json::Number(v) if v.is_finite() => f.write_str(&crate::number(*v, crate::Digits::All)),
            Json::Number(v) => write!(f, "\"{}\"", crate::number(*v, crate::Digits::All)),
            Json::Text(s) => quoted(f, s),
            Json::List(items) => {
                f.write_str("[")?;
                for (k, item) in items.iter().enumerate() {
                    f.write_str(if k > 0 { "," } else { "" })?;
                    item.fmt(f)?;
                }
                f.write_str("]")
            }
            Json::Object(fields) => {
                f.write_str("{")?;
                for (k, (name, value)) in fields.iter().enumerate() {
                    f.write_str(if k > 0 { "," } else { "" })?;
                    quoted(f, name)?;
                    f.write_str(":")?;
                    value.fmt(f)?;
                }
                f.write_str("}")
            }
        }
    }
}

fn quoted(f: &mut fmt::Formatter<'_>, s: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in s.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            c if (c as u32) < 0x20 || c == '<' || c == '\u{2028}' || c == '\u{2029}' => {
                write!(f, "\\u{:04x}", c as u32)?
            }
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}
