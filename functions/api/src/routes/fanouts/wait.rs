//! `?wait=`: the answer comes when the fan-out has ended, or when the time is up.

use std::time::Duration;

use fanfold::limits::{WAIT_LOOKS, WAIT_MAX};
use fanfold::policy::Span;
use fanfold::store::fanouts::Fanout;
use fanfold_http::{Problem, QueryParameter};
use tokio::time::sleep;

use super::find;
use crate::Api;

/// How long the answer may wait for the fan-out's end.
pub(super) struct Wait;

impl QueryParameter for Wait {
    const NAME: &str = "wait";
    const ABOUT: &str =
        "How long to wait for the fan-out's end: the response comes when it has ended, or when the time is up.";
    type Value = Duration;

    fn read(text: &str) -> Option<Duration> {
        let milliseconds = text.strip_suffix("ms").map(|digits| (digits, 1));
        let (digits, unit) = milliseconds.or_else(|| text.strip_suffix('s').map(|digits| (digits, 1_000)))?;
        // Its pattern knows one form of each number.
        let number = digits.parse::<u16>().ok().filter(|number| number.to_string() == digits)?;
        let wait = Duration::from_millis(u64::from(number) * unit);
        (wait <= WAIT_MAX).then_some(wait)
    }

    fn allowed() -> String {
        format!("whole seconds or milliseconds such as `5s` or `500ms`, at most `{}`,", Span(WAIT_MAX))
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        // 20 s are the most.
        let pattern = "^((0|[1-9]|1[0-9]|20)s|(0|[1-9][0-9]{0,3}|1[0-9]{4}|20000)ms)$";
        serde_json::json!({"type": "string", "pattern": pattern, "examples": ["20s"]})
    }
}

/// Looks at a fan-out until it has ended, or the time is up.
pub(super) async fn ended(api: &Api, mut fanout: Fanout, most: Duration) -> Result<Fanout, Problem> {
    let until = api.world.now().plus(most);
    for looks in 1.. {
        let left = until.since(api.world.now());
        if fanout.ended() || left.is_zero() {
            break;
        }
        sleep(WAIT_LOOKS.after(looks, api.world.random.next()).min(left)).await;
        fanout = find(api, fanout.id).await?;
    }
    Ok(fanout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_its_pattern_describes_is_read_and_nothing_else() {
        for (text, milliseconds) in [("0s", 0), ("20s", 20_000), ("0ms", 0), ("1500ms", 1_500), ("20000ms", 20_000)] {
            assert_eq!(Wait::read(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "s", "ms", "5", "21s", "20001ms", "05s", "+5s", "5 s", "1.5s", "1m", "-1s", "99999999999s"] {
            assert_eq!(Wait::read(text), None, "{text}");
        }
    }
}
