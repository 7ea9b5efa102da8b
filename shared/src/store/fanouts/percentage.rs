//! Percentages of a fan-out's items, as users write them: `5%`, `0.25%`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A percentage, in ten-thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Percentage(pub(super) u16);

/// All of them, in ten-thousandths.
pub(super) const ALL: u16 = 10_000;

impl Percentage {
    /// A percentage such as `5%` or `0.25%`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let number = text.strip_suffix('%')?;
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str, most| (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        if (!digits(whole, 2) && whole != "100") || !digits(part, 2) {
            return None;
        }
        let percentage = whole.parse::<u16>().ok()?.checked_mul(100)? + format!("{part:0<2}").parse::<u16>().ok()?;
        (percentage <= ALL).then_some(Self(percentage))
    }

    /// Compares `some` of `all` with this percentage of `all`.
    pub(super) fn compare(self, some: u64, all: u64) -> std::cmp::Ordering {
        (u128::from(some) * u128::from(ALL)).cmp(&(u128::from(all) * u128::from(self.0)))
    }
}

impl fmt::Display for Percentage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 100 {
            0 => write!(f, "{}%", self.0 / 100),
            part => write!(f, "{}.{part:02}%", self.0 / 100),
        }
    }
}

/// A percentage of its items at which a fan-out's progress is reported: more than none of them, and less than all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProgressPercentage(Percentage);

impl ProgressPercentage {
    /// So many ten-thousandths. None: these are none or all of the items, and the end of all has a notice of its own.
    #[must_use]
    pub fn new(percentage: u16) -> Option<Self> {
        (1..ALL).contains(&percentage).then_some(Self(Percentage(percentage)))
    }

    /// In ten-thousandths.
    #[must_use]
    pub fn ten_thousandths(self) -> u16 {
        self.0.0
    }

    /// Whether `done` of `total` items reach this percentage.
    pub(super) fn is_reached(self, done: u64, total: u64) -> bool {
        self.0.compare(done, total).is_ge()
    }
}

impl fmt::Display for ProgressPercentage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for ProgressPercentage {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ProgressPercentage {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = ProgressPercentage;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a percentage of `0.01%` to `99.99%` with at most two decimals")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ProgressPercentage, E> {
                let percentage = Percentage::read(text).and_then(|percentage| ProgressPercentage::new(percentage.0));
                percentage.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_shortly_and_sorts_by_size() {
        for (text, ten_thousandths, shown) in [
            ("25%", 2_500, "25%"),
            ("0.01%", 1, "0.01%"),
            ("99.99%", 9_999, "99.99%"),
            ("7.50%", 750, "7.50%"),
            ("7.5%", 750, "7.50%"),
            ("50.0%", 5_000, "50%"),
        ] {
            let percentage: ProgressPercentage = serde_json::from_value(text.into()).unwrap();
            assert_eq!((percentage.ten_thousandths(), percentage.to_string().as_str()), (ten_thousandths, shown));
            assert_eq!(serde_json::to_value(percentage).unwrap(), shown);
        }
        let percentages = ["9%", "10%", "9.5%"].map(|text| Percentage::read(text).unwrap());
        assert_eq!([percentages[0] < percentages[2], percentages[2] < percentages[1]], [true; 2]);
    }

    #[test]
    fn none_and_all_are_no_progress() {
        for json in ["\"0%\"", "\"0.00%\"", "\"100%\"", "\"100.01%\"", "\"50\"", "\"1.234%\"", "\"\"", "50", "null"] {
            let error = serde_json::from_str::<ProgressPercentage>(json).unwrap_err().to_string();
            assert!(error.contains("`0.01%` to `99.99%`"), "{json}: {error}");
        }
    }

    #[test]
    fn a_share_is_reached_by_as_many_and_not_by_fewer() {
        let reached = |text, done, total| ProgressPercentage(Percentage::read(text).unwrap()).is_reached(done, total);
        assert!(reached("50%", 5, 10) && !reached("50%", 4, 10));
        assert!(reached("33.34%", 1, 2) && !reached("33.34%", 1, 3), "a third is less");
        assert!(reached("99.99%", u64::MAX, u64::MAX) && !reached("0.01%", 0, 1));
    }
}
