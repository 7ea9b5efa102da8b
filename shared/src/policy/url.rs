//! Whether a URL can be called. This is checked when it is given, so that calls do not find out at every attempt.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::limits::URL_BYTES_MAX;

/// Whether a URL is `https`, or `http` to this very machine: task contents do not cross a network in the clear.
pub(super) fn is_callable(url: &str) -> bool {
    let (rest, secure) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (rest, true),
        (_, Some(rest)) => (rest, false),
        (None, None) => return false,
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (user, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (host, port) = split_port(place);
    let local = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    url.len() <= URL_BYTES_MAX
        && (local || secure && is_host(host))
        && port.is_none_or(is_port)
        && is_written(user, b"")
        && is_written(path, b"/?@")
}

fn split_port(place: &str) -> (&str, Option<&str>) {
    match place.rsplit_once(':') {
        // The colons of an address in brackets are its own.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (place, None),
    }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// A name, or an address. Resolvers take a name that ends in a number for an address.
fn is_host(text: &str) -> bool {
    if let Some(address) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().is_ok();
    }
    let label = |label: &str| {
        let inner = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        inner && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    let named = last.starts_with(|letter: char| letter.is_ascii_alphabetic());
    text.parse::<Ipv4Addr>().is_ok() || named && text.split('.').all(label)
}

/// Whether a part of a URL has only characters that may be in one as they are (RFC 3986), those of `also` among them.
fn is_written(text: &str, also: &[u8]) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let right = match byte {
            b'%' => [bytes.next(), bytes.next()].iter().flatten().filter(|byte| byte.is_ascii_hexdigit()).count() == 2,
            byte => byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:".contains(&byte) || also.contains(&byte),
        };
        if !right {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_that_can_be_called_are_accepted() {
        for url in [
            "https://example.com",
            "https://example.com/",
            "https://example.com?x=%20y",
            "https://user:secret@a-b.under_score.example:8443/x/y;z?a=b&c=/?@:",
            "https://10.0.0.7:65535/x",
            "https://[2001:db8::1]:443/",
            "https://[::1]",
            "http://localhost:8080/x",
            "http://user@127.0.0.1/",
            "http://[::1]:1/",
        ] {
            assert!(is_callable(url), "{url}");
        }
        for url in [
            "",
            "https://",
            "https:///x",
            "HTTPS://example.com/",
            "ftp://example.com/",
            "https://0.com*",
            "https://exa mple.com/",
            "https://example..com/",
            "https://-a.com/",
            "https://example.com./",
            "https://1.2.3.999/",
            "https://1.2.3/",
            "https://0x7f/",
            "https://[::g]/",
            "https://[::1",
            "https://example.com:/",
            "https://example.com:65536/",
            "https://example.com:+1/",
            "https://example.com/#x",
            "https://example.com/{id}",
            "https://example.com/%2",
            "https://example.com/%zz",
            "https://example.com/\u{e4}",
            "https://example.com\\@localhost/",
            "http://example.com/",
            "http://localhost@example.com/",
            "http://localhost.example.com/",
        ] {
            assert!(!is_callable(url), "{url}");
        }
        assert!(is_callable(&format!("https://example.com/{}", "x".repeat(URL_BYTES_MAX - 20))));
        assert!(!is_callable(&format!("https://example.com/{}", "x".repeat(URL_BYTES_MAX - 19))));
    }
}
