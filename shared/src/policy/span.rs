//! Durations as people write them: `500ms`, `2s`, `1m 30s`.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A duration, written like `2s` or as a whole number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Span {
    /// So many seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl Serialize for Span {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Span;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as `500ms`, `2s` or `1m`, or a whole number of seconds")
            }

            fn visit_u64<E: serde::de::Error>(self, seconds: u64) -> Result<Span, E> {
                Ok(Span::from_secs(seconds))
            }

            fn visit_i64<E: serde::de::Error>(self, seconds: i64) -> Result<Span, E> {
                u64::try_from(seconds)
                    .map(Span::from_secs)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(seconds), &self))
            }

            fn visit_f64<E: serde::de::Error>(self, seconds: f64) -> Result<Span, E> {
                let whole = crate::whole::from_float(seconds).map(Span::from_secs);
                whole.ok_or_else(|| E::invalid_type(serde::de::Unexpected::Float(seconds), &self))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Span, E> {
                humantime::parse_duration(text)
                    .map(Span)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (json, millis) in
            [("\"500ms\"", 500), ("\"2s\"", 2_000), ("\"1m 30s\"", 90_000), ("3", 3_000), ("3.0", 3_000), ("\"0s\"", 0)]
        {
            let span: Span = serde_json::from_str(json).unwrap();
            assert_eq!(span.0, Duration::from_millis(millis), "{json}");
            assert_eq!(serde_json::from_str::<Span>(&serde_json::to_string(&span).unwrap()).unwrap(), span);
        }
        for json in ["\"2\"", "-1", "\"soon\"", "1.5", "null"] {
            assert!(serde_json::from_str::<Span>(json).is_err(), "{json}");
        }
    }
}
