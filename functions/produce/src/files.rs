//! Sources that are files of this machine, read as objects of S3 are.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use fanfold::limits::OBJECT_HEAD_BYTES;
use fanfold::producing::{LocalFile, Objects};
use flate2::read::MultiGzDecoder;

use crate::objects::{Bytes, Head, Names, Pages, Store};
use crate::{SourceAnswer, SourceError, SourceRequest};

/// Files in a folder, or anywhere if they are named by an absolute path.
#[derive(Debug)]
struct Folder<'a>(&'a Path);

/// Reads a page of a file.
pub(crate) async fn ask(folder: &Path, file: &LocalFile, ask: &SourceRequest) -> Result<SourceAnswer, SourceError> {
    let objects = Objects {
        bucket: String::new(),
        key: Some(file.path.clone()),
        keys: None,
        prefix: None,
        format: file.format,
        kind: file.kind.clone(),
    };
    Pages { store: &Folder(folder), objects: &objects, ask }.page().await
}

/// Opens a file, and returns its version and size.
fn open(path: &Path) -> Result<(File, String, u64), SourceError> {
    let error = |error: std::io::Error| failed(path, &error);
    let file = File::open(path).map_err(error)?;
    let about = file.metadata().map_err(error)?;
    let changed = about.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Ok((file, format!("{}-{}", about.len(), changed.as_nanos()), about.len()))
}

/// The same, if it is of this version. Asked before and after a read, since a file may be changed during one.
fn open_version(path: &Path, version: &str) -> Result<File, SourceError> {
    let (file, found, _) = open(path)?;
    if found != version {
        return Err(SourceError::for_good(format!("{}: was changed while it was read", path.display())));
    }
    Ok(file)
}

fn failed(path: &Path, error: &std::io::Error) -> SourceError {
    let message = format!("{}: {error}", path.display());
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory => SourceError::for_good(message),
        _ => SourceError::again(message),
    }
}

/// Reads on a thread of its own: files may be slow.
async fn apart<T: Send + 'static>(
    path: PathBuf,
    read: impl FnOnce(&Path) -> Result<T, SourceError> + Send + 'static,
) -> Result<T, SourceError> {
    let read = tokio::task::spawn_blocking(move || read(&path)).await;
    read.unwrap_or_else(|error| Err(SourceError::again(error)))
}

impl Store for Folder<'_> {
    async fn head(&self, name: &str, version: Option<&str>) -> Result<Arc<Head>, SourceError> {
        let wanted = version.map(str::to_owned);
        apart(self.0.join(name), move |path| {
            let (file, version, size) = open(path)?;
            if wanted.is_some_and(|wanted| wanted != version) {
                return open_version(path, "").map(|_| Arc::default());
            }
            let mut first = Vec::new();
            file.take(OBJECT_HEAD_BYTES as u64).read_to_end(&mut first).map_err(|error| failed(path, &error))?;
            open_version(path, &version)?;
            Ok(Arc::new(Head { version, size, compressed: false, first }))
        })
        .await
    }

    async fn bytes(&self, name: &str, version: &str, from: u64, len: u64) -> Result<Vec<u8>, SourceError> {
        let version = version.to_owned();
        apart(self.0.join(name), move |path| {
            let mut file = open_version(path, &version)?;
            let mut bytes = Vec::new();
            let read = file.seek(SeekFrom::Start(from)).and_then(|_| file.take(len).read_to_end(&mut bytes));
            open_version(path, &version)?;
            match read.map_err(|error| failed(path, &error))? {
                read if read as u64 == len => Ok(bytes),
                _ => Err(SourceError::again(format!("{}: ends while it is read", path.display()))),
            }
        })
        .await
    }

    async fn decompressed(&self, name: &str, version: &str, from: u64, len: usize) -> Result<Bytes, SourceError> {
        let version = version.to_owned();
        apart(self.0.join(name), move |path| {
            let mut decompressed = MultiGzDecoder::new(std::io::BufReader::new(open_version(path, &version)?));
            let mut bytes = Vec::new();
            let skipped = std::io::copy(&mut decompressed.by_ref().take(from), &mut std::io::sink());
            // One more, to see whether there is more.
            let read = skipped.and_then(|_| decompressed.take(len as u64 + 1).read_to_end(&mut bytes));
            open_version(path, &version)?;
            read.map_err(|error| SourceError::for_good(format!("{}: is not gzip: {error}", path.display())))?;
            let last = bytes.len() <= len;
            bytes.truncate(len);
            Ok(Bytes { bytes, last })
        })
        .await
    }

    async fn names(&self, _: &str, _: Option<&str>) -> Result<Names, SourceError> {
        Ok(Names::default())
    }
}
