//! How many items of a fan-out may fail before it fails itself.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::percentage::{self, Percentage};
use super::{Fanout, FanoutState};
use crate::limits::TOLERATED_FAILURES_MAX;

/// How many items may fail: a number, or a percentage of all items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tolerance {
    /// This number.
    Count(u64),
    /// This percentage of all items, in ten-thousandths.
    Percentage(u16),
}

impl Tolerance {
    /// However many there are.
    pub const ALL: Self = Self::Percentage(percentage::ALL);

    /// Whether `failures` of `total` items are more than tolerated.
    pub(crate) fn exceeded(self, failures: u64, total: u64) -> bool {
        match self {
            Self::Count(most) => failures > most,
            Self::Percentage(percentage) => Percentage(percentage).compare(failures, total).is_gt(),
        }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(most) => most.fmt(f),
            Self::Percentage(percentage) => Percentage(*percentage).fmt(f),
        }
    }
}

impl Serialize for Tolerance {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(most) => serializer.serialize_u64(*most),
            Self::Percentage(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Tolerance {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::{Error, Unexpected};

        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Tolerance;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    f,
                    "`tolerated_failures` as a whole number up to {TOLERATED_FAILURES_MAX}, or a percentage of `0%` to `100%` with at \
                     most two decimals"
                )
            }

            fn visit_u64<E: Error>(self, most: u64) -> Result<Tolerance, E> {
                if most > TOLERATED_FAILURES_MAX {
                    return Err(E::invalid_value(Unexpected::Unsigned(most), &self));
                }
                Ok(Tolerance::Count(most))
            }

            fn visit_i64<E: Error>(self, most: i64) -> Result<Tolerance, E> {
                match u64::try_from(most) {
                    Ok(most) => self.visit_u64(most),
                    Err(_) => Err(E::invalid_value(Unexpected::Signed(most), &self)),
                }
            }

            fn visit_f64<E: Error>(self, most: f64) -> Result<Tolerance, E> {
                match crate::whole::from_float(most) {
                    Some(most) => self.visit_u64(most),
                    None => Err(E::invalid_type(Unexpected::Float(most), &self)),
                }
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Tolerance, E> {
                match Percentage::read(text) {
                    Some(Percentage(percentage)) => Ok(Tolerance::Percentage(percentage)),
                    None => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Fanout {
    /// Whether it is to fail: more items failed than are tolerated, and no end is decided. A percentage can be judged only once no
    /// more items come.
    #[must_use]
    pub fn to_fail(&self) -> bool {
        self.tolerated.is_some_and(|tolerance| match (self.state, tolerance) {
            (FanoutState::Sealed, _) | (FanoutState::Open, Tolerance::Count(_)) => {
                tolerance.exceeded(self.failures, self.total)
            }
            _ => false,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_and_percentages() {
        for (json, tolerance) in [
            ("0", Tolerance::Count(0)),
            ("7.0", Tolerance::Count(7)),
            ("\"5%\"", Tolerance::Percentage(500)),
            ("\"0.5%\"", Tolerance::Percentage(50)),
            ("\"0.05%\"", Tolerance::Percentage(5)),
            ("\"100.0%\"", Tolerance::Percentage(10_000)),
        ] {
            let read: Tolerance = serde_json::from_str(json).unwrap();
            assert_eq!(read, tolerance, "{json}");
            assert_eq!(serde_json::from_str::<Tolerance>(&serde_json::to_string(&read).unwrap()).unwrap(), read);
        }
        for json in [
            "-1",
            "1.5",
            "9007199254740992",
            "\"5\"",
            "\"101%\"",
            "\"100.01%\"",
            "\"%\"",
            "\"-1%\"",
            "\"1.234%\"",
            "\".5%\"",
            "\"+5%\"",
        ] {
            let error = serde_json::from_str::<Tolerance>(json).unwrap_err().to_string();
            assert!(error.contains("tolerated_failures") && error.contains("`0%` to `100%`"), "{json}: {error}");
        }
    }

    #[test]
    fn as_many_as_tolerated_are_not_too_many() {
        assert!(!Tolerance::Count(2).exceeded(2, 9) && Tolerance::Count(2).exceeded(3, 9));
        assert!(!Tolerance::Percentage(500).exceeded(5, 100) && Tolerance::Percentage(500).exceeded(6, 100));
        assert!(Tolerance::Percentage(500).exceeded(5, 99), "5 of 99 are more than 5 %");
        assert!(!Tolerance::Percentage(0).exceeded(0, 9) && Tolerance::Percentage(0).exceeded(1, 9));
        assert!(!Tolerance::Percentage(10_000).exceeded(9, 9));
    }
}
