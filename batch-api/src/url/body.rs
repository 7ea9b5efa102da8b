//! Reading the body of an answer: as much as is allowed, and decompressed.

use std::io::Read;

use fanfold::limits::{ANSWER_BYTES_MAX, EXCERPT_BYTES_MAX, EXCERPT_READ_BYTES_MAX};
use fanfold::text::beginning;
use fanfold_http_client::{body, start_of_body};
use flate2::read::MultiGzDecoder;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};

use super::failure;
use crate::{CallError, Cause};

/// Reads an answer's body.
///
/// # Errors
/// It is larger than allowed, compressed although that was not requested, or incomplete.
pub(super) async fn read(mut response: Response) -> Result<Vec<u8>, CallError> {
    let body = body(&mut response, ANSWER_BYTES_MAX).await.map_err(|error| failure(&error))?.ok_or_else(too_large)?;
    match encoding(response.headers()).as_str() {
        "" | "identity" => Ok(body),
        "gzip" | "x-gzip" => decompress(&body),
        other => {
            let other = beginning(other.as_bytes(), 20);
            let message = format!("the answer is compressed with `{other}`, gzip or no compression is expected");
            Err(CallError::new(Cause::BadAnswer, message))
        }
    }
}

/// The beginning of the body of an error, decompressed; empty if there is none.
pub(super) async fn start(mut response: Response) -> Vec<u8> {
    let body = start_of_body(&mut response, EXCERPT_READ_BYTES_MAX).await;
    if !encoding(response.headers()).ends_with("gzip") {
        return body;
    }
    let mut decompressed = Vec::new();
    // A body that is cut off is shown as far as it can be decompressed.
    let _ = MultiGzDecoder::new(body.as_slice()).take(EXCERPT_READ_BYTES_MAX as u64).read_to_end(&mut decompressed);
    decompressed
}

fn encoding(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_ENCODING).map_or("", |value| value.to_str().unwrap_or("?"));
    value.trim().to_ascii_lowercase()
}

/// Decompresses a body. A small one can hold a very large one: it is read as far as is allowed.
fn decompress(body: &[u8]) -> Result<Vec<u8>, CallError> {
    let mut decompressed = Vec::new();
    if body.is_empty() {
        return Ok(decompressed);
    }
    let most = ANSWER_BYTES_MAX as u64 + 1;
    if let Err(error) = MultiGzDecoder::new(body).take(most).read_to_end(&mut decompressed) {
        let shown = beginning(body, EXCERPT_BYTES_MAX);
        let message = format!("the answer is not {{\"members\": [...]}}: it is not gzip ({error}): {shown}");
        return Err(CallError::new(Cause::BadAnswer, message));
    }
    if decompressed.len() > ANSWER_BYTES_MAX { Err(too_large()) } else { Ok(decompressed) }
}

fn too_large() -> CallError {
    CallError::new(
        Cause::BadAnswer,
        format!("the answer has more than {ANSWER_BYTES_MAX} bytes: a lower `max_batch` makes it smaller"),
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn compressed(body: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_is_compressed_is_decompressed_as_far_as_allowed() {
        let body = b"{\"members\": []}";
        assert_eq!(decompress(&compressed(body)).unwrap(), body);
        assert_eq!(
            decompress(&[compressed(b"{"), compressed(b"}")].concat()).unwrap(),
            b"{}",
            "two members of one file"
        );
        assert_eq!(decompress(&[]).unwrap(), b"");
        assert_eq!(decompress(&compressed(&vec![b' '; ANSWER_BYTES_MAX])).unwrap().len(), ANSWER_BYTES_MAX);
        let bomb = compressed(&vec![0; 20 * ANSWER_BYTES_MAX]);
        assert!(bomb.len() < ANSWER_BYTES_MAX / 10);
        for bad in [bomb, body.to_vec(), compressed(body)[..20].to_vec()] {
            assert_eq!(decompress(&bad).unwrap_err().cause, Cause::BadAnswer);
        }
    }
}
