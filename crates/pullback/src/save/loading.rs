//! Files that do not fit a tree exactly, and files without a tree.

use crate::DType;
use crate::error::{Error, Result, err};
use crate::replace::unusable;
use crate::tensor::Tensor;
use crate::tensor::archive::{InMemory, Leeway, Source, dtype_of, in_file};
use crate::transform::{Tree, from_leaves};
use std::collections::BTreeMap;
use std::fs::File;
use std::panic::Location;
use std::path::{Path, PathBuf};

/// The name in the file of a leaf of the tree.
type Rename<'a> = dyn Fn(&str) -> String + 'a;

/// How to read a file into a tree that it does not fit exactly. [`load`](super::load()) is strict.
///
/// ```
/// use pullback::{prelude::*, save, save::Loading};
/// use std::collections::BTreeMap;
/// # let path = std::env::temp_dir().join(format!("loading-{}.safetensors", std::process::id()));
/// // Written elsewhere, in single precision and by other names.
/// save(&BTreeMap::from([("encoder.w", Tensor::full([2], 1.5f32)), ("step", Tensor::scalar(7i64))]), &path)?;
///
/// #[derive(Tree)]
/// struct Model {
///     w: Tensor,
///     b: Tensor,
/// }
/// let fresh = Model { w: Tensor::zeros([2]), b: Tensor::ones([2]) };
/// let model = Loading::new()
///     .rename(|name| format!("encoder.{name}"))
///     .keep_missing()
///     .ignore_extra()
///     .convert_floats()
///     .load(&fresh, &path)?;
/// assert_eq!(model.w.to_vec::<f64>(), [1.5, 1.5]);
/// assert_eq!(model.b.to_vec::<f64>(), [1.0, 1.0]); // as it was
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), pullback::Error>(())
/// ```
#[derive(Default)]
pub struct Loading<'a> {
    leeway: Leeway,
    rename: Option<Box<Rename<'a>>>,
}

impl<'a> Loading<'a> {
    /// Strict, until something else is said.
    #[must_use]
    pub fn new() -> Self {
        Loading::default()
    }

    /// The name in the file of the leaf that has this name in the tree.
    #[must_use]
    pub fn rename(mut self, name_in_file: impl Fn(&str) -> String + 'a) -> Self {
        self.rename = Some(Box::new(name_in_file));
        self
    }

    /// Leaves that the file lacks stay as they are in the tree.
    #[must_use]
    pub fn keep_missing(mut self) -> Self {
        self.leeway.missing = true;
        self
    }

    /// Tensors of the file that the tree does not have are left out.
    #[must_use]
    pub fn ignore_extra(mut self) -> Self {
        self.leeway.extra = true;
        self
    }

    /// Floats of another type are converted to the type that they have in the tree.
    #[must_use]
    pub fn convert_floats(mut self) -> Self {
        self.leeway.floats = true;
        self
    }

    /// Reads a file into the structure of `like`. Of a file that does not fit, the error names all that is missing, extra, of another shape or of another
    /// type.
    #[track_caller]
    pub fn load<X: Tree>(&self, like: &X, path: impl AsRef<Path>) -> Result<X> {
        let (path, location) = (path.as_ref(), Location::caller());
        let read = || open(path)?.load(&self.renamed(like), self.leeway);
        let read = read().map_err(|e: Error| e.within(path.display()).in_op("load").at(location))?;
        Ok(from_leaves(like, read))
    }

    /// [`load`](Loading::load) from a file that is open, or that is in memory.
    #[track_caller]
    pub fn load_from<X: Tree>(&self, like: &X, archive: &Archive) -> Result<X> {
        let location = Location::caller();
        let read = archive.source.load(&self.renamed(like), self.leeway);
        Ok(from_leaves(like, read.map_err(|e| archive.about(e, "load_from", location))?))
    }

    fn renamed<'t>(&self, like: &'t impl Tree) -> Vec<(String, &'t Tensor)> {
        let named = like.named().into_iter();
        named.map(|(name, t)| (self.rename.as_ref().map_or(name.clone(), |f| f(&name)), t)).collect()
    }
}

fn open(path: &Path) -> Result<Source<'static>> {
    Source::new(in_file(File::open(path).map_err(unusable)?))
}

/// A safetensors file as a map of names. Opening it reads the header alone; each tensor is read when it is asked for, so that a large file needs no more
/// memory than what is used of it. Threads may read at once.
///
/// ```
/// use pullback::{prelude::*, save, save::Archive};
/// # let path = std::env::temp_dir().join(format!("archive-{}.safetensors", std::process::id()));
/// save(&(Tensor::ones([2, 3]), Tensor::scalar(5i64)), &path)?;
/// let file = Archive::open(&path)?;
/// assert_eq!(file.names().collect::<Vec<_>>(), ["0", "1"]);
/// assert_eq!(file.shape("0"), Some(&[2, 3][..]));
/// assert_eq!(file.read("1")?.item(), 5.0);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), pullback::Error>(())
/// ```
#[doc(alias = "safe_open")]
pub struct Archive {
    /// Where it is, unless it is in memory.
    path: Option<PathBuf>,
    places: BTreeMap<String, usize>,
    source: Source<'static>,
}

impl Archive {
    /// Opens a file and reads its header.
    #[track_caller]
    pub fn open(path: impl AsRef<Path>) -> Result<Archive> {
        let (path, location) = (path.as_ref(), Location::caller());
        let source = open(path).map_err(|e| e.within(path.display()).in_op("open").at(location))?;
        Ok(Archive::new(Some(path.into()), source))
    }

    /// A file that is in memory, of whatever kind: a `Vec<u8>`, what `include_bytes!` gives, or a file that was mapped into memory, as here by the crate
    /// `memmap2`.
    ///
    /// ```
    /// use pullback::{prelude::*, save, save::Archive};
    /// # let path = std::env::temp_dir().join(format!("mapped-{}.safetensors", std::process::id()));
    /// save(&(Tensor::ones([2, 3]), Tensor::scalar(5i64)), &path)?;
    /// let file = std::fs::File::open(&path)?;
    /// // SAFETY: nobody changes the file while it is mapped.
    /// let map = unsafe { memmap2::Mmap::map(&file)? };
    /// let file = Archive::from_bytes(map)?;
    /// assert_eq!(file.read("1")?.item(), 5.0);
    /// # drop(file);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A tensor that is read is a copy, of a map too: the format does not promise that elements are aligned, operations in place write to memory that is
    /// theirs, and a file that changed under its map would change values that gradients are computed from. [`open`](Archive::open)
    /// makes that one copy too, and processes share the system's cache of a file either way: a map pays for thousands of small tensors, and where the same
    /// ones are read again and again.
    #[track_caller]
    #[doc(alias = "mmap")]
    pub fn from_bytes(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Archive> {
        let location = Location::caller();
        let source = Source::new(Box::new(InMemory(bytes)));
        Ok(Archive::new(None, source.map_err(|e| e.in_op("from_bytes").at(location))?))
    }

    fn new(path: Option<PathBuf>, source: Source<'static>) -> Archive {
        let places = source.entries().iter().enumerate().map(|(k, e)| (e.name.clone(), k)).collect();
        Archive { path, places, source }
    }

    /// The names of its tensors, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(|name| &name[..])
    }

    /// The shape of a tensor; `None` if there is none of that name.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.places.get(name).map(|&k| &self.source.entries()[k].shape[..])
    }

    /// The element type of a tensor; `None` if there is none of that name, or if tensors here do not have its type.
    pub fn dtype(&self, name: &str) -> Option<DType> {
        self.places.get(name).and_then(|&k| dtype_of(&self.source.entries()[k].dtype))
    }

    /// Reads one tensor.
    #[track_caller]
    pub fn read(&self, name: &str) -> Result<Tensor> {
        let location = Location::caller();
        let read = match self.places.get(name) {
            Some(&k) => self.source.read(k),
            None => Err(err!(Structure, "there is no tensor of the name `{name}`")),
        };
        read.map_err(|e| self.about(e, "read", location))
    }

    /// Reads all tensors. [`save`](super::save()) of such a map writes them back under the same names.
    #[track_caller]
    pub fn read_all(&self) -> Result<BTreeMap<String, Tensor>> {
        self.places.keys().map(|name| Ok((name.clone(), self.read(name)?))).collect()
    }

    /// All that is different between the file and a tree; nothing where [`load`](super::load()) would succeed.
    #[track_caller]
    pub fn differences(&self, tree: &impl Tree) -> Result<Differences> {
        let location = Location::caller();
        let found = self.source.difference(&tree.named());
        let found = found.map_err(|e| self.about(e, "differences", location))?;
        let different = [found.shapes, found.types, found.floats].concat();
        Ok(Differences { missing: found.missing, extra: found.extra, different })
    }

    /// The error, with the file that it is about.
    fn about(&self, e: Error, op: &'static str, location: &'static Location<'static>) -> Error {
        match &self.path {
            Some(path) => e.within(path.display()).in_op(op).at(location),
            None => e.in_op(op).at(location),
        }
    }
}

/// How a file differs from a tree: see [`Archive::differences`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// Leaves of the tree that the file lacks.
    pub missing: Vec<String>,
    /// Tensors of the file that the tree does not have.
    pub extra: Vec<String>,
    /// What is of another shape or type in both, as a sentence each.
    pub different: Vec<String>,
}
