//! The header of a safetensors file: JSON that says where each tensor lies and what it is.
//!
//! ```json
//! {"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}, .., "__metadata__":{"any":"text"}}
//! ```
//!
//! The parser takes this grammar and no other JSON. It does not recurse, so a hostile file cannot exhaust the stack.

use super::TYPES;
use crate::error::{Error, Result, err};
use std::collections::HashSet;
use std::fmt::Write;
use std::ops::Range;

/// The longest header, as in the reference implementation.
pub(super) const MAX_HEADER: u64 = 100_000_000;

/// The key that is not a tensor.
const METADATA: &str = "__metadata__";

/// One tensor of the file.
pub(crate) struct Entry {
    pub name: String,
    /// As the file spells it; there are types that tensors here do not have.
    pub dtype: String,
    pub shape: Vec<usize>,
    /// Its bytes, counted from the end of the header.
    pub bytes: Range<u64>,
}

/// The error for two leaves of one name.
pub(super) fn twice(name: &str) -> Error {
    err!(Structure, "two leaves have the name `{name}`")
}

pub(super) fn print(entries: &[Entry]) -> Result<String> {
    let mut names = HashSet::new();
    let mut out = String::from("{");
    for (k, Entry { name, dtype, shape, bytes }) in entries.iter().enumerate() {
        if name == METADATA {
            return Err(err!(Structure, "the format reserves the name `{METADATA}`, which a leaf has"));
        }
        if !names.insert(name) {
            return Err(twice(name));
        }
        out.push_str(if k == 0 { "" } else { "," });
        print_string(name, &mut out);
        let shape = shape.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let Range { start, end } = bytes;
        // Writing to a string does not fail.
        let _ = write!(out, r#":{{"dtype":"{dtype}","shape":[{shape}],"data_offsets":[{start},{end}]}}"#);
    }
    out.push('}');
    Ok(out)
}

fn print_string(s: &str, out: &mut String) {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..' ' => drop(write!(out, "\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The entries in the order of their data, which they cover without gaps or overlaps.
pub(super) fn parse(text: &[u8], data: u64) -> Result<Vec<Entry>> {
    let Ok(text) = std::str::from_utf8(text) else {
        return Err(err!(Format, "its header is not UTF-8"));
    };
    let mut parser = Parser { text, at: 0 };
    let mut entries = parser.entries()?;
    entries.sort_by_key(|e| (e.bytes.start, e.bytes.end));
    check(&entries, data)?;
    Ok(entries)
}

fn check(entries: &[Entry], data: u64) -> Result<()> {
    let mut names = HashSet::new();
    let mut end = 0;
    for Entry { name, dtype, shape, bytes } in entries {
        if !names.insert(name) {
            return Err(err!(Format, "it has two tensors of the name `{name}`"));
        }
        if bytes.start != end || bytes.end < bytes.start {
            return Err(err!(
                Format,
                "the bytes of `{name}` are given as {bytes:?}; the tensor before it ends at {end}"
            ));
        }
        end = bytes.end;
        let size = TYPES.iter().find(|(_, spelled)| spelled == dtype).map(|(d, _)| d.size() as u64);
        let needed = |size| shape.iter().try_fold(size, |a: u64, &n| a.checked_mul(n as u64));
        if let Some(size) = size
            && needed(size) != Some(bytes.end - bytes.start)
        {
            return Err(err!(
                Format,
                "`{name}` is {dtype} {shape:?}, which does not fit its bytes {bytes:?}"
            ));
        }
    }
    if end != data {
        return Err(err!(Format, "its tensors have {end} bytes, but {data} follow the header"));
    }
    Ok(())
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn fail(&self, what: &str) -> Error {
        err!(Format, "byte {} of its header: {what}", self.at)
    }

    fn entries(&mut self) -> Result<Vec<Entry>> {
        if !self.text.starts_with('{') {
            return Err(self.fail("it does not begin with `{`"));
        }
        let (mut entries, mut metadata) = (Vec::new(), false);
        self.fields(|p, name| {
            if name != METADATA {
                entries.push(p.entry(name)?);
            } else if std::mem::replace(&mut metadata, true) {
                return Err(p.fail("a second `__metadata__`"));
            } else {
                p.fields(|p, _| p.string().map(drop))?;
            }
            Ok(())
        })?;
        match self.peek() {
            None => Ok(entries),
            Some(_) => Err(self.fail("something follows the closing `}`")),
        }
    }

    fn entry(&mut self, name: String) -> Result<Entry> {
        let (mut dtype, mut shape, mut bytes) = (None, None, None);
        self.fields(|p, field| {
            let again = match &field[..] {
                "dtype" => dtype.replace(p.string()?).is_some(),
                "shape" => shape.replace(p.numbers()?).is_some(),
                "data_offsets" => bytes.replace(p.numbers()?).is_some(),
                _ => return Err(p.fail(&format!("`{name}` has an unknown field `{field}`"))),
            };
            if again { Err(p.fail(&format!("`{name}` has a second `{field}`"))) } else { Ok(()) }
        })?;
        let (Some(dtype), Some(shape), Some(bytes)) = (dtype, shape, bytes) else {
            return Err(self.fail(&format!("`{name}` needs `dtype`, `shape` and `data_offsets`")));
        };
        let [start, end] = bytes[..] else {
            return Err(self.fail(&format!("the `data_offsets` of `{name}` are not two numbers")));
        };
        let shape = shape.into_iter().map(usize::try_from).collect::<std::result::Result<_, _>>();
        let shape = shape.map_err(|_| self.fail(&format!("the shape of `{name}` is too large")))?;
        Ok(Entry { name, dtype, shape, bytes: start..end })
    }

    /// An object; `value` reads what belongs to a key.
    fn fields(&mut self, mut value: impl FnMut(&mut Self, String) -> Result<()>) -> Result<()> {
        self.items(b'{', b'}', |p| {
            let key = p.string()?;
            p.take(b':')?;
            value(p, key)
        })
    }

    fn numbers(&mut self) -> Result<Vec<u64>> {
        let mut out = Vec::new();
        self.items(b'[', b']', |p| p.number().map(|n| out.push(n)))?;
        Ok(out)
    }

    fn items(&mut self, open: u8, close: u8, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.take(open)?;
        if self.peek() == Some(close) {
            return self.take(close);
        }
        loop {
            item(self)?;
            if self.peek() != Some(b',') {
                return self.take(close);
            }
            self.take(b',')?;
        }
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let space = rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.at += space;
        rest.get(space).copied()
    }

    fn take(&mut self, wanted: u8) -> Result<()> {
        if self.peek() != Some(wanted) {
            return Err(self.fail(&format!("expected `{}`", wanted as char)));
        }
        self.at += 1;
        Ok(())
    }

    /// A count: no sign, fraction, exponent or leading zero.
    fn number(&mut self) -> Result<u64> {
        self.peek();
        let rest = &self.text[self.at..];
        let digits = &rest[..rest.bytes().take_while(u8::is_ascii_digit).count()];
        if digits.len() > 1 && digits.starts_with('0') {
            return Err(self.fail("a number with a leading zero"));
        }
        let n = digits.parse().map_err(|_| self.fail("expected a number below 2^64"))?;
        self.at += digits.len();
        Ok(n)
    }

    fn string(&mut self) -> Result<String> {
        self.take(b'"')?;
        let mut out = String::new();
        loop {
            match self.char()? {
                '"' => return Ok(out),
                '\\' => out.push(self.escaped()?),
                '\0'..' ' => return Err(self.fail("a control character in a string")),
                c => out.push(c),
            }
        }
    }

    fn char(&mut self) -> Result<char> {
        let c = self.text[self.at..].chars().next().ok_or_else(|| self.fail("a string without an end"))?;
        self.at += c.len_utf8();
        Ok(c)
    }

    fn escaped(&mut self) -> Result<char> {
        Ok(match self.char()? {
            c @ ('"' | '\\' | '/') => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => return self.unicode(),
            _ => return Err(self.fail("an unknown escape in a string")),
        })
    }

    /// The digits of `\u`; characters above 0xffff are a pair of surrogates.
    fn unicode(&mut self) -> Result<char> {
        let first = self.hex()?;
        let code = match first {
            0xd800..0xdc00 if self.text[self.at..].starts_with("\\u") => {
                self.at += 2;
                let second = self.hex()?;
                let low = second.checked_sub(0xdc00).filter(|&low| low < 0x400);
                low.map(|low| 0x10000 + ((first - 0xd800) << 10) + low)
            }
            _ => Some(first),
        };
        // A surrogate on its own is not a character.
        code.and_then(char::from_u32).ok_or_else(|| self.fail("a lone surrogate in a string"))
    }

    fn hex(&mut self) -> Result<u32> {
        let digits = self.text.get(self.at..self.at + 4);
        let digits = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let digits = digits.ok_or_else(|| self.fail("expected four hexadecimal digits"))?;
        self.at += 4;
        Ok(u32::from_str_radix(digits, 16).expect("digits"))
    }
}
