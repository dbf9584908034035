//! Files that do not fit a tree exactly, and files without a tree.

use crate::DType;
use crate::error::{Error, Result, err};
use crate::replace::unusable;
use crate::tensor::Tensor;
use crate::tensor::archive::{Leeway, Source, dtype_of};
use crate::transform::{Tree, from_leaves};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

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

    fn renamed<'t>(&self, like: &'t impl Tree) -> Vec<(String, &'t Tensor)> {
        let named = like.named().into_iter();
        named.map(|(name, t)| (self.rename.as_ref().map_or(name.clone(), |f| f(&name)), t)).collect()
    }
}

fn open(path: &Path) -> Result<Source<BufReader<File>>> {
    let file = File::open(path).map_err(unusable)?;
    let len = file.metadata().map_err(unusable)?.len();
    Source::new(BufReader::new(file), len)
}

/// A safetensors file as a map of names. Opening it reads the header alone; each tensor is read when it is asked for, so that a large file needs no more
/// memory than what is used of it.
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
// A memory-mapped file would need `unsafe`, since others can change it while it is seen, and tensors have memory of their own kind anyway: its pages would be
// copied too.
pub struct Archive {
    path: PathBuf,
    places: BTreeMap<String, usize>,
    shapes: Vec<(Option<DType>, Vec<usize>)>,
    source: Mutex<Source<BufReader<File>>>,
}

impl Archive {
    /// Opens a file and reads its header.
    #[track_caller]
    pub fn open(path: impl AsRef<Path>) -> Result<Archive> {
        let (path, location) = (path.as_ref(), Location::caller());
        let source = open(path).map_err(|e| e.within(path.display()).in_op("open").at(location))?;
        let places = source.entries().iter().enumerate().map(|(k, e)| (e.name.clone(), k)).collect();
        let shapes = source.entries().iter().map(|e| (dtype_of(&e.dtype), e.shape.clone())).collect();
        Ok(Archive { path: path.into(), places, shapes, source: Mutex::new(source) })
    }

    /// The names of its tensors, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(|name| &name[..])
    }

    /// The shape of a tensor; `None` if there is none of that name.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.places.get(name).map(|&k| &self.shapes[k].1[..])
    }

    /// The element type of a tensor; `None` if there is none of that name, or if tensors here do not have its type.
    pub fn dtype(&self, name: &str) -> Option<DType> {
        self.places.get(name).and_then(|&k| self.shapes[k].0)
    }

    fn source(&self) -> MutexGuard<'_, Source<BufReader<File>>> {
        self.source.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Reads one tensor.
    #[track_caller]
    pub fn read(&self, name: &str) -> Result<Tensor> {
        let location = Location::caller();
        let read = match self.places.get(name) {
            Some(&k) => self.source().read(k),
            None => Err(err!(Structure, "there is no tensor of the name `{name}`")),
        };
        read.map_err(|e| e.within(self.path.display()).in_op("read").at(location))
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
        let found = self.source().difference(&tree.named());
        let found = found.map_err(|e| e.within(self.path.display()).in_op("differences").at(location))?;
        let different = [found.shapes, found.types, found.floats].concat();
        Ok(Differences { missing: found.missing, extra: found.extra, different })
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
