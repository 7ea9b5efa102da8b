//! Names that become parts of a path: trucks and fan-outs.

/// The longest name taken; every common file system allows this much and the ending.
const LONGEST: usize = 128;

/// The folder of orders that belong to no fan-out.
pub(crate) const SINGLE: &str = "single";

/// Whether a name can be a file's or a folder's without reaching outside: letters, digits and hyphens only.
pub(crate) fn is_safe(name: &str) -> bool {
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The fan-out of a member: the text before the first `:` of its id, or [`SINGLE`].
pub(crate) fn fanout_of(member: &str) -> &str {
    member.split_once(':').map_or(SINGLE, |(fanout, _)| fanout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_folder() {
        for good in ["a", "0193-ab", "B-2", &"x".repeat(LONGEST)] {
            assert!(is_safe(good), "{good}");
        }
        for bad in ["", ".", "..", "../x", "a/b", "a\\b", "a.b", "a b", "a\0", "a\n", "ä", &"x".repeat(LONGEST + 1)] {
            assert!(!is_safe(bad), "{bad:?}");
        }
    }

    #[test]
    fn the_fanout_stands_before_the_first_colon() {
        assert_eq!(fanout_of("f1:g2:3"), "f1");
        assert_eq!(fanout_of("lonely"), SINGLE);
        assert_eq!(fanout_of(":g:3"), "");
    }
}
