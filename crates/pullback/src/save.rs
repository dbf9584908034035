//! Saving and loading trees as [safetensors](https://github.com/huggingface/safetensors) files, which PyTorch, JAX and
//! others read and write as well.
//!
//! A file holds the leaves under their names, and no static parts: a tree is loaded into the structure of another one, such as
//! a freshly made model. The same tree gives the same bytes. A file from elsewhere cannot do harm: it is checked whole
//! before any memory is taken for its tensors.
//!
//! ```
//! use pullback::{load, prelude::*, save};
//!
//! #[derive(Tree)]
//! struct Line {
//!     slope: Tensor,
//!     offset: Tensor,
//! }
//!
//! # let path = std::env::temp_dir().join(format!("line-{}.safetensors", std::process::id()));
//! let line = Line { slope: Tensor::from([2.0, 3.0]), offset: Tensor::scalar(1.0) };
//! save(&line, &path)?;
//!
//! let fresh = Line { slope: Tensor::zeros([2]), offset: Tensor::scalar(0.0) };
//! let loaded = load(&fresh, &path)?;
//! assert_eq!(loaded.slope.to_vec::<f64>(), [2.0, 3.0]);
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), pullback::Error>(())
//! ```

// The `safetensors` crate brings a dozen others with it, more than the rest of the library may have; the format is small.
mod header;
mod replace;

use crate::backend::cpu::movement;
use crate::dtype::{DType, with_stored};
use crate::error::{Error, Result, err};
use crate::memory::ask_for;
use crate::shape::Shape;
use crate::tensor::{Data, Output, Tensor};
use crate::transform::{Tree, from_leaves};
use bytemuck::Zeroable;
use header::{Entry, MAX_HEADER};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::panic::Location;
use std::path::Path;

/// Writes the leaves of a tree to a file. A file that was there before is replaced once the new one is complete and on the disk: it keeps its
/// permissions, and a symbolic link to it stays. What a save that was killed has left beside it, the next one removes.
///
/// The error is [`Io`](crate::ErrorKind::Io) if the file cannot be written, [`Structure`](crate::ErrorKind::Structure) if two
/// leaves have one name.
#[track_caller]
pub fn save(tree: &impl Tree, path: impl AsRef<Path>) -> Result<()> {
    let (path, location) = (path.as_ref(), Location::caller());
    let write = || {
        let (header, tensors) = layout(tree)?;
        let write = |out: &mut dyn Write| {
            out.write_all(&header)?;
            write_data(&tensors, out)
        };
        replace::replace(path, write).map_err(unusable)
    };
    write().map_err(|e: Error| e.within(path.display()).in_op("save").at(location))
}

/// Reads a file into the structure of `like`, whose leaves say which names, shapes and element types the file must
/// have: all of them, and no others. Their values do not matter.
///
/// The error is [`Io`](crate::ErrorKind::Io) if the file cannot be read, [`Format`](crate::ErrorKind::Format) if it is
/// not a safetensors file, and [`Structure`](crate::ErrorKind::Structure), [`Shape`](crate::ErrorKind::Shape) or
/// [`DType`](crate::ErrorKind::DType) if it does not fit `like`. The tensors that come back do not require gradients.
#[track_caller]
pub fn load<X: Tree>(like: &X, path: impl AsRef<Path>) -> Result<X> {
    let (path, location) = (path.as_ref(), Location::caller());
    let read = || {
        let file = File::open(path).map_err(unusable)?;
        let len = file.metadata().map_err(unusable)?.len();
        read(like, BufReader::new(file), len)
    };
    read().map_err(|e| e.within(path.display()).in_op("load").at(location))
}

/// What [`save`] writes, as bytes.
///
/// ```
/// use pullback::{prelude::*, save};
/// let x = (Tensor::from([1.0f32, 2.0]), Tensor::from([[true, false]]));
/// let bytes = save::to_bytes(&x)?;
/// let like = (Tensor::full([2], 0.0f32), Tensor::full([1, 2], false));
/// let y = save::from_bytes(&like, &bytes)?;
/// assert_eq!(y.0.to_vec::<f32>(), [1.0, 2.0]);
/// # Ok::<(), pullback::Error>(())
/// ```
#[track_caller]
pub fn to_bytes(tree: &impl Tree) -> Result<Vec<u8>> {
    let location = Location::caller();
    let write = || {
        let (mut out, tensors) = layout(tree)?;
        let bytes = tensors.iter().map(|t| t.numel() * t.dtype().size()).sum();
        ask_for::<u8>(bytes)?;
        out.reserve_exact(bytes);
        write_data(&tensors, &mut out).map_err(unusable)?;
        Ok(out)
    };
    write().map_err(|e: Error| e.in_op("to_bytes").at(location))
}

/// [`load`] from bytes.
#[track_caller]
pub fn from_bytes<X: Tree>(like: &X, bytes: &[u8]) -> Result<X> {
    read(like, bytes, bytes.len() as u64).map_err(|e| e.in_op("from_bytes").at(Location::caller()))
}

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
fn layout(tree: &impl Tree) -> Result<(Vec<u8>, Vec<&Tensor>)> {
    let mut leaves = tree.named();
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
    Ok((bytes, leaves.into_iter().map(|(_, t)| t).collect()))
}

fn write_data(tensors: &[&Tensor], out: &mut dyn Write) -> io::Result<()> {
    for t in tensors {
        with_stored!(t.dtype(), T => {
            let x = t.concrete().map_err(io::Error::other)?.view::<T>();
            if let Some(elements) = x.as_slice().filter(|_| cfg!(target_endian = "little")) {
                out.write_all(bytemuck::cast_slice(elements))?;
                continue;
            }
            ask_for::<T>(x.len()).map_err(io::Error::other)?;
            let mut elements = vec![T::zeroed(); x.len()];
            movement::copy(x, &mut elements);
            let bytes = bytemuck::cast_slice_mut(&mut elements);
            swap_to_little_endian(bytes, t.dtype().size());
            out.write_all(bytes)?;
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

/// Replaces a file by these bytes.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    replace::replace(path, |out| out.write_all(bytes)).map_err(unusable)
}

/// An error of the file, or of what was to be written to it.
pub(crate) fn unusable(e: io::Error) -> Error {
    e.downcast().unwrap_or_else(|e| err!(Io, "{e}"))
}

/// Reads a tree from a stream of `len` bytes. The data has no gaps, so that one pass over it is enough.
fn read<X: Tree>(like: &X, mut from: impl Read, len: u64) -> Result<X> {
    let entries = read_header(&mut from, len)?;
    let positions = fit(like, &entries)?;
    let expected = like.leaves();
    let mut found: Vec<Option<Tensor>> = vec![None; expected.len()];
    for (entry, k) in entries.iter().zip(positions) {
        found[k] = Some(read_tensor(expected[k], &entry.name, &mut from)?);
    }
    Ok(from_leaves(like, found.into_iter().map(|t| t.expect("each leaf has an entry"))))
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

/// For each entry, which leaf of `like` it is; an error unless they fit each other one to one.
fn fit(like: &impl Tree, entries: &[Entry]) -> Result<Vec<usize>> {
    let named = like.named();
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
