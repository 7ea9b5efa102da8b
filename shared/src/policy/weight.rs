//! Weights: what members of a batch add up to, in whatever unit a policy counts: tokens, cents, kilograms.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::WEIGHT_MAX;

/// A weight, or a sum of weights, in thousandths: sums of these are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(pub u64);

impl Weight {
    /// One.
    pub(crate) const ONE: Self = Self(1_000);

    /// The weight closest to a number, if it is one: 0 or more, and not too large.
    #[must_use]
    pub(crate) fn from_float(number: f64) -> Option<Self> {
        // No cast: three digits after the point, written out, are a whole number of thousandths.
        let digits = || format!("{number:.3}").trim_start_matches('-').replace('.', "");
        let within = (0.0..=WEIGHT_MAX as f64).contains(&number);
        within.then(digits).and_then(|digits| digits.parse().ok()).map(Self)
    }

    /// A whole weight, if it is not too large.
    #[must_use]
    pub fn from_whole(number: u64) -> Option<Self> {
        (number <= WEIGHT_MAX).then(|| Self(number * Self::ONE.0))
    }

    /// Whether it is a whole number.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.0.is_multiple_of(Self::ONE.0)
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, parts) = (self.0 / Self::ONE.0, self.0 % Self::ONE.0);
        if parts == 0 {
            return write!(f, "{whole}");
        }
        f.write_str(format!("{whole}.{parts:03}").trim_end_matches('0'))
    }
}

impl Serialize for Weight {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_whole() {
            return serializer.serialize_u64(self.0 / Self::ONE.0);
        }
        serializer.serialize_f64(self.0 as f64 / Self::ONE.0 as f64)
    }
}

impl<'de> Deserialize<'de> for Weight {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Weight;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number of 0 to {WEIGHT_MAX}")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Weight, E> {
                Weight::from_whole(number).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Weight, E> {
                let whole = u64::try_from(number).ok().and_then(Weight::from_whole);
                whole.ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Weight, E> {
                Weight::from_float(number).ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
            }
        }

        deserializer.deserialize_any(Number)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_read_to_the_thousandth() {
        for (json, thousandths, shown) in [
            ("0", 0, "0"),
            ("7", 7_000, "7"),
            ("7.0", 7_000, "7"),
            ("29.9", 29_900, "29.9"),
            ("0.0004", 0, "0"),
            ("0.0006", 1, "0.001"),
            ("1000000000", 1_000_000_000_000, "1000000000"),
        ] {
            let weight: Weight = serde_json::from_str(json).unwrap();
            assert_eq!((weight.0, weight.to_string().as_str()), (thousandths, shown), "{json}");
        }
        for json in ["-1", "-0.5", "1000000001", "1e300", "\"7\"", "null"] {
            assert!(serde_json::from_str::<Weight>(json).is_err(), "{json}");
        }
        assert_eq!([f64::NAN, f64::INFINITY, -1.0].map(Weight::from_float), [None; 3]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(thousandths in 0..=WEIGHT_MAX * Weight::ONE.0) {
            let json = serde_json::to_string(&Weight(thousandths)).unwrap();
            prop_assert_eq!(serde_json::from_str::<Weight>(&json).unwrap(), Weight(thousandths));
        }
    }
}
