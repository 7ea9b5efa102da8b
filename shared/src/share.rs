//! Shares of keys: to which of N shares a key belongs, for producers that read side by side and for the partitions of a target.

use md5::{Digest, Md5};

/// The share of a key, from 0: the first 15 hexadecimal digits of its MD5 as a number, modulo `of`. Databases and other
/// languages compute the same in one line (docs/partitioning.md). 60 bits fit every integer type, signed or not.
#[must_use]
pub fn share(key: &str, of: u32) -> u32 {
    let mut first = [0; 8];
    first.iter_mut().zip(Md5::digest(key)).for_each(|(to, byte)| *to = byte);
    let number = u64::from_be_bytes(first) >> 4;
    // Below `of`, so it fits.
    u32::try_from(number % u64::from(of.max(1))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A key is in the same share in every version: sources and tables have it.
    #[test]
    fn a_key_keeps_its_share() {
        let shares = |key| [1, 2, 3, 8, 1_000, 1_024].map(|of| share(key, of));
        for (key, wanted) in [
            ("", [0, 0, 1, 0, 424, 800]),
            ("0", [0, 0, 0, 6, 598, 606]),
            ("ORD-1", [0, 1, 0, 3, 123, 387]),
            ("order 4711", [0, 0, 2, 4, 172, 132]),
            ("é", [0, 1, 0, 3, 555, 699]),
            ("日本", [0, 0, 1, 0, 336, 904]),
            ("alice@example.com", [0, 1, 1, 3, 291, 779]),
            ("NY/00501", [0, 1, 0, 5, 501, 253]),
        ] {
            assert_eq!(shares(key), wanted, "{key}");
        }
    }

    proptest! {
        #[test]
        fn every_key_has_one_share(key in ".{0,60}", of: u32) {
            prop_assert!(share(&key, of) < of.max(1));
        }
    }
}
