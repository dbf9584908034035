//! JSON, written and read: as much of it as the program needs.

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

    /// The field of an object.
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(fields) => fields.iter().find(|f| f.0 == name).map(|f| &f.1),
            _ => None,
        }
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
            // `<` could end the script that a page carries its data in.
            c if (c as u32) < 0x20 || c == '<' || c == '\u{2028}' || c == '\u{2029}' => {
                write!(f, "\\u{:04x}", c as u32)?
            }
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

/// Lists and objects nest no deeper than this in what is read.
const DEPTH: usize = 100;

/// Reads one JSON value, and nothing after it.
///
/// ```
/// use pullback_expr::json::{read, Json};
/// assert_eq!(read("{\"x\": [1, -2.5e1]}").unwrap().get("x"), Some(&Json::list([1.0.into(), (-25.0).into()])));
/// assert!(read("[1, 2").is_err());
/// ```
pub fn read(text: &str) -> Result<Json, String> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let value = reader.value()?;
    reader.space();
    match reader.at == text.len() {
        true => Ok(value),
        false => Err(reader.error("expected the end")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn error(&self, message: &str) -> String {
        let before = &self.text[..self.at];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        format!("line {line}, column {column}: {message}")
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn takes(&mut self, sign: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(sign);
        self.at += if found { sign.len() } else { 0 };
        found
    }

    fn value(&mut self) -> Result<Json, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.error("the value is nested too deeply"));
        }
        self.space();
        let value = match self.rest().bytes().next() {
            Some(b'{') => self.object()?,
            Some(b'[') => self.list()?,
            Some(b'"') => special(self.string()?),
            _ if self.takes("null") => Json::Null,
            _ if self.takes("true") => Json::Bool(true),
            _ if self.takes("false") => Json::Bool(false),
            _ => self.number()?,
        };
        self.depth -= 1;
        Ok(value)
    }

    fn number(&mut self) -> Result<Json, String> {
        let part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        let rest = self.rest();
        let length = rest.find(|c| !part(c)).unwrap_or(rest.len());
        match rest[..length].parse::<f64>() {
            Ok(v) => {
                self.at += length;
                Ok(Json::Number(v))
            }
            Err(_) => Err(self.error("expected a value")),
        }
    }

    fn list(&mut self) -> Result<Json, String> {
        self.takes("[");
        let mut items = Vec::new();
        if self.takes("]") {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value()?);
            if self.takes("]") {
                return Ok(Json::List(items));
            }
            if !self.takes(",") {
                return Err(self.error("expected `,` or `]`"));
            }
        }
    }

    fn object(&mut self) -> Result<Json, String> {
        self.takes("{");
        let mut fields = Vec::new();
        if self.takes("}") {
            return Ok(Json::Object(fields));
        }
        loop {
            self.space();
            let name = self.string()?;
            if !self.takes(":") {
                return Err(self.error("expected `:`"));
            }
            fields.push((name, self.value()?));
            if self.takes("}") {
                return Ok(Json::Object(fields));
            }
            if !self.takes(",") {
                return Err(self.error("expected `,` or `}`"));
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        if !self.takes("\"") {
            return Err(self.error("expected a text in quotes"));
        }
        let mut out = String::new();
        loop {
            let Some(c) = self.rest().chars().next() else {
                return Err(self.error("the text does not end"));
            };
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(out),
                '\\' => out.push(self.escaped()?),
                c => out.push(c),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, String> {
        let c = self.rest().chars().next().unwrap_or(' ');
        self.at += if self.rest().is_empty() { 0 } else { c.len_utf8() };
        Ok(match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            '"' | '\\' | '/' => c,
            'u' => {
                let code = self.rest().get(..4).and_then(|h| u32::from_str_radix(h, 16).ok());
                let code = code.ok_or_else(|| self.error("expected four hexadecimal digits"))?;
                self.at += 4;
                // Halves of pairs stand for characters that no name of ours has.
                char::from_u32(code).unwrap_or('\u{fffd}')
            }
            _ => return Err(self.error("unknown escape")),
        })
    }
}

/// The numbers that JSON has no sign for.
fn special(text: String) -> Json {
    match text.as_str() {
        "NaN" => Json::Number(f64::NAN),
        "inf" => Json::Number(f64::INFINITY),
        "-inf" => Json::Number(f64::NEG_INFINITY),
        _ => Json::Text(text),
    }
}
