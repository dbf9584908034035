//! Values in a temporary file.

use crate::error::{Error, Result, err};
use crate::ops::Aval;
use crate::shape::Strides;
use crate::temporary;
use crate::tensor::buffer::Buffer;
use crate::tensor::{Data, Device, Strided, Tensor};
use crate::transform::vmap::mapped;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use std::{collections::HashMap, thread};

/// Values of which as many as can be lie in a file, without their histories. The file goes when this is dropped.
///
/// The file holds whole buffers, so that a view comes back as the view that it was: for another layout, kernels might add in
/// another order, and round otherwise.
pub(super) struct Spill {
    file: Temporary,
    /// The lengths of the buffers in bytes, in the order of the file.
    buffers: Vec<usize>,
    places: Vec<Spilled>,
}

/// Where a value is.
enum Spilled {
    /// In memory: a number without a buffer, or a value of an outer transform, of which the elements are not all.
    Memory(Tensor),
    /// A view of a buffer of the file.
    View { aval: Aval, buffer: usize, offset: usize, strides: Strides },
    /// On a device, from a copy on the host.
    Device(Device, Box<Spilled>),
    /// The values of all lanes of the `vmap` of this level.
    Lanes(u64, Box<Spilled>),
}

impl Spill {
    pub fn new(dir: &Path, values: &[Tensor]) -> Result<Spill> {
        let mut buffers = Vec::new();
        let places = values.iter().map(|t| place(&t.bare(), &mut buffers)).collect::<Result<_>>()?;
        let lengths = buffers.iter().map(|b| b.slice::<u8>().len()).collect();
        Ok(Spill { file: Temporary::new(dir, &buffers)?, buffers: lengths, places })
    }

    /// The values again, bit by bit.
    pub fn load(&self) -> Result<Vec<Tensor>> {
        let buffers = self.file.read(&self.buffers)?;
        self.places.iter().map(|p| p.value(&buffers)).collect()
    }
}

fn place(t: &Tensor, buffers: &mut Vec<Buffer>) -> Result<Spilled> {
    Ok(match t.data() {
        Data::Strided(Strided { buffer, offset, strides }) => {
            let start = |b: &Buffer| b.slice::<u8>().as_ptr();
            let known = buffers.iter().position(|b| start(b) == start(buffer));
            let at = known.unwrap_or_else(|| {
                buffers.push(buffer.clone());
                buffers.len() - 1
            });
            let aval = Aval { dtype: t.dtype(), shape: t.node().shape.clone() };
            Spilled::View { aval, buffer: at, offset: *offset, strides: strides.clone() }
        }
        Data::Placed(p) => Spilled::Device(p.device.clone(), Box::new(place(&t.host()?, buffers)?)),
        Data::Mapped(m) if m.value.node().deps.is_empty() => {
            Spilled::Lanes(m.level, Box::new(place(&m.value, buffers)?))
        }
        _ => Spilled::Memory(t.clone()),
    })
}

impl Spilled {
    fn value(&self, buffers: &[Buffer]) -> Result<Tensor> {
        Ok(match self {
            Spilled::Memory(t) => t.clone(),
            Spilled::Device(device, copy) => copy.value(buffers)?.try_to(device)?,
            Spilled::Lanes(level, all) => mapped(all.value(buffers)?, *level),
            Spilled::View { aval, buffer, offset, strides } => {
                let (buffer, strides) = (buffers[*buffer].clone(), strides.clone());
                let data = Data::Strided(Strided { buffer, offset: *offset, strides });
                Tensor::new(aval.dtype, aval.shape.clone(), data)
            }
        })
    }
}

/// A file that nobody else reads or writes, removed when this is dropped; none if there is nothing to write.
struct Temporary(Option<(PathBuf, Arc<Claim>)>);

/// The beginning and the end of the names of files.
const NAMES: (&str, &str) = ("pullback-", ".residuals");

impl Temporary {
    fn new(dir: &Path, buffers: &[Buffer]) -> Result<Temporary> {
        if buffers.is_empty() {
            return Ok(Temporary(None));
        }
        let full = |e: io::Error, path: &Path| {
            let bytes: usize = buffers.iter().map(|b| b.slice::<u8>().len()).sum();
            err!(
                Io,
                "{}: the {bytes} bytes that are kept for the pullback cannot be written: {e}; choose another directory to \
                 offload to, or keep them in memory",
                path.display()
            )
        };
        let claim = Claim::on(dir);
        let created = temporary::create(&dir.join(NAMES.0), NAMES.1, true);
        let (mut file, path) = created.map_err(|e| full(e, dir))?;
        let temporary = Temporary(Some((path.clone(), claim)));
        buffers.iter().try_for_each(|b| file.write_all(b.slice())).map_err(|e| full(e, &path))?;
        Ok(temporary)
    }

    fn read(&self, lengths: &[usize]) -> Result<Vec<Buffer>> {
        let Some((path, _)) = &self.0 else { return Ok(Vec::new()) };
        let read = || {
            // It is not held open: there may be more records than a process may have files.
            let mut file = File::open(path)?;
            let next = |&bytes: &usize| {
                let mut buffer = Buffer::try_new(bytes).map_err(io::Error::other)?;
                let to = buffer.slice_mut::<u8>().expect("a new buffer has one holder");
                file.read_exact(&mut to[..bytes]).map(|()| buffer)
            };
            lengths.iter().map(next).collect::<io::Result<Vec<Buffer>>>()
        };
        let lost = |e: io::Error| -> Error {
            err!(
                Io,
                "{}: the values that were offloaded for the pullback cannot be read back: {e}; the file must stay as it is \
                 until the gradient is computed",
                path.display()
            )
        };
        read().map_err(lost)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.0 {
            // Nobody is there to be told, and what is left is a file in a directory for such files.
            let _ = fs::remove_file(path);
        }
    }
}

/// Says that a process has files in a directory: a lock on it that it shares with others of its kind, and that ends with the process however that
/// ends. Who has the directory alone knows that all such files there have been left by processes that were killed.
struct Claim {
    _lock: Option<File>,
}

impl Claim {
    /// The claim of this process. Before its first one, what others have left is removed, if none of them is alive.
    fn on(dir: &Path) -> Arc<Claim> {
        static CLAIMS: Mutex<Option<HashMap<PathBuf, Weak<Claim>>>> = Mutex::new(None);
        let mut claims = CLAIMS.lock().unwrap_or_else(PoisonError::into_inner);
        let claims = claims.get_or_insert_default();
        if let Some(claim) = claims.get(dir).and_then(Weak::upgrade) {
            return claim;
        }
        // Where a directory cannot be opened or locked, nothing is removed, by nobody.
        let file = File::open(dir).ok();
        if let Some(file) = &file {
            if !claims.contains_key(dir) && file.try_lock().is_ok() {
                remove_all(dir);
                let _ = file.unlock();
            }
            // Another process that has it alone is about to be done with it.
            let shared = || file.try_lock_shared().is_ok();
            let _ = (0..100).any(|_| {
                shared() || {
                    thread::sleep(Duration::from_millis(1));
                    false
                }
            });
        }
        let claim = Arc::new(Claim { _lock: file });
        claims.insert(dir.into(), Arc::downgrade(&claim));
        claim
    }
}

fn remove_all(dir: &Path) {
    // What cannot be removed belongs to another user.
    for path in temporary::made_in(dir, NAMES.0, NAMES.1).into_iter().flatten() {
        let _ = fs::remove_file(path);
    }
}
