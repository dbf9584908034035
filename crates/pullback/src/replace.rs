//! A file that takes the place of another, whole or not at all.

use crate::error::{Error, err};
use crate::temporary;
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a file beside the one that it then takes the place of: whatever goes wrong, there is a whole file. It has the permissions of the one
/// before it, a symbolic link stays and leads to it, and when this returns it is on the disk.
///
/// What is no file, such as a pipe or `/dev/null`, is written to and stays.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let old = match fs::metadata(path) {
        Ok(old) if !old.is_file() && !old.is_dir() => {
            let mut out = BufWriter::new(File::options().write(true).open(path)?);
            write(&mut out)?;
            return out.flush();
        }
        Ok(old) => Some(old),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    };
    let path = followed(path)?;
    remove_abandoned(&path);
    // The one before may have been secret.
    let partial = Partial::new(&path, old.is_some())?;
    let mut out = BufWriter::new(&partial.file);
    write(&mut out)?;
    out.flush()?;
    drop(out);
    if let Some(old) = &old {
        partial.file.set_permissions(kept(old, &partial.file))?;
    }
    partial.file.sync_all()?;
    partial.take_the_place_of(&path)?;
    sync_directory_of(&path)
}

/// What a path leads to, also where there is nothing yet.
fn followed(path: &Path) -> io::Result<PathBuf> {
    /// As many links as Linux follows.
    const LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match fs::read_link(&path) {
            Ok(to) => path = directory_of(&path).join(to),
            // No link, or nothing there: writing says what else may be wrong.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("symbolic links lead in a circle"))
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    }
}

/// The permissions of the file before, whose owner the new one gets too if that is allowed.
fn kept(old: &Metadata, new: &File) -> fs::Permissions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        // Refused, it is this user's file: as any new one.
        let _ = fchown(new, Some(old.uid()), Some(old.gid()));
    }
    #[cfg(not(unix))]
    let _ = new;
    old.permissions()
}

const PARTIAL: &str = ".partial";

/// A file that is not complete. It is locked while its maker lives, and goes with this unless it took its place.
struct Partial {
    file: File,
    path: PathBuf,
    placed: bool,
}

impl Partial {
    fn new(path: &Path, private: bool) -> io::Result<Partial> {
        let mut before = path.as_os_str().to_owned();
        before.push(".");
        loop {
            let (file, path) = temporary::create(before.as_ref(), PARTIAL, private)?;
            let partial = Partial { file, path, placed: false };
            match partial.file.try_lock() {
                // Between its making and the lock, another save may have taken it for abandoned.
                Ok(()) if partial.path.exists() => return Ok(partial),
                // Where files cannot be locked, none is found to be abandoned.
                Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Unsupported => return Ok(partial),
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(e)) => return Err(e),
            }
        }
    }

    fn take_the_place_of(mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        self.placed = true;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.placed {
            // It may not exist any more; the error that led here is the one to tell.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes what saves to this path have left that were killed: those files are locked by nobody. What cannot be removed stays.
fn remove_abandoned(path: &Path) {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return };
    let before = format!("{name}.");
    let Ok(partial) = temporary::made_in(directory_of(path), &before, PARTIAL) else { return };
    for path in partial {
        // Held until it is gone, so that its maker sees that it lost it.
        if let Ok(file) = File::options().write(true).open(&path)
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Lets the new name of a file last too.
fn sync_directory_of(path: &Path) -> io::Result<()> {
    // Not every system opens directories as files, nor writes them on demand.
    let Ok(dir) = File::open(directory_of(path)) else { return Ok(()) };
    match dir.sync_all() {
        Err(e) if !matches!(e.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput) => Err(e),
        _ => Ok(()),
    }
}

/// An error of the file, or of what was to be written to it.
pub(crate) fn unusable(e: io::Error) -> Error {
    e.downcast().unwrap_or_else(|e| err!(Io, "{e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_partial_file_of_a_living_save_stays_and_one_of_a_dead_save_goes() {
        let dir = std::env::temp_dir().join(format!("pullback-replace-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("model");
        let alive = Partial::new(&path, false).unwrap();
        let dead = temporary::create(&dir.join("model."), PARTIAL, false).unwrap().1;
        let others =
            ["model.partial", "model.1-2.partial", "other.0123456789abcdef-0.partial"].map(|n| dir.join(n));
        others.iter().for_each(|path| fs::write(path, "").unwrap());
        replace(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(alive.path.exists() && !dead.exists());
        assert!(others.iter().all(|path| path.exists()), "what may be somebody else's");
        drop(alive);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1 + others.len());
        fs::remove_dir_all(&dir).unwrap();
    }
}
