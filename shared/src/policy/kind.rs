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

/// Why a kind has no policy: it can have none, or none is stored.
#[must_use]
pub fn unknown_kind(kind: &str) -> String {
    let shown = start(kind);
    if is_kind(kind) {
        format!("is `{shown}`, there is no policy of this kind")
    } else {
        format!("is `{shown}`, {KIND_ALLOWED} are allowed")
    }
}

/// The problem that a kind has no policy, where no field names the kind.
#[must_use]
pub fn no_policy(kind: &str) -> String {
    format!("there is no policy of kind `{kind}`")
}

#[cfg(test)]
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
}
