//! Sources in S3: objects, read by signed requests.

mod list;

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use fanfold::clock::Timestamp;
use fanfold::limits::{OBJECT_HEAD_BYTES, SOURCE_TIMEOUT};
use fanfold::producing::Objects;
use fanfold_http_client::aws::{Aws, AwsCall, AwsError, percent_encoded};
use flate2::write::MultiGzDecoder;
use futures::{Stream, StreamExt};
use reqwest::header::{CONTENT_ENCODING, CONTENT_RANGE, ETAG, HeaderName};
use reqwest::{Response, StatusCode};

use crate::objects::{Bytes, Head, Names, Pages, Store};
use crate::url::{failure, read};
use crate::{SourceAnswer, SourceError, SourceRequest};

/// Reads objects of S3.
#[derive(Debug)]
pub(crate) struct S3Source {
    aws: Aws,
    /// The beginning of the object that was read last: the next page needs it, too.
    last: Mutex<Option<Last>>,
}

/// An object, and its beginning.
#[derive(Debug)]
struct Last {
    bucket: String,
    name: String,
    head: Arc<Head>,
}

/// A bucket, as one question sees it.
#[derive(Debug)]
struct Bucket<'a> {
    source: &'a S3Source,
    name: &'a str,
    now: Timestamp,
}

impl S3Source {
    pub(crate) fn new(aws: Aws) -> Self {
        Self { aws, last: Mutex::default() }
    }

    /// Reads a page of objects.
    pub(crate) async fn ask(
        &self,
        objects: &Objects,
        ask: &SourceRequest,
        now: Timestamp,
    ) -> Result<SourceAnswer, SourceError> {
        let bucket = Bucket { source: self, name: &objects.bucket, now };
        let page = async { Pages { store: &bucket, objects, ask }.page().await };
        tokio::time::timeout(SOURCE_TIMEOUT, page).await.unwrap_or_else(|_| {
            let message = format!("the page could not be read within {} s", SOURCE_TIMEOUT.as_secs());
            Err(SourceError::again(message))
        })
    }
}

impl Bucket<'_> {
    fn object(&self, name: &str, version: Option<&str>) -> AwsCall {
        let call = AwsCall::from_bucket(self.name, format!("/{}", percent_encoded(name, b"/")));
        // Another version is another object.
        version.into_iter().fold(call, |call, version| call.header("if-match", version))
    }

    async fn send(&self, call: AwsCall) -> Result<Response, SourceError> {
        self.source.aws.send(call, SOURCE_TIMEOUT, self.now).await.map_err(changed)
    }

    /// A part of an object, from its answer, and how many bytes the object has.
    async fn range(&self, answer: Response) -> Result<(Vec<u8>, u64), SourceError> {
        let given = text(&answer, CONTENT_RANGE);
        let size = given.as_deref().and_then(|range| range.rsplit_once('/')?.1.parse().ok());
        let Some(size) = size.filter(|_| answer.status() == StatusCode::PARTIAL_CONTENT) else {
            return Err(SourceError::for_good("s3 did not answer with the range that was asked for"));
        };
        Ok((read(answer).await?, size))
    }

    /// The beginning of an object that is read further.
    fn known(&self, name: &str, version: &str) -> Option<Arc<Head>> {
        let last = self.source.last.lock().unwrap_or_else(PoisonError::into_inner);
        let last = last.as_ref().filter(|last| last.bucket == self.name && last.name == name)?;
        (last.head.version == version).then(|| Arc::clone(&last.head))
    }
}

impl Store for Bucket<'_> {
    async fn head(&self, name: &str, version: Option<&str>) -> Result<Arc<Head>, SourceError> {
        if let Some(head) = version.and_then(|version| self.known(name, version)) {
            return Ok(head);
        }
        let range = format!("bytes=0-{}", OBJECT_HEAD_BYTES - 1);
        let call = self.object(name, version).header("range", range);
        let answer = match self.source.aws.send(call, SOURCE_TIMEOUT, self.now).await {
            Ok(answer) => answer,
            // An empty object has no first byte.
            Err(AwsError::Refused(refused)) if refused.status == StatusCode::RANGE_NOT_SATISFIABLE => {
                return Ok(Arc::default());
            }
            Err(error) => return Err(changed(error)),
        };
        let etag = text(&answer, ETAG).ok_or_else(|| SourceError::for_good("s3 answered without an ETag"))?;
        let compressed = text(&answer, CONTENT_ENCODING).is_some_and(|how| how.to_ascii_lowercase().contains("gzip"));
        let (first, size) = self.range(answer).await?;
        let head = Arc::new(Head { version: etag, size, compressed, first });
        let last = Last { bucket: self.name.to_owned(), name: name.to_owned(), head: Arc::clone(&head) };
        *self.source.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
        Ok(head)
    }

    async fn bytes(&self, name: &str, version: &str, from: u64, len: u64) -> Result<Vec<u8>, SourceError> {
        let range = format!("bytes={from}-{}", from + len - 1);
        let answer = self.send(self.object(name, Some(version)).header("range", range)).await?;
        let (bytes, _) = self.range(answer).await?;
        if bytes.len() as u64 != len {
            return Err(SourceError::again(format!("s3 answered with {} bytes in place of {len}", bytes.len())));
        }
        Ok(bytes)
    }

    async fn decompressed(&self, name: &str, version: &str, from: u64, len: usize) -> Result<Bytes, SourceError> {
        let answer = self.send(self.object(name, Some(version))).await?;
        let chunks = futures::stream::unfold(answer, |mut answer| async move {
            let chunk = answer.chunk().await.map_err(|error| failure(&error)).transpose()?;
            Some((chunk, answer))
        });
        window(chunks, from, len).await
    }

    async fn names(&self, prefix: &str, after: Option<&str>) -> Result<Names, SourceError> {
        let call = AwsCall::from_bucket(self.name, list::path(prefix, after));
        list::read(&read(self.send(call).await?).await?)
    }
}

/// An error, in other words if another version was asked for.
fn changed(error: AwsError) -> SourceError {
    match error {
        AwsError::Refused(refused) if refused.status == StatusCode::PRECONDITION_FAILED => {
            SourceError::for_good("the object was changed while it was read")
        }
        error => error.into(),
    }
}

fn text(answer: &Response, header: HeaderName) -> Option<String> {
    answer.headers().get(header)?.to_str().ok().map(str::to_owned)
}

/// Decompresses a stream, and keeps up to `len` bytes from `from` on. It ends when they are there.
pub(crate) async fn window(
    chunks: impl Stream<Item = Result<impl AsRef<[u8]>, SourceError>>,
    from: u64,
    len: usize,
) -> Result<Bytes, SourceError> {
    let mut decoder = MultiGzDecoder::new(Window { skip: from, len, bytes: Vec::new(), over: false });
    let no_gzip = |error: std::io::Error| SourceError::for_good(format!("the object is not gzip: {error}"));
    let mut chunks = std::pin::pin!(chunks);
    while let Some(chunk) = chunks.next().await {
        decoder.write_all(chunk?.as_ref()).map_err(no_gzip)?;
        if decoder.get_ref().over {
            return Ok(Bytes { bytes: std::mem::take(&mut decoder.get_mut().bytes), last: false });
        }
    }
    decoder.try_finish().map_err(no_gzip)?;
    let window = decoder.get_mut();
    Ok(Bytes { bytes: std::mem::take(&mut window.bytes), last: !window.over })
}

/// Keeps a part of what is written to it.
struct Window {
    skip: u64,
    len: usize,
    bytes: Vec<u8>,
    /// Whether there was more.
    over: bool,
}

impl Write for Window {
    fn write(&mut self, all: &[u8]) -> std::io::Result<usize> {
        let skipped = all.len().min(usize::try_from(self.skip).unwrap_or(usize::MAX));
        self.skip -= skipped as u64;
        let rest = &all[skipped..];
        let kept = rest.len().min(self.len - self.bytes.len());
        self.bytes.extend_from_slice(&rest[..kept]);
        self.over |= kept < rest.len();
        Ok(all.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
