//! Whole numbers as JSON has them: `3.0` is 3. JSON knows one kind of number, and some clients always write a fraction.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// Up to here a double holds every whole number.
pub const FLOAT_WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Reads a whole number; for `#[serde(deserialize_with)]`.
///
/// # Errors
/// It is none, or not within a `u32`.
pub fn u32<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    struct Whole;

    impl Visitor<'_> for Whole {
        type Value = u32;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("u32")
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<u32, E> {
            u32::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<u32, E> {
            u32::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<u32, E> {
            match from_float(number) {
                Some(number) => self.visit_u64(number),
                None => Err(E::invalid_type(Unexpected::Float(number), &self)),
            }
        }
    }

    deserializer.deserialize_u32(Whole)
}

/// The same where it may be left out, or `null`; for `#[serde(default, deserialize_with)]`.
///
/// # Errors
/// It is none, or not within a `u32`.
pub fn optional_u32<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    struct Optional;

    impl<'de> Visitor<'de> for Optional {
        type Value = Option<u32>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("u32")
        }

        fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
            u32(deserializer).map(Some)
        }
    }

    deserializer.deserialize_option(Optional)
}

/// Reads a list of whole numbers; for `#[serde(deserialize_with)]`.
///
/// # Errors
/// It is no list, or one of its values is none, or not within a `u16`.
pub fn u16s<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u16>, D::Error> {
    #[derive(Deserialize)]
    struct Number(#[serde(deserialize_with = "u32")] u32);

    let narrow = |Number(number): Number| {
        u16::try_from(number).map_err(|_| D::Error::invalid_value(Unexpected::Unsigned(number.into()), &"u16"))
    };
    Vec::<Number>::deserialize(deserializer)?.into_iter().map(narrow).collect()
}

/// The number, if it is whole and not negative. None for numbers that a double does not hold exactly.
#[must_use]
pub(crate) fn from_float(number: f64) -> Option<u64> {
    if number.fract() != 0.0 || !(0.0..=FLOAT_WHOLE_MAX).contains(&number) {
        return None;
    }
    // No cast: the double is written as a whole number, and read back.
    format!("{number:.0}").trim_start_matches('-').parse().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    fn read(json: &str) -> Result<u32, String> {
        super::u32(&mut serde_json::Deserializer::from_str(json)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_fraction_of_zero_is_none() {
        for (json, number) in
            [("3", 3), ("3.0", 3), ("0.0", 0), ("-0.0", 0), ("2e3", 2_000), ("4294967295.0", u32::MAX)]
        {
            assert_eq!(read(json), Ok(number), "{json}");
        }
        for (json, named) in [
            ("3.5", "`3.5`"),
            ("-1", "`-1`"),
            ("-1.0", "`-1.0`"),
            ("4294967296", "`4294967296`"),
            ("4294967296.0", "`4294967296`"),
            ("1e300", "float"),
            ("\"3\"", "string"),
            ("null", "null"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(named) && error.contains("u32"), "{json}: {error}");
        }
    }

    #[test]
    fn a_list_has_numbers_with_and_without_fraction() {
        let read = |json| super::u16s(&mut serde_json::Deserializer::from_str(json)).map_err(|error| error.to_string());
        assert_eq!(read("[550.0, 339]"), Ok(vec![550, 339]));
        for json in ["[1.5]", "[65536]", "[-1]", "[\"1\"]", "7"] {
            assert!(read(json).is_err(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn every_number_is_read_with_a_fraction(number: u32) {
            prop_assert_eq!(read(&format!("{number}.0")), Ok(number));
        }

        #[test]
        fn no_other_double_is(number: f64) {
            let whole = super::from_float(number);
            prop_assert!(whole.is_none_or(|whole| whole.to_string() == number.abs().to_string()), "{:?}", whole);
        }
    }
}
