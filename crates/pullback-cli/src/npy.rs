//! NumPy arrays, written and read.

use crate::failure::{Failure, Result};
use pullback::{DType, Fallible, Tensor};
use pullback_expr::scalar::Array;

const MAGIC: &[u8] = b"\x93NUMPY";

/// An array of doubles as a .npy file.
pub fn write(array: &Array) -> Vec<u8> {
    let lengths: Vec<String> = array.shape.iter().map(|n| format!("{n},")).collect();
    let mut header =
        format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}), }}", lengths.join(" "));
    // Magic, version, length and header fill a multiple of 64 bytes.
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut out = MAGIC.to_vec();
    out.extend([1, 0]);
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    array.elements.iter().for_each(|v| out.extend(v.to_le_bytes()));
    out
}

/// Reads a .npy file of numbers.
pub fn read(name: &str, bytes: &[u8]) -> Result<Tensor> {
    parse(bytes).map_err(|e| Failure::new(format!("{name}: {e}")))
}

fn parse(bytes: &[u8]) -> std::result::Result<Tensor, String> {
    let short = || "the file ends too early".to_string();
    let rest = bytes.strip_prefix(MAGIC).ok_or("this is not a .npy file")?;
    let version = *rest.first().ok_or_else(short)?;
    let width = if version == 1 { 2 } else { 4 };
    let length = rest.get(2..2 + width).ok_or_else(short)?;
    let length = length.iter().rev().fold(0usize, |n, b| n << 8 | usize::from(*b));
    let header = rest.get(2 + width..).and_then(|r| r.get(..length)).ok_or_else(short)?;
    let header = std::str::from_utf8(header).map_err(|_| "the header is not text")?;
    let data = &rest[2 + width + length..];
    let after = |key: &str| {
        header
            .split_once(key)
            .map(|(_, rest)| rest.trim_start_matches([' ', ':']))
            .ok_or("the header lacks a field")
    };
    let descr = after("'descr'")?.trim_start_matches('\'').split('\'').next().unwrap_or_default();
    if after("'fortran_order'")?.starts_with("True") {
        return Err("arrays in Fortran order are not read; save it with order='C'".into());
    }
    let inside = after("'shape'")?.trim_start_matches('(').split(')').next().unwrap_or_default();
    let lengths = inside.split(',').map(str::trim).filter(|s| !s.is_empty());
    let shape = lengths.map(|s| s.parse::<usize>()).collect::<std::result::Result<Vec<usize>, _>>();
    let shape = shape.map_err(|_| "the shape is not a list of numbers")?;
    let count = shape.iter().try_fold(1usize, |a, n| a.checked_mul(*n)).ok_or("the array is too large")?;
    typed(descr, data, count, &shape)
}

fn typed(descr: &str, data: &[u8], count: usize, shape: &[usize]) -> std::result::Result<Tensor, String> {
    macro_rules! of {
        ($t:ty, $dtype:expr) => {{
            let size = size_of::<$t>();
            let bytes =
                count.checked_mul(size).and_then(|n| data.get(..n)).ok_or("the file ends too early")?;
            let read = |c: &[u8]| <$t>::from_le_bytes(c.try_into().expect("chunks of this size"));
            let values: Vec<f64> = bytes.chunks_exact(size).map(|c| read(c) as f64).collect();
            Tensor::try_from_slice(&values, shape).map(|t| t.cast($dtype)).map_err(|e| e.to_string())
        }};
    }
    match descr {
        "<f8" => of!(f64, DType::F64),
        "<f4" => of!(f32, DType::F32),
        "<i8" => of!(i64, DType::I64),
        "<i4" => of!(i32, DType::I32),
        "|u1" => of!(u8, DType::U8),
        "|b1" => of!(u8, DType::Bool),
        other => Err(format!("elements of type {other:?} are not read")),
    }
}
