//! Answers that come later: the address that a batch API names for one, and asking there.

use fanfold::limits::URL_BYTES_MAX;
use reqwest::Url;
use reqwest::header::{HeaderMap, LOCATION};

/// The address that an answer names, if it names one. Headers with secrets are sent there, too, so it must be at the host that was
/// called.
///
/// # Errors
/// It is elsewhere, or no address.
pub(super) fn named(called: &str, headers: &HeaderMap) -> Result<Option<String>, String> {
    let Some(location) = headers.get(LOCATION) else { return Ok(None) };
    let location =
        location.to_str().map_err(|_| "the answer's `Location` is not a text, so it is not asked".to_owned())?;
    beside(called, location).map(Some)
}

/// An address at the host that is called.
///
/// # Errors
/// It is elsewhere, or no address.
pub(super) fn beside(called: &str, location: &str) -> Result<String, String> {
    let wrong = |problem: &str| format!("the answer's `Location` {problem}, so it is not asked");
    let called = Url::parse(called).map_err(|error| wrong(&format!("belongs to no URL ({error})")))?;
    let mut url = called.join(location.trim()).map_err(|error| wrong(&format!("cannot be read ({error})")))?;
    if url.origin() != called.origin() || !url.has_host() {
        return Err(wrong("is not at the scheme, host and port that were called"));
    }
    url.set_fragment(None);
    if url.as_str().len() > URL_BYTES_MAX {
        return Err(wrong(&format!("has {} bytes, at most {URL_BYTES_MAX} are allowed", url.as_str().len())));
    }
    Ok(url.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const CALLED: &str = "https://api.example.com/v1/batches?key=1";

    #[test]
    fn an_address_at_the_host_that_was_called_is_asked() {
        for (location, url) in [
            ("/jobs/7", "https://api.example.com/jobs/7"),
            ("jobs/7?a=b#c", "https://api.example.com/v1/jobs/7?a=b"),
            ("https://api.example.com:443/jobs/7", "https://api.example.com/jobs/7"),
            ("", CALLED),
        ] {
            assert_eq!(beside(CALLED, location).unwrap(), url, "{location}");
        }
    }

    #[test]
    fn no_other_address_is_asked() {
        for location in [
            "http://api.example.com/jobs/7",
            "https://api.example.com:8443/jobs/7",
            "https://example.com/jobs/7",
            "//169.254.169.254/latest",
            "https://api.example.com.evil.example/",
            "https://user@evil.example/",
            "file:///etc/passwd",
            "data:text/plain,x",
        ] {
            let error = beside(CALLED, location).unwrap_err();
            assert!(error.contains("is not at the scheme, host and port that were called"), "{location}: {error}");
        }
        assert!(beside(CALLED, "https://[").unwrap_err().contains("cannot be read"));
        assert!(beside(CALLED, &format!("/{}", "x".repeat(9_000))).unwrap_err().contains("bytes, at most"));
    }
}
