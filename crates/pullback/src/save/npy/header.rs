//! The header of a `.npy` file: a dictionary as Python writes it.
//!
//! ```text
//! {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }
//! ```
//!
//! The parser takes this grammar and no other Python. It does not recurse.

use crate::DType;
use crate::error::{Error, Result, err};
use crate::replace::unusable;
use std::io::Read;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The longest header. NumPy itself warns beyond ten thousand bytes.
const MAX_HEADER: u64 = 1 << 20;

/// The types that both sides know.
const TYPES: [(DType, &str); 9] = [
    (DType::Bool, "b1"),
    (DType::U8, "u1"),
    (DType::I32, "i4"),
    (DType::I64, "i8"),
    (DType::F16, "f2"),
    (DType::F32, "f4"),
    (DType::F64, "f8"),
    (DType::C64, "c8"),
    (DType::C128, "c16"),
];

pub(super) struct Header {
    pub dtype: DType,
    pub big_endian: bool,
    pub fortran_order: bool,
    pub shape: Vec<usize>,
}

/// All that comes before the data, which is aligned by it.
pub(super) fn print(dtype: DType, shape: &[usize]) -> Result<Vec<u8>> {
    let Some((_, code)) = TYPES.iter().find(|(d, _)| *d == dtype) else {
        return Err(err!(DType, "NumPy has no type for {dtype}; use .cast(DType::F32)"));
    };
    let order = if dtype.size() == 1 { '|' } else { '<' };
    let lengths: String = shape.iter().map(|n| format!("{n}, ")).collect();
    // A tuple of one has a comma, others have none at the end.
    let lengths = if shape.len() == 1 { lengths.trim_end() } else { lengths.trim_end_matches(", ") };
    let text = format!("{{'descr': '{order}{code}', 'fortran_order': False, 'shape': ({lengths}), }}");
    // The magic, two bytes of version, two of length, the text and its end of line.
    let whole = (10 + text.len() + 1).next_multiple_of(64);
    let mut out = [&MAGIC[..], &[1, 0], &((whole - 10) as u16).to_le_bytes(), text.as_bytes()].concat();
    out.resize(whole - 1, b' ');
    out.push(b'\n');
    Ok(out)
}

/// Reads the header of a stream of `len` bytes; how many follow it.
pub(super) fn read(from: &mut impl Read, len: u64) -> Result<(Header, u64)> {
    let short = |_| err!(Format, "{len} bytes are too few for the header of a .npy file");
    let mut start = [0; 8];
    from.read_exact(&mut start).map_err(short)?;
    if &start[..6] != MAGIC {
        return Err(err!(Format, "it does not begin as a .npy file does"));
    }
    let (size, used) = match start[6] {
        1 => {
            let mut size = [0; 2];
            from.read_exact(&mut size).map_err(short)?;
            (u16::from_le_bytes(size) as u64, 10)
        }
        2 | 3 => {
            let mut size = [0; 4];
            from.read_exact(&mut size).map_err(short)?;
            (u32::from_le_bytes(size) as u64, 12)
        }
        other => return Err(err!(Format, "it is of version {other}.{}; 1 to 3 are known", start[7])),
    };
    let rest = len.checked_sub(used + size).filter(|_| size <= MAX_HEADER);
    let Some(rest) = rest else {
        return Err(err!(Format, "the length of its header is given as {size} bytes, in a file of {len}"));
    };
    let mut text = vec![0; size as usize];
    from.read_exact(&mut text).map_err(unusable)?;
    // Version 3 is UTF-8 and the others Latin-1, but only names of fields could differ, and these are refused.
    let mut parser = Parser { text: &text, at: 0 };
    Ok((parser.header()?, rest))
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn fail(&self, what: &str) -> Error {
        err!(Format, "byte {} of its header: {what}", self.at)
    }

    fn header(&mut self) -> Result<Header> {
        let (mut descr, mut order, mut shape) = (None, None, None);
        self.take(b'{')?;
        while self.peek() != Some(b'}') {
            let key = self.string()?;
            self.take(b':')?;
            let again = match &key[..] {
                "descr" => descr.replace(self.descr()?).is_some(),
                "fortran_order" => order.replace(self.truth()?).is_some(),
                "shape" => shape.replace(self.shape()?).is_some(),
                _ => return Err(self.fail(&format!("an unknown key `{}`", key.escape_debug()))),
            };
            if again {
                return Err(self.fail(&format!("a second `{key}`")));
            }
            if self.peek() != Some(b',') {
                break;
            }
            self.take(b',')?;
        }
        self.take(b'}')?;
        if self.peek().is_some() {
            return Err(self.fail("something follows the closing `}`"));
        }
        let (Some((dtype, big_endian)), Some(fortran_order), Some(shape)) = (descr, order, shape) else {
            return Err(self.fail("it needs `descr`, `fortran_order` and `shape`"));
        };
        Ok(Header { dtype, big_endian, fortran_order, shape })
    }

    fn descr(&mut self) -> Result<(DType, bool)> {
        if self.peek() == Some(b'[') {
            return Err(err!(
                DType,
                "its elements are records of several fields, which tensors here do not have"
            ));
        }
        let descr = self.string()?;
        let unknown = || {
            err!(DType, "its elements are of type `{}`, which tensors here do not have", descr.escape_debug())
        };
        let order = descr.chars().next().filter(|c| "<>|=".contains(*c)).ok_or_else(unknown)?;
        let known = TYPES.iter().find(|(_, code)| *code == &descr[1..]);
        let big_endian = order == '>' || order != '<' && cfg!(target_endian = "big");
        known.map(|&(dtype, _)| (dtype, big_endian)).ok_or_else(unknown)
    }

    fn truth(&mut self) -> Result<bool> {
        self.peek();
        let rest = &self.text[self.at..];
        let (value, len) = match () {
            () if rest.starts_with(b"True") => (true, 4),
            () if rest.starts_with(b"False") => (false, 5),
            () => return Err(self.fail("expected `True` or `False`")),
        };
        self.at += len;
        Ok(value)
    }

    fn shape(&mut self) -> Result<Vec<usize>> {
        let mut shape = Vec::new();
        self.take(b'(')?;
        while self.peek() != Some(b')') {
            shape.push(self.number()?);
            if self.peek() != Some(b',') {
                break;
            }
            self.take(b',')?;
        }
        self.take(b')')?;
        Ok(shape)
    }

    /// A count; Python 2 wrote an `L` behind it.
    fn number(&mut self) -> Result<usize> {
        let rest = &self.text[self.at..];
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let text = std::str::from_utf8(&rest[..digits]).expect("digits");
        let n = text.parse().map_err(|_| self.fail("expected a length"))?;
        self.at += digits + usize::from(rest.get(digits) == Some(&b'L'));
        Ok(n)
    }

    /// A string without escapes: those of this format need none.
    fn string(&mut self) -> Result<String> {
        let quote = self.peek().filter(|b| matches!(b, b'\'' | b'"'));
        let quote = quote.ok_or_else(|| self.fail("expected a string"))?;
        let rest = &self.text[self.at + 1..];
        let len =
            rest.iter().position(|&b| b == quote).ok_or_else(|| self.fail("a string without an end"))?;
        let inside = std::str::from_utf8(&rest[..len]).ok().filter(|s| !s.contains('\\'));
        let text = inside.ok_or_else(|| self.fail("a string that is not plain text"))?.to_owned();
        self.at += len + 2;
        Ok(text)
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text[self.at..];
        self.at += rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
        self.text.get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> Result<()> {
        if self.peek() != Some(wanted) {
            return Err(self.fail(&format!("expected `{}`", wanted as char)));
        }
        self.at += 1;
        Ok(())
    }
}
