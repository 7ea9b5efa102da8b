//! What has objects.

use std::sync::Arc;

use crate::SourceError;

/// The beginning of an object, and what is known of it.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// Changes when the object does.
    pub version: String,
    /// Its bytes.
    pub size: u64,
    /// Whether it says that it is compressed by gzip.
    pub compressed: bool,
    /// Its first bytes: all, or [`OBJECT_HEAD_BYTES`].
    pub first: Vec<u8>,
}

impl Head {
    /// Whether its first bytes are all.
    pub(super) fn is_whole(&self) -> bool {
        self.first.len() as u64 == self.size
    }
}

/// Bytes of an object.
#[derive(Clone, Debug, Default)]
pub struct Bytes {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether the object ends with them.
    pub last: bool,
}

/// Some names of objects, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The names.
    pub names: Vec<String>,
    /// Whether there are more behind them.
    pub more: bool,
}

/// What has objects. A version that is not there any more is an error that is final.
pub trait Store: Sync {
    /// The beginning of an object, of this version if one is given.
    fn head(&self, name: &str, version: Option<&str>) -> impl Future<Output = Result<Arc<Head>, SourceError>> + Send;

    /// So many bytes of an object.
    fn bytes(
        &self,
        name: &str,
        version: &str,
        from: u64,
        len: u64,
    ) -> impl Future<Output = Result<Vec<u8>, SourceError>> + Send;

    /// Up to so many bytes of a compressed object, decompressed, from byte `from` on.
    fn decompressed(
        &self,
        name: &str,
        version: &str,
        from: u64,
        len: usize,
    ) -> impl Future<Output = Result<Bytes, SourceError>> + Send;

    /// The next names that begin with a prefix.
    fn names(&self, prefix: &str, after: Option<&str>) -> impl Future<Output = Result<Names, SourceError>> + Send;
}
