//! The names that a kind may have: those that need no escaping in a lane's text, a path or a record's key.

use crate::limits::KIND_BYTES_MAX;
use crate::text::start;

/// The names that [`is_kind`] allows, in words.
pub const KIND_ALLOWED: &str = "1 to 64 letters, digits, `.`, `_` or `-`";

/// Whether a text can be a kind: see [`KIND_ALLOWED`].
#[must_use]
pub fn is_kind(kind: &str) -> bool {
    (1..=KIND_BYTES_MAX).contains(&kind.len())
        && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// What is wrong with a kind, unless it can be one.
#[must_use]
pub fn bad_kind(kind: &str) -> Option<String> {
    (!is_kind(kind)).then(|| format!("is `{}`, {KIND_ALLOWED} are allowed", start(kind)))
}

/// Why a kind has no policy: it can have none, or none is stored.
#[must_use]
pub fn unknown_kind(kind: &str) -> String {
    bad_kind(kind).unwrap_or_else(|| format!("is `{}`, there is no policy of this kind", start(kind)))
}

/// The problem that a kind has no policy, where no field names the kind.
#[must_use]
pub fn no_policy(kind: &str) -> String {
    format!("there is no policy of kind `{kind}`")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn allows_what_is_said() {
        assert!(KIND_ALLOWED.starts_with(&format!("1 to {KIND_BYTES_MAX} ")), "{KIND_ALLOWED}");
        for kind in ["a", "parcel.v2_express-9", &"k".repeat(KIND_BYTES_MAX)] {
            assert!(is_kind(kind), "{kind}");
        }
        for kind in ["", "a:b", "a b", "a/b", "é", &"k".repeat(KIND_BYTES_MAX + 1)] {
            assert!(!is_kind(kind), "{kind}");
        }
    }

    #[test]
    fn says_what_is_wrong_with_a_kind() {
        assert_eq!(bad_kind("parcel"), None);
        assert_eq!(unknown_kind("parcel"), "is `parcel`, there is no policy of this kind");
        for kind in ["a:b".to_owned(), "k".repeat(1_000_000)] {
            let problem = bad_kind(&kind).unwrap();
            assert!(problem.starts_with(&format!("is `{}`", start(&kind))) && problem.ends_with("are allowed"));
            assert_eq!(unknown_kind(&kind), problem);
        }
    }
}
