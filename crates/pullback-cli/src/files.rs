//! Tensors from files: .npy, .npz, .safetensors and .json.

use crate::failure::{Failure, Result, io};
use crate::npy;
use pullback::{DType, Fallible, Tensor};
use serde_json::Value;

type Named = Vec<(String, Tensor)>;
type Read<T> = std::result::Result<T, String>;

/// Reads `FILE`, or `name=FILE` for an array that has no name. `only` is the name that an array gets otherwise.
pub fn read(given: &str, only: Option<&str>) -> Result<Named> {
    let (name, path) = match given.split_once('=') {
        Some((name, path)) => (Some(name), path),
        None => (only, given),
    };
    let bytes = std::fs::read(path).map_err(io(path))?;
    let failed = |e: String| Failure::new(format!("{path}: {e}"));
    match path.rsplit_once('.').map(|p| p.1) {
        Some("npy") => match name {
            Some(name) => Ok(vec![(name.to_string(), npy::read(path, &bytes)?)]),
            None => Err(Failure::new(format!("{path}: say which input it is: --input x0={path}"))),
        },
        Some("npz") => npz(path, &bytes),
        Some("safetensors") => safetensors(&bytes).map_err(failed),
        Some("json") => from_json(&bytes).map_err(failed),
        _ => Err(Failure::new(format!(
            "{path}: expected a file that ends in .npy, .npz, .safetensors or .json"
        ))),
    }
}

/// Bytes `at..at + n` as a number, the least byte first.
fn little(bytes: &[u8], at: usize, n: usize) -> Read<usize> {
    let part = at.checked_add(n).and_then(|end| bytes.get(at..end)).ok_or("the file ends too early")?;
    let value = part.iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b));
    usize::try_from(value).map_err(|_| "the file is too large".to_string())
}

fn npz(path: &str, bytes: &[u8]) -> Result<Named> {
    let entries = unzip(bytes).map_err(|e| Failure::new(format!("{path}: {e}")))?;
    let array = |(name, data): (String, Vec<u8>)| {
        let tensor = npy::read(&format!("{path}: {name}"), &data)?;
        Ok((name.trim_end_matches(".npy").to_string(), tensor))
    };
    entries.into_iter().map(array).collect()
}

/// The files in a ZIP archive, by its directory at the end.
fn unzip(bytes: &[u8]) -> Read<Vec<(String, Vec<u8>)>> {
    let end = bytes.windows(4).rposition(|w| w == b"PK\x05\x06").ok_or("this is not a .npz file")?;
    let (count, mut at) = (little(bytes, end + 10, 2)?, little(bytes, end + 16, 4)?);
    let mut out = Vec::new();
    for _ in 0..count {
        if bytes.get(at..).is_none_or(|b| !b.starts_with(b"PK\x01\x02")) {
            return Err("the directory of the archive is damaged".into());
        }
        let (method, packed, size) =
            (little(bytes, at + 10, 2)?, little(bytes, at + 20, 4)?, little(bytes, at + 24, 4)?);
        let (name, extra, comment) =
            (little(bytes, at + 28, 2)?, little(bytes, at + 30, 2)?, little(bytes, at + 32, 2)?);
        let local = little(bytes, at + 42, 4)?;
        let text = bytes.get(at + 46..at + 46 + name).ok_or("the file ends too early")?;
        let text = String::from_utf8_lossy(text).into_owned();
        let start = local + 30 + little(bytes, local + 26, 2)? + little(bytes, local + 28, 2)?;
        let data = start
            .checked_add(packed)
            .and_then(|end| bytes.get(start..end))
            .ok_or("the file ends too early")?;
        out.push((text, unpacked(method, data, size)?));
        at += 46 + name + extra + comment;
    }
    Ok(out)
}

fn unpacked(method: usize, data: &[u8], size: usize) -> Read<Vec<u8>> {
    match method {
        0 => Ok(data.to_vec()),
        8 => miniz_oxide::inflate::decompress_to_vec_with_limit(data, size)
            .map_err(|_| "the compressed data are damaged".to_string()),
        other => Err(format!("compression method {other} is not read")),
    }
}

fn safetensors(bytes: &[u8]) -> Read<Named> {
    let length = little(bytes, 0, 8)?;
    let header = length.checked_add(8).and_then(|end| bytes.get(8..end)).ok_or("the file ends too early")?;
    let header = std::str::from_utf8(header).map_err(|_| "the header is not text")?;
    let Value::Object(fields) = parse(header)? else { return Err("the header is not an object".into()) };
    let data = &bytes[8 + length..];
    let mut out = Vec::new();
    for (name, entry) in fields.into_iter().filter(|f| f.0 != "__metadata__") {
        let of = |key: &str| entry.get(key).and_then(numbers).ok_or(format!("`{name}` has no {key}"));
        let (shape, offsets) = (of("shape")?, of("data_offsets")?);
        let [from, to] = offsets[..] else { return Err(format!("`{name}` has no data_offsets")) };
        let part = data.get(from..to).ok_or(format!("`{name}` lies outside of the file"))?;
        let Some(Value::String(dtype)) = entry.get("dtype") else {
            return Err(format!("`{name}` has no dtype"));
        };
        out.push((name.clone(), typed(dtype, part, &shape).map_err(|e| format!("`{name}`: {e}"))?));
    }
    Ok(out)
}

fn parse(text: &str) -> Read<Value> {
    serde_json::from_str(text).map_err(|e| e.to_string())
}

/// A list of whole numbers.
fn numbers(list: &Value) -> Option<Vec<usize>> {
    let whole = |v: &Value| usize::try_from(v.as_u64()?).ok();
    list.as_array()?.iter().map(whole).collect()
}

fn typed(dtype: &str, bytes: &[u8], shape: &[usize]) -> Read<Tensor> {
    macro_rules! of {
        ($t:ty, $dtype:expr) => {{
            let read = |c: &[u8]| <$t>::from_le_bytes(c.try_into().expect("chunks of this size")) as f64;
            let values: Vec<f64> = bytes.chunks_exact(size_of::<$t>()).map(read).collect();
            Tensor::try_from_slice(&values, shape)
                .map(|t| t.cast($dtype))
                .map_err(|e| crate::failure::plain(&e))
        }};
    }
    match dtype {
        "F64" => of!(f64, DType::F64),
        "F32" => of!(f32, DType::F32),
        "I64" => of!(i64, DType::I64),
        "I32" => of!(i32, DType::I32),
        "U8" => of!(u8, DType::U8),
        "BOOL" => of!(u8, DType::Bool),
        other => Err(format!("elements of type {other} are not read")),
    }
}

fn from_json(bytes: &[u8]) -> Read<Named> {
    let text = std::str::from_utf8(bytes).map_err(|e| format!("byte {} is not UTF-8", e.valid_up_to()))?;
    let Value::Object(fields) = parse(text)? else {
        return Err("expected an object of names with numbers or lists".into());
    };
    let tensor = |(name, value): (String, Value)| {
        let mut elements = Vec::new();
        let shape = flatten(&value, &mut elements).map_err(|e| format!("`{name}`: {e}"))?;
        let t = Tensor::try_from_slice(&elements, shape).map_err(|e| crate::failure::plain(&e))?;
        Ok((name, t))
    };
    fields.into_iter().map(tensor).collect()
}

/// The shape of lists in lists, and their elements. What JSON has no number for is the text `NaN`, `inf` or `-inf`.
fn flatten(value: &Value, elements: &mut Vec<f64>) -> Read<Vec<usize>> {
    let number = match value {
        Value::Number(v) => v.as_f64(),
        Value::Bool(b) => Some(f64::from(u8::from(*b))),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "inf" => Some(f64::INFINITY),
            "-inf" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        Value::Array(items) => {
            let shapes = items.iter().map(|i| flatten(i, elements)).collect::<Read<Vec<_>>>()?;
            let first = shapes.first().cloned().unwrap_or_default();
            if shapes.iter().any(|s| *s != first) {
                return Err("the lists are not equally long".into());
            }
            return Ok([vec![items.len()], first].concat());
        }
        _ => None,
    };
    elements.push(number.ok_or("expected numbers or lists of numbers")?);
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_files_are_refused() {
        let mut archive = b"PK\x05\x06".to_vec();
        archive.extend([0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0]);
        assert!(unzip(&archive).is_err());
        assert!(unzip(b"PK").is_err());
        assert!(safetensors(&[0xff; 8]).is_err());
        assert!(safetensors(&u64::MAX.to_le_bytes()).is_err());
        let header = br#"{"x":{"dtype":"F64","shape":[2],"data_offsets":[0,99]}}"#;
        let file = [&(header.len() as u64).to_le_bytes()[..], header].concat();
        assert_eq!(safetensors(&file).unwrap_err(), "`x` lies outside of the file");
        assert!(from_json(b"{\"x\": [[1], [1, 2]]}").is_err());
    }

    #[test]
    fn lists_in_lists_are_matrices() {
        let read = from_json(b"{\"t\": [7, \"-inf\"], \"x\": [[1, 2, 3], [4, 5, 6]]}").unwrap();
        assert_eq!(read[0].1.to_vec::<f64>(), [7.0, f64::NEG_INFINITY]);
        assert_eq!((read[1].1.shape(), read[1].1.to_vec::<f64>()[5]), (&[2, 3][..], 6.0));
    }
}
