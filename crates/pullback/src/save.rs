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
//!
//! [`Loading`] renames, converts and leaves out; [`Archive`] is the file as a map of names, of which each tensor is read when it is asked for.

pub mod csv;
mod loading;
pub mod npy;
#[cfg(feature = "npz")]
pub mod npz;

pub use loading::{Archive, Differences, Loading};

use crate::error::{Error, Result};
use crate::replace::{replace, unusable};
use crate::tensor::archive;
use crate::transform::{Tree, from_leaves};
use std::io::Write;
use std::panic::Location;
use std::path::Path;

/// Writes the leaves of a tree to a file. A file that was there before is replaced once the new one is complete and on the disk: it keeps its
/// permissions, and a symbolic link to it stays. What a save that was killed has left beside it, the next one removes.
///
/// The error is [`Io`](crate::ErrorKind::Io) if the file cannot be written, [`Structure`](crate::ErrorKind::Structure) if two
/// leaves have one name.
#[track_caller]
#[doc(alias = "torch.save")]
#[doc(alias = "save_file")]
pub fn save(tree: &impl Tree, path: impl AsRef<Path>) -> Result<()> {
    let (path, location) = (path.as_ref(), Location::caller());
    let write = || {
        let named = tree.named();
        let (header, tensors) = archive::layout(&named)?;
        let write = |out: &mut dyn Write| {
            out.write_all(&header)?;
            archive::write_data(&tensors, out)
        };
        replace(path, write).map_err(unusable)
    };
    write().map_err(|e: Error| e.within(path.display()).in_op("save").at(location))
}

/// Reads a file into the structure of `like`, whose leaves say which names, shapes and element types the file must
/// have: all of them, and no others. Their values do not matter. [`Loading`] is less strict.
///
/// The error is [`Io`](crate::ErrorKind::Io) if the file cannot be read, [`Format`](crate::ErrorKind::Format) if it is
/// not a safetensors file, and [`Structure`](crate::ErrorKind::Structure), [`Shape`](crate::ErrorKind::Shape) or
/// [`DType`](crate::ErrorKind::DType) if it does not fit `like`: it names all that differs. The tensors that come back do not require gradients.
#[track_caller]
#[doc(alias = "torch.load")]
#[doc(alias = "load_file")]
pub fn load<X: Tree>(like: &X, path: impl AsRef<Path>) -> Result<X> {
    Loading::new().load(like, path)
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
    archive::to_bytes(&tree.named()).map_err(|e| e.in_op("to_bytes").at(location))
}

/// [`load`] from bytes.
#[track_caller]
pub fn from_bytes<X: Tree>(like: &X, bytes: &[u8]) -> Result<X> {
    let location = Location::caller();
    let read = archive::read(&like.named(), bytes);
    Ok(from_leaves(like, read.map_err(|e| e.in_op("from_bytes").at(location))?))
}
