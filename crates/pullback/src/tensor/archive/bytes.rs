//! Where the bytes of an archive are: in memory, or in a file.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::sync::Mutex;

/// Bytes of which any part can be read, by several threads at once.
pub(crate) trait Bytes: Send + Sync {
    /// How many there are.
    fn count(&self) -> io::Result<u64>;

    /// Fills `out` with those from `at` on.
    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()>;
}

/// Bytes in memory, or in what is seen as memory.
pub(crate) struct InMemory<B>(pub B);

impl<B: AsRef<[u8]> + Send + Sync> Bytes for InMemory<B> {
    fn count(&self) -> io::Result<u64> {
        Ok(self.0.as_ref().len() as u64)
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        // Checked again: nothing makes `as_ref` answer as it did before.
        let after = usize::try_from(at).ok().and_then(|at| self.0.as_ref().get(at..));
        let part = after.and_then(|bytes| bytes.get(..out.len())).ok_or(ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(part);
        Ok(())
    }
}

/// The bytes of a file.
pub(crate) fn in_file(file: File) -> Box<dyn Bytes> {
    #[cfg(unix)]
    return Box::new(file);
    #[cfg(not(unix))]
    return Box::new(Mutex::new(file));
}

#[cfg(unix)]
impl Bytes for File {
    fn count(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, out, at)
    }
}

/// A file has one position, where it cannot be read elsewhere: threads take turns.
impl Bytes for Mutex<File> {
    fn count(&self) -> io::Result<u64> {
        Ok(self.lock().unwrap_or_else(|e| e.into_inner()).metadata()?.len())
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        let mut file = self.lock().unwrap_or_else(|e| e.into_inner());
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_is_read_and_no_more_than_there_is() {
        let path = std::env::temp_dir().join(format!("pullback-bytes-{}", std::process::id()));
        std::fs::write(&path, b"0123456789").unwrap();
        let open = || File::open(&path).unwrap();
        let all: [Box<dyn Bytes>; 3] =
            [Box::new(InMemory(*b"0123456789")), in_file(open()), Box::new(Mutex::new(open()))];
        for bytes in all {
            assert_eq!(bytes.count().unwrap(), 10);
            let read = |at, n| {
                let mut out = vec![0; n];
                bytes.read_at(at, &mut out).map(|()| String::from_utf8(out).unwrap()).map_err(|e| e.kind())
            };
            assert_eq!((read(7, 3), read(2, 4)), (Ok("789".into()), Ok("2345".into())));
            assert_eq!(read(10, 0), Ok(String::new()));
            assert_eq!(
                (read(8, 3), read(11, 1)),
                (Err(ErrorKind::UnexpectedEof), Err(ErrorKind::UnexpectedEof))
            );
        }
        std::fs::remove_file(path).unwrap();
    }
}
