//! Files under names that nobody else has.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Creates a file whose name is `before`, a part that no other has, and `after`. The number of the process would not do for that part: it comes
/// again, in containers at every start. A `private` one cannot be read by other users.
pub(crate) fn create(before: &Path, after: &str, private: bool) -> io::Result<(File, PathBuf)> {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    static FILES: AtomicU64 = AtomicU64::new(0);
    // The standard library seeds its hash maps with numbers that the system draws.
    let process = PROCESS.get_or_init(|| RandomState::new().hash_one(std::process::id()));
    loop {
        let mut name = before.as_os_str().to_owned();
        name.push(format!("{process:016x}-{}{after}", FILES.fetch_add(1, Relaxed)));
        match options(private).open(&name) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            file => return Ok((file?, name.into())),
        }
    }
}

fn options(private: bool) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    if private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = private;
    options
}

/// The files in a directory that [`create`] made, with their names beginning and ending so.
pub(crate) fn made_in<'a>(
    dir: &Path,
    before: &'a str,
    after: &'a str,
) -> io::Result<impl Iterator<Item = PathBuf> + use<'a>> {
    let ours = move |name: &str| {
        let own = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        own.and_then(|own| own.split_once('-')).is_some_and(|(process, file)| {
            process.len() == 16
                && process.bytes().all(|b| b.is_ascii_hexdigit())
                && !file.is_empty()
                && file.bytes().all(|b| b.is_ascii_digit())
        })
    };
    let named = move |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(ours);
    Ok(std::fs::read_dir(dir)?.filter_map(|entry| Some(entry.ok()?.path())).filter(named))
}
