//! What a `Retry-After` asks for (RFC 9110, 10.2.3): seconds, or a date.

use std::time::Duration;

use aws_smithy_types::date_time::{DateTime, Format};

use crate::clock::Timestamp;

/// When a server asks to be called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// So long after the answer.
    Delay(Duration),
    /// From this moment on.
    At(Timestamp),
}

impl RetryAfter {
    /// Reads a header's value; none if it is neither seconds nor a date.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            // More seconds than fit are a wait without end, too.
            return Some(Self::Delay(Duration::from_secs(text.parse().unwrap_or(u64::MAX))));
        }
        let date = DateTime::from_str(text, Format::HttpDate).ok()?;
        Some(Self::At(Timestamp(u64::try_from(date.to_millis().ok()?).unwrap_or(0))))
    }

    /// How long to wait, for an answer that arrived `now`. The caller sets the limit.
    #[must_use]
    pub fn delay(self, now: Timestamp) -> Duration {
        match self {
            Self::Delay(delay) => delay,
            Self::At(moment) => moment.since(now),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Sun, 22 Nov 2026 06:00:00 GMT.
    const NOW: Timestamp = Timestamp(1_795_327_200_000);

    fn parse(text: &str, now: Timestamp) -> Option<Duration> {
        RetryAfter::parse(text).map(|asked| asked.delay(now))
    }

    #[test]
    fn seconds() {
        assert_eq!(parse(" 3600 ", NOW), Some(Duration::from_secs(3_600)));
        assert_eq!(parse("0", NOW), Some(Duration::ZERO));
        assert_eq!(parse("99999999999999999999999", NOW), Some(Duration::from_secs(u64::MAX)));
    }

    #[test]
    fn dates() {
        assert_eq!(parse("Sun, 22 Nov 2026 07:30:00 GMT", NOW), Some(Duration::from_secs(5_400)));
        assert_eq!(parse("Sun, 22 Nov 2026 05:00:00 GMT", NOW), Some(Duration::ZERO));
        assert_eq!(parse("Thu, 01 Jan 1960 00:00:00 GMT", NOW), Some(Duration::ZERO));
    }

    #[test]
    fn anything_else_asks_for_nothing() {
        for text in ["", "soon", "-5", "+5", "1.5", "2026-11-22T07:30:00Z", "Sun, 22 Nov 2026 07:30:00 CET", "é"] {
            assert_eq!(parse(text, NOW), None, "{text}");
        }
    }
}
