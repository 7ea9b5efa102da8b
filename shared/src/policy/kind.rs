//! Which names a kind may have: those that can stand in a lane's text, in a path and in a record's key as they are.

use crate::limits::KIND_BYTES_MAX;

/// What [`is_kind`] allows, as messages say it.
pub const KIND_ALLOWED: &str = "1 to 64 letters, digits, `.`, `_` or `-`";

/// Whether a kind can name a policy: it is [`KIND_ALLOWED`].
#[must_use]
pub fn is_kind(kind: &str) -> bool {
    (1..=KIND_BYTES_MAX).contains(&kind.len())
        && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// What is said where a kind has no policy.
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
