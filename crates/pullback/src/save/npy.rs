//! Arrays as NumPy's `.npy` files.
//!
//! Files of the versions 1 to 3 are read, in either byte order, row-major or in Fortran's order, complex numbers too. What is written is version 1, little-endian and
//! row-major. A file from elsewhere cannot do harm: its header is checked against its length before memory is taken.
//!
//! ```
//! use pullback::{npy, prelude::*};
//! # let path = std::env::temp_dir().join(format!("array-{}.npy", std::process::id()));
//! npy::save(&Tensor::from([[1.0, 2.0], [3.0, 4.0]]), &path)?;
//! assert_eq!(npy::load(&path)?.to_vec::<f64>(), [1.0, 2.0, 3.0, 4.0]);
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), pullback::Error>(())
//! ```

mod header;

use crate::DType;
use crate::error::{Error, Result, err};
use crate::replace::{replace, unusable};
use crate::tensor::Tensor;
use header::Header;
use std::fs::File;
use std::io::{BufReader, Read};
use std::panic::Location;
use std::path::Path;

/// Writes a tensor to a file. A file that was there before is replaced once the new one is complete, as [`save`](crate::save()) does.
#[track_caller]
#[doc(alias = "np.save")]
pub fn save(x: &Tensor, path: impl AsRef<Path>) -> Result<()> {
    let (path, location) = (path.as_ref(), Location::caller());
    let write = || {
        let bytes = written(x)?;
        replace(path, |out| out.write_all(&bytes)).map_err(unusable)
    };
    write().map_err(|e: Error| e.within(path.display()).in_op("npy::save").at(location))
}

/// Reads a file.
#[track_caller]
#[doc(alias = "np.load")]
pub fn load(path: impl AsRef<Path>) -> Result<Tensor> {
    let (path, location) = (path.as_ref(), Location::caller());
    let read = || {
        let file = File::open(path).map_err(unusable)?;
        let len = file.metadata().map_err(unusable)?.len();
        read(BufReader::new(file), len)
    };
    read().map_err(|e: Error| e.within(path.display()).in_op("npy::load").at(location))
}

/// What [`save`] writes, as bytes.
///
/// ```
/// use pullback::{npy, prelude::*};
/// let x = npy::from_bytes(&npy::to_bytes(&Tensor::from([1i64, 2]))?)?;
/// assert_eq!(x.to_vec::<i64>(), [1, 2]);
/// # Ok::<(), pullback::Error>(())
/// ```
#[track_caller]
pub fn to_bytes(x: &Tensor) -> Result<Vec<u8>> {
    let location = Location::caller();
    written(x).map_err(|e| e.in_op("npy::to_bytes").at(location))
}

/// [`load`] from bytes.
#[track_caller]
pub fn from_bytes(bytes: &[u8]) -> Result<Tensor> {
    let location = Location::caller();
    read(bytes, bytes.len() as u64).map_err(|e| e.in_op("npy::from_bytes").at(location))
}

/// The whole of a file.
pub(crate) fn written(x: &Tensor) -> Result<Vec<u8>> {
    let mut out = header::print(x.dtype(), x.shape())?;
    let mut data = x.host()?.row_major_bytes()?;
    if cfg!(target_endian = "big") {
        reverse(&mut data, x.dtype());
    }
    out.append(&mut data);
    Ok(out)
}

/// Reads an array from a stream of `len` bytes.
pub(crate) fn read(mut from: impl Read, len: u64) -> Result<Tensor> {
    let (Header { dtype, big_endian, fortran_order, mut shape }, rest) = header::read(&mut from, len)?;
    if fortran_order {
        shape.reverse();
    }
    let shape = crate::Shape::from(shape);
    let n = shape.checked_len()?;
    let needed = n as u64 * dtype.size() as u64;
    if needed != rest {
        return Err(err!(
            Format,
            "an array of {dtype} {shape:?} has {needed} bytes, but {rest} follow the header"
        ));
    }
    let x = Tensor::from_bytes(dtype, shape, |bytes| {
        from.read_exact(bytes).map_err(unusable)?;
        if big_endian != cfg!(target_endian = "big") {
            reverse(bytes, dtype);
        }
        if dtype == DType::Bool {
            // NumPy takes every byte but zero for true.
            bytes.iter_mut().for_each(|b| *b = u8::from(*b != 0));
        }
        Ok(())
    })?;
    if !fortran_order || x.rank() < 2 {
        return Ok(x);
    }
    let turned: Vec<isize> = (0..x.rank() as isize).rev().collect();
    x.try_permute(&turned)
}

/// Exchanges the byte orders. The parts of a complex number keep their places.
fn reverse(bytes: &mut [u8], dtype: DType) {
    let size = dtype.real().size();
    if size > 1 {
        bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
}
