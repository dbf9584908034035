//! Named tensors as [safetensors](https://github.com/huggingface/safetensors).
//!
//! The same tensors give the same bytes. A file from elsewhere cannot do harm: it is checked whole before any memory is taken for its
//! tensors.

// The `safetensors` crate brings a dozen others with it, more than the rest of the library may have; the format is small.
mod bytes;
mod header;

use super::{Data, Output, Tensor};
use crate::allocation::ask_for;
use crate::dtype::{DType, with_bits};
use crate::error::{Result, err};
use crate::replace::unusable;
use crate::shape::Shape;
pub(crate) use bytes::{Bytes, InMemory, in_file};
pub(crate) use header::Entry;
use header::MAX_HEADER;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

/// The element types that both sides know, largest first: the order in which tensors lie in the file, so that each
/// is aligned. It is the order of the reference implementation, so that files are equal byte for byte.
const TYPES: [(DType, &str); 9] = [
    (DType::I64, "I64"),
    (DType::F64, "F64"),
    (DType::C64, "C64"),
    (DType::F32, "F32"),
    (DType::I32, "I32"),
    (DType::BF16, "BF16"),
    (DType::F16, "F16"),
    (DType::U8, "U8"),
    (DType::Bool, "BOOL"),
];

fn rank(dtype: DType) -> Result<usize> {
    TYPES.iter().position(|&(d, _)| d == dtype).ok_or_else(|| {
        err!(
            DType,
            "safetensors has no type for {dtype}; save .real() and .imag(), or cast to {}",
            DType::C64
        )
    })
}

/// The type of tensors that a file spells so.
pub(crate) fn dtype_of(spelled: &str) -> Option<DType> {
    TYPES.iter().find(|(_, s)| *s == spelled).map(|&(d, _)| d)
}

/// All that comes before the data, and the tensors in the order of the file.
pub(crate) fn layout<'a>(named: &[(String, &'a Tensor)]) -> Result<(Vec<u8>, Vec<&'a Tensor>)> {
    let ranked = named.iter().map(|leaf| rank(leaf.1.dtype()).map(|rank| (rank, leaf)));
    let mut leaves = ranked.collect::<Result<Vec<_>>>()?;
    leaves.sort_by(|(i, (a, _)), (j, (b, _))| i.cmp(j).then_with(|| a.cmp(b)));
    let bytes = |t: &Tensor| (t.numel() * t.dtype().size()) as u64;
    if leaves.iter().try_fold(0u64, |n, (_, (_, t))| n.checked_add(bytes(t))).is_none() {
        return Err(err!(Memory, "the tensors together have more bytes than can be counted"));
    }
    let mut end = 0;
    let entries = leaves.iter().map(|&(rank, (name, t))| {
        let start = end;
        end += bytes(t);
        Entry {
            name: name.clone(),
            dtype: TYPES[rank].1.into(),
            shape: t.shape().to_vec(),
            bytes: start..end,
        }
    });
    let entries: Vec<Entry> = entries.collect();
    let mut text = header::print(&entries)?;
    // Spaces, so that the data is aligned too.
    text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
    let bytes = [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
    Ok((bytes, leaves.into_iter().map(|(_, &(_, t))| t).collect()))
}

/// Writes the elements of tensors, one after the other.
pub(crate) fn write_data(tensors: &[&Tensor], out: &mut dyn Write) -> io::Result<()> {
    for t in tensors {
        with_bits!(t.dtype(), T => {
            let t = t.host().map_err(io::Error::other)?;
            let x = t.value().view::<T>();
            if let Some(elements) = x.as_slice().filter(|_| cfg!(target_endian = "little")) {
                out.write_all(bytemuck::cast_slice(elements))?;
                continue;
            }
            let mut bytes = t.row_major_bytes().map_err(io::Error::other)?;
            swap_to_little_endian(&mut bytes, t.dtype().real().size());
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

/// A file whose header has been read and checked; its tensors are read when they are asked for.
pub(crate) struct Source<'a> {
    from: Box<dyn Bytes + 'a>,
    /// Where the data begins.
    data: u64,
    entries: Vec<Entry>,
}

/// What may differ between a tree and the file that it is loaded from.
#[derive(Clone, Copy, Default)]
pub(crate) struct Leeway {
    /// Leaves that the file lacks stay as they are.
    pub missing: bool,
    /// Tensors of the file that the tree does not have are left out.
    pub extra: bool,
    /// Floats are converted to the type that they have in the tree.
    pub floats: bool,
}

/// How a file and a tree differ.
#[derive(Default)]
pub(crate) struct Difference {
    pub missing: Vec<String>,
    pub extra: Vec<String>,
    /// Leaves of another shape, of another kind of type, and of another float type, with what they are on both sides.
    pub shapes: Vec<String>,
    pub types: Vec<String>,
    pub floats: Vec<String>,
}

impl<'a> Source<'a> {
    /// Reads the header.
    pub fn new(from: Box<dyn Bytes + 'a>) -> Result<Source<'a>> {
        let (entries, data) = read_header(&*from)?;
        Ok(Source { from, data, entries })
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The tensor of an entry, as the file has it.
    pub fn read(&self, k: usize) -> Result<Tensor> {
        let Entry { name, dtype, shape, bytes } = &self.entries[k];
        let Some(known) = dtype_of(dtype) else {
            return Err(err!(DType, "`{name}` is of type {dtype}, which tensors here do not have"));
        };
        let shape = Shape::from(&shape[..]);
        shape.checked_len().map_err(|e| e.within(format_args!("`{name}`")))?;
        let start = self.data + bytes.start;
        read_tensor(known, shape, name, |out| self.from.read_at(start, out).map_err(unusable))
    }

    /// How the tree with these leaves differs from the file.
    pub fn difference(&self, named: &[(String, &Tensor)]) -> Result<Difference> {
        let by_name = by_name(named)?;
        let mut out = Difference::default();
        for entry in &self.entries {
            match by_name.get(&entry.name[..]) {
                None => out.extra.push(entry.name.clone()),
                Some(&k) => out.compare(entry, named[k].1),
            }
        }
        let in_file: HashSet<&str> = self.entries.iter().map(|e| &e.name[..]).collect();
        out.missing = named.iter().map(|(n, _)| n.clone()).filter(|n| !in_file.contains(&n[..])).collect();
        Ok(out)
    }

    /// Reads tensors of these names, shapes and types, in the order of the file; a leaf that need not be there stays as it is.
    pub fn load(&self, like: &[(String, &Tensor)], leeway: Leeway) -> Result<Vec<Tensor>> {
        self.difference(like)?.within(leeway)?;
        let by_name = by_name(like)?;
        let mut found: Vec<Tensor> = like.iter().map(|(_, t)| (*t).clone()).collect();
        for k in 0..self.entries.len() {
            if let Some(&leaf) = by_name.get(&self.entries[k].name[..]) {
                found[leaf] = self.read(k)?.try_cast(like[leaf].1.dtype())?;
            }
        }
        Ok(found)
    }
}

fn by_name<'a>(named: &'a [(String, &Tensor)]) -> Result<HashMap<&'a str, usize>> {
    let by_name: HashMap<&str, usize> =
        named.iter().enumerate().map(|(k, (name, _))| (&name[..], k)).collect();
    match named.iter().enumerate().find(|(k, (name, _))| by_name[&name[..]] != *k) {
        Some((_, (name, _))) => Err(header::twice(name)),
        None => Ok(by_name),
    }
}

impl Difference {
    fn compare(&mut self, entry: &Entry, like: &Tensor) {
        let Entry { name, dtype, shape, .. } = entry;
        let expected = rank(like.dtype()).map_or(like.dtype().name(), |rank| TYPES[rank].1);
        let sides = || {
            format!(
                "leaf `{name}` is {expected} {:?} in the tree and {dtype} {shape:?} in the file",
                like.shape()
            )
        };
        let are_floats = like.dtype().is_float() && dtype_of(dtype).is_some_and(DType::is_float);
        if like.shape() != &shape[..] {
            self.shapes.push(sides());
        } else if dtype != expected && are_floats {
            self.floats.push(format!("{}; cast the tree, or load with floats converted", sides()));
        } else if dtype != expected {
            self.types.push(format!("{}; load into a tree of that type, and cast", sides()));
        }
    }

    /// An error that names all that differs, unless it may.
    fn within(self, leeway: Leeway) -> Result<()> {
        let list =
            |names: &[String], allowed: bool| if allowed { None } else { list(names.iter().map(|n| &n[..])) };
        let mut said = match (list(&self.missing, leeway.missing), list(&self.extra, leeway.extra)) {
            (None, None) => vec![],
            (Some(names), None) => vec![format!("the file lacks {names}")],
            (None, Some(names)) => vec![format!("the file also has {names}; the tree does not")],
            (Some(missing), Some(extra)) => {
                vec![format!("the file lacks {missing}, and has {extra}, which the tree does not")]
            }
        };
        let structure = !said.is_empty();
        let floats = if leeway.floats { vec![] } else { self.floats };
        let is_shape = !self.shapes.is_empty();
        said.extend(self.shapes.into_iter().chain(self.types).chain(floats));
        match (said.is_empty(), structure, is_shape) {
            (true, ..) => Ok(()),
            (_, true, _) => Err(err!(Structure, "{}", said.join("; "))),
            (_, _, true) => Err(err!(Shape, "{}", said.join("; "))),
            _ => Err(err!(DType, "{}", said.join("; "))),
        }
    }
}

/// Reads tensors of these names, shapes and types from bytes, all of them and no others.
pub(crate) fn read(like: &[(String, &Tensor)], bytes: &[u8]) -> Result<Vec<Tensor>> {
    Source::new(Box::new(InMemory(bytes)))?.load(like, Leeway::default())
}

/// The entries, and where the data begins.
fn read_header(from: &dyn Bytes) -> Result<(Vec<Entry>, u64)> {
    let len = from.count().map_err(unusable)?;
    let Some(rest) = len.checked_sub(8) else {
        return Err(err!(Format, "a file of {len} bytes has no room for the length of its header"));
    };
    let mut size = [0; 8];
    from.read_at(0, &mut size).map_err(unusable)?;
    let size = u64::from_le_bytes(size);
    if size > rest || size > MAX_HEADER {
        return Err(err!(Format, "the length of its header is given as {size} bytes, in a file of {len}"));
    }
    let mut text = vec![0; size as usize];
    from.read_at(8, &mut text).map_err(unusable)?;
    Ok((header::parse(&text, rest - size)?, 8 + size))
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

/// A tensor whose bytes `read` puts where they belong.
fn read_tensor(
    dtype: DType,
    shape: Shape,
    name: &str,
    read: impl FnOnce(&mut [u8]) -> Result<()>,
) -> Result<Tensor> {
    let mut data = Data::Gone;
    let mut out = Output::new(&shape, &mut data);
    with_bits!(dtype, T => {
        ask_for::<T>(shape.numel())?;
        let elements = out.fill::<T>();
        let bytes = bytemuck::cast_slice_mut(elements);
        read(bytes)?;
        swap_to_little_endian(bytes, dtype.real().size());
        if dtype == DType::Bool && bytes.iter().any(|&b| b > 1) {
            return Err(err!(Format, "leaf `{name}` has bytes that are neither true (1) nor false (0)"));
        }
        if let &mut [one] = elements {
            out.splat(one);
        }
    });
    Ok(Tensor::new(dtype, shape, data))
}
