//! Named tensors as [safetensors](https://github.com/huggingface/safetensors).
//!
//! The same tensors give the same bytes. A file from elsewhere cannot do harm: it is checked whole before any memory is taken for its
//! tensors.

// The `safetensors` crate brings a dozen others with it, more than the rest of the library may have; the format is small.
mod header;

use super::{Data, Output, Tensor};
use crate::allocation::ask_for;
use crate::dtype::{DType, with_stored};
use crate::error::{Result, err};
use crate::replace::unusable;
use crate::shape::Shape;
use header::{Entry, MAX_HEADER};
use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};

/// The element types that both sides know, largest first: the order in which tensors lie in the file, so that each
/// is aligned. It is the order of the reference implementation, so that files are equal byte for byte.
const TYPES: [(DType, &str); 8] = [
    (DType::I64, "I64"),
    (DType::F64, "F64"),
    (DType::F32, "F32"),
    (DType::I32, "I32"),
    (DType::BF16, "BF16"),
    (DType::F16, "F16"),
    (DType::U8, "U8"),
    (DType::Bool, "BOOL"),
];

fn rank(dtype: DType) -> usize {
    TYPES.iter().position(|&(d, _)| d == dtype).expect("every type of tensors is in the list")
}

/// All that comes before the data, and the tensors in the order of the file.
pub(crate) fn layout<'a>(named: &[(String, &'a Tensor)]) -> Result<(Vec<u8>, Vec<&'a Tensor>)> {
    let mut leaves: Vec<&(String, &Tensor)> = named.iter().collect();
    leaves.sort_by(|(a, x), (b, y)| rank(x.dtype()).cmp(&rank(y.dtype())).then_with(|| a.cmp(b)));
    let bytes = |t: &Tensor| (t.numel() * t.dtype().size()) as u64;
    if leaves.iter().try_fold(0u64, |n, (_, t)| n.checked_add(bytes(t))).is_none() {
        return Err(err!(Memory, "the tensors together have more bytes than can be counted"));
    }
    let mut end = 0;
    let entries = leaves.iter().map(|(name, t)| {
        let start = end;
        end += bytes(t);
        Entry {
            name: name.clone(),
            dtype: TYPES[rank(t.dtype())].1.into(),
            shape: t.shape().to_vec(),
            bytes: start..end,
        }
    });
    let entries: Vec<Entry> = entries.collect();
    let mut text = header::print(&entries)?;
    // Spaces, so that the data is aligned too.
    text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
    let bytes = [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
    Ok((bytes, leaves.into_iter().map(|&(_, t)| t).collect()))
}

/// Writes the elements of tensors, one after the other.
pub(crate) fn write_data(tensors: &[&Tensor], out: &mut dyn Write) -> io::Result<()> {
    for t in tensors {
        with_stored!(t.dtype(), T => {
            let t = t.host().map_err(io::Error::other)?;
            let x = t.value().view::<T>();
            if let Some(elements) = x.as_slice().filter(|_| cfg!(target_endian = "little")) {
                out.write_all(bytemuck::cast_slice(elements))?;
                continue;
            }
            let mut bytes = t.row_major_bytes().map_err(io::Error::other)?;
            swap_to_little_endian(&mut bytes, t.dtype().size());
            out.write_all(&bytes)?;
        });
    }
    Ok(())
}

/// Between the order of this machine and that of the file, in either direction.
fn swap_to_little_endian(bytes: &mut [u8], size: usize) {
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
}

/// All of a file, as bytes.
pub(crate) fn to_bytes(named: &[(String, &Tensor)]) -> Result<Vec<u8>> {
    let (mut out, tensors) = layout(named)?;
    let bytes = tensors.iter().map(|t| t.numel() * t.dtype().size()).sum();
    ask_for::<u8>(bytes)?;
    out.reserve_exact(bytes);
    write_data(&tensors, &mut out).map_err(unusable)?;
    Ok(out)
}

/// Reads tensors of these names, shapes and types from a stream of `len` bytes, all of them and no others. The data has no gaps, so that one
/// pass over it is enough.
pub(crate) fn read(like: &[(String, &Tensor)], mut from: impl Read, len: u64) -> Result<Vec<Tensor>> {
    let entries = read_header(&mut from, len)?;
    let positions = fit(like, &entries)?;
    let mut found: Vec<Option<Tensor>> = vec![None; like.len()];
    for (entry, k) in entries.iter().zip(positions) {
        found[k] = Some(read_tensor(like[k].1, &entry.name, &mut from)?);
    }
    Ok(found.into_iter().map(|t| t.expect("each tensor has an entry")).collect())
}

fn read_header(from: &mut impl Read, len: u64) -> Result<Vec<Entry>> {
    let Some(rest) = len.checked_sub(8) else {
        return Err(err!(Format, "a file of {len} bytes has no room for the length of its header"));
    };
    let mut size = [0; 8];
    from.read_exact(&mut size).map_err(unusable)?;
    let size = u64::from_le_bytes(size);
    if size > rest || size > MAX_HEADER {
        return Err(err!(Format, "the length of its header is given as {size} bytes, in a file of {len}"));
    }
    let mut text = vec![0; size as usize];
    from.read_exact(&mut text).map_err(unusable)?;
    header::parse(&text, rest - size)
}

/// For each entry, which of the tensors of a tree it is; an error unless they fit each other one to one.
fn fit(named: &[(String, &Tensor)], entries: &[Entry]) -> Result<Vec<usize>> {
    let by_name: HashMap<&str, usize> =
        named.iter().enumerate().map(|(k, (name, _))| (&name[..], k)).collect();
    if let Some((_, (name, _))) = named.iter().enumerate().find(|(k, (name, _))| by_name[&name[..]] != *k) {
        return Err(header::twice(name));
    }
    let in_file: HashSet<&str> = entries.iter().map(|e| &e.name[..]).collect();
    let missing = named.iter().map(|(name, _)| &name[..]).filter(|name| !in_file.contains(name));
    let extra = entries.iter().map(|e| &e.name[..]).filter(|name| !by_name.contains_key(name));
    match (list(missing), list(extra)) {
        (None, None) => {}
        (Some(names), None) => return Err(err!(Structure, "the file lacks {names}")),
        (None, Some(names)) => return Err(err!(Structure, "the file also has {names}; the tree does not")),
        (Some(missing), Some(extra)) => {
            return Err(err!(
                Structure,
                "the file lacks {missing}, and has {extra}, which the tree does not"
            ));
        }
    }
    let position = |entry: &Entry| {
        let k = by_name[&entry.name[..]];
        check_type(entry, named[k].1).map(|()| k)
    };
    entries.iter().map(position).collect()
}

fn check_type(entry: &Entry, like: &Tensor) -> Result<()> {
    let Entry { name, dtype, shape, .. } = entry;
    let expected = TYPES[rank(like.dtype())].1;
    let sides = || {
        format!(
            "leaf `{name}` is {expected} {:?} in the tree and {dtype} {shape:?} in the file",
            like.shape()
        )
    };
    if dtype != expected {
        return Err(err!(DType, "{}; load into a tree of that type, and cast", sides()));
    }
    if like.shape() != &shape[..] {
        return Err(err!(Shape, "{}", sides()));
    }
    Ok(())
}

/// Names for a message, the first few of many.
fn list<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    const SHOWN: usize = 6;
    let names: Vec<String> = names.map(|n| format!("`{n}`")).collect();
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len() {
        0 => None,
        n if n > SHOWN => Some(format!("{shown} and {} more", n - SHOWN)),
        _ => Some(shown),
    }
}

fn read_tensor(like: &Tensor, name: &str, from: &mut impl Read) -> Result<Tensor> {
    let (dtype, shape) = (like.dtype(), Shape::from(like.shape()));
    let mut data = Data::Gone;
    let mut out = Output::new(&shape, &mut data);
    with_stored!(dtype, T => {
        let elements = out.fill::<T>();
        let bytes = bytemuck::cast_slice_mut(elements);
        from.read_exact(bytes).map_err(unusable)?;
        swap_to_little_endian(bytes, dtype.size());
        if dtype == DType::Bool && bytes.iter().any(|&b| b > 1) {
            return Err(err!(Format, "leaf `{name}` has bytes that are neither true (1) nor false (0)"));
        }
        if let &mut [one] = elements {
            out.splat(one);
        }
    });
    Ok(Tensor::new(dtype, shape, data))
}
