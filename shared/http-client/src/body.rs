//! Bodies of answers, read up to a limit.

use reqwest::{Error, Response};

/// Reads an answer's body. None: it has more than `most` bytes.
///
/// # Errors
/// The connection broke off, or time was up.
pub async fn body(response: &mut Response, most: usize) -> Result<Option<Vec<u8>>, Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > most {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// The first part of an answer's body: at least `enough` bytes, if as many arrive. The part that came before a connection broke is
/// more useful than the error.
pub async fn start_of_body(response: &mut Response, enough: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < enough {
        let Ok(Some(chunk)) = response.chunk().await else { break };
        body.extend_from_slice(&chunk);
    }
    body
}
