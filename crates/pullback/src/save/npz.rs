//! Several arrays in one file: NumPy's `.npz`, a zip archive of [`.npy`](crate::npy) files. Behind the feature `npz`.
//!
//! ```
//! use pullback::{npz, prelude::*};
//! # let path = std::env::temp_dir().join(format!("arrays-{}.npz", std::process::id()));
//! npz::save(&[("x", Tensor::from([1.0, 2.0])), ("n", Tensor::scalar(3i64))], &path)?;
//! let all = npz::load(&path)?;
//! assert_eq!(all["x"].to_vec::<f64>(), [1.0, 2.0]);
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), pullback::Error>(())
//! ```

use super::npy;
use crate::error::{Error, Result, err};
use crate::replace::{replace, unusable};
use crate::tensor::Tensor;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom, Write};
use std::panic::Location;
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// What every entry of an archive is named.
const ENDING: &str = ".npy";

/// How much larger than its compressed bytes an entry can be: deflate does not reach this, so that a file that claims more is refused before memory is taken.
const EXPANSION: u64 = 1100;

/// Writes named tensors to a file, without compressing them, as `numpy.savez` does. A file that was there before is replaced once the new one is complete.
#[track_caller]
#[doc(alias = "savez")]
#[doc(alias = "np.savez")]
pub fn save<S: AsRef<str>>(named: &[(S, Tensor)], path: impl AsRef<Path>) -> Result<()> {
    let (path, location) = (path.as_ref(), Location::caller());
    let write = || {
        let bytes = written(named, CompressionMethod::Stored)?;
        replace(path, |out| out.write_all(&bytes)).map_err(unusable)
    };
    write().map_err(|e: Error| e.within(path.display()).in_op("npz::save").at(location))
}

/// Reads all arrays of a file.
#[track_caller]
#[doc(alias = "np.load")]
pub fn load(path: impl AsRef<Path>) -> Result<BTreeMap<String, Tensor>> {
    let (path, location) = (path.as_ref(), Location::caller());
    let read = || read(BufReader::new(File::open(path).map_err(unusable)?));
    read().map_err(|e: Error| e.within(path.display()).in_op("npz::load").at(location))
}

/// What [`save`] writes, as bytes.
#[track_caller]
pub fn to_bytes<S: AsRef<str>>(named: &[(S, Tensor)]) -> Result<Vec<u8>> {
    let location = Location::caller();
    written(named, CompressionMethod::Stored).map_err(|e| e.in_op("npz::to_bytes").at(location))
}

/// [`to_bytes`] with the arrays compressed, as `numpy.savez_compressed` does.
///
/// ```
/// use pullback::{npz, prelude::*};
/// let x = [("x", Tensor::zeros([1000]))];
/// let small = npz::to_compressed_bytes(&x)?;
/// assert!(small.len() < 500 && npz::from_bytes(&small)?["x"].shape() == [1000]);
/// # Ok::<(), pullback::Error>(())
/// ```
#[track_caller]
#[doc(alias = "savez_compressed")]
#[doc(alias = "np.savez_compressed")]
pub fn to_compressed_bytes<S: AsRef<str>>(named: &[(S, Tensor)]) -> Result<Vec<u8>> {
    let location = Location::caller();
    written(named, CompressionMethod::Deflated).map_err(|e| e.in_op("npz::to_compressed_bytes").at(location))
}

/// [`load`] from bytes.
#[track_caller]
pub fn from_bytes(bytes: &[u8]) -> Result<BTreeMap<String, Tensor>> {
    let location = Location::caller();
    read(Cursor::new(bytes)).map_err(|e| e.in_op("npz::from_bytes").at(location))
}

fn written<S: AsRef<str>>(named: &[(S, Tensor)], method: CompressionMethod) -> Result<Vec<u8>> {
    let mut names = HashSet::new();
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, x) in named {
        let name = name.as_ref();
        if !names.insert(name) {
            return Err(err!(Structure, "two arrays have the name `{name}`"));
        }
        let bytes = npy::written(x).map_err(|e| e.within(format_args!("`{name}`")))?;
        let options =
            SimpleFileOptions::default().compression_method(method).large_file(bytes.len() >= 1 << 31);
        out.start_file(format!("{name}{ENDING}"), options).map_err(unzipped)?;
        out.write_all(&bytes).map_err(unusable)?;
    }
    Ok(out.finish().map_err(unzipped)?.into_inner())
}

fn unzipped(e: zip::result::ZipError) -> Error {
    match e {
        zip::result::ZipError::Io(e) => unusable(e),
        other => err!(Format, "it is not a zip archive that can be read: {other}"),
    }
}

fn read(mut from: impl Read + Seek) -> Result<BTreeMap<String, Tensor>> {
    let len = from.seek(SeekFrom::End(0)).map_err(unusable)?;
    let mut archive = ZipArchive::new(from).map_err(unzipped)?;
    let mut out = BTreeMap::new();
    let mut used = 0u64;
    for k in 0..archive.len() {
        let entry = archive.by_index(k).map_err(unzipped)?;
        let name = entry.name().map_err(unzipped)?.into_owned();
        let Some(array) = name.strip_suffix(ENDING) else {
            return Err(err!(Format, "its entry `{}` is not a .npy file", name.escape_debug()));
        };
        let (size, compressed) = (entry.size(), entry.compressed_size());
        if size > compressed.saturating_mul(EXPANSION).saturating_add(1 << 10) {
            return Err(err!(
                Format,
                "`{}` cannot have {size} bytes: it has {compressed} compressed",
                name.escape_debug()
            ));
        }
        // Many entries over the same bytes would be as many arrays.
        used = used.saturating_add(compressed);
        if used > len {
            return Err(err!(Format, "its entries overlap: they have more bytes than the {len} of the file"));
        }
        let x = npy::read(entry, size).map_err(|e| e.within(format_args!("`{}`", array.escape_debug())))?;
        if out.insert(array.to_owned(), x).is_some() {
            return Err(err!(Format, "it has two arrays of the name `{}`", array.escape_debug()));
        }
    }
    Ok(out)
}
