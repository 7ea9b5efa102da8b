//! Times and durations on the command line.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fanfold::clock::World;

/// Parses a time, `2h` (ago), `2026-11-23T21:00:00Z`, `2026-11-23` (UTC) or milliseconds since 1970, to milliseconds since 1970.
pub(super) fn moment(text: &str) -> Result<u64, String> {
    read(text, World::system().now().0).ok_or_else(|| {
        "a time is expected: `2h` or `3d` (ago), `2026-11-23T21:00:00Z`, `2026-11-23`, or milliseconds since 1970"
            .to_owned()
    })
}

fn read(text: &str, now: u64) -> Option<u64> {
    let milliseconds = |time: SystemTime| u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok();
    }
    if let Ok(ago) = humantime::parse_duration(text) {
        return Some(now.saturating_sub(u64::try_from(ago.as_millis()).ok()?));
    }
    let time = humantime::parse_rfc3339_weak(text).or_else(|_| humantime::parse_rfc3339(&format!("{text}T00:00:00Z")));
    milliseconds(time.ok()?)
}

/// Parses a duration: `90s`, `10m`, `2h`.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "a duration such as `90s`, `10m` or `2h` is expected".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_several_forms() {
        let now = 1_795_467_600_000; // 2026-11-23T21:00:00Z
        for (text, expected) in [
            ("2h", now - 7_200_000),
            ("1d 12h", now - 129_600_000),
            ("0s", now),
            ("2026-11-23T21:00:00Z", now),
            ("2026-11-23 20:59:59", now - 1_000),
            ("2026-11-23", now - 21 * 3_600_000),
            ("1795467600000", now),
        ] {
            assert_eq!(read(text, now), Some(expected), "{text}");
        }
        for text in ["", "yesterday", "2", "-2h", "2026-13-01", "23.11.2026", "99999999999999999999"] {
            assert!(text == "2" || read(text, now).is_none(), "{text}");
        }
        assert_eq!((span("10m"), span("soon").is_err()), (Ok(Duration::from_secs(600)), true));
    }
}
