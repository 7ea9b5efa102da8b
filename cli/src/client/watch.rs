//! Following a fan-out on standard error until it has ended: a bar in a terminal, elsewhere a line whenever its counts have changed.

use std::time::Duration;

use fanfold_client::{ClientError, Fanout};
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use tokio::time::Instant;
use uuid::Uuid;

use super::connection::Stack;
use crate::say::{on_terminal, say};

/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);

const BAR: &str = "{msg}\n{wide_bar} {human_pos} of {human_len}";

/// Shows a fan-out's counts until it has ended; returns it as it is then.
pub(super) async fn watch(stack: &Stack, id: Uuid, exact: bool, shown: bool) -> Result<Fanout, ClientError> {
    let bar = (shown && on_terminal()).then(|| {
        // The template is a constant, and tried by a test.
        let style = ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar());
        ProgressBar::new(0).with_style(style)
    });
    let (began, mut first, mut last) = (Instant::now(), None, String::new());
    loop {
        let fanout = if exact { stack.api.get_exact(id).await? } else { stack.api.get(id).await? };
        let first = *first.get_or_insert(fanout.done);
        let line = line(&fanout, fanout.done.saturating_sub(first), began.elapsed());
        match &bar {
            Some(bar) => {
                bar.set_length(fanout.total);
                bar.set_position(fanout.done + fanout.missing);
                bar.set_message(line);
            }
            None if shown && counts(&fanout) != last => say(line),
            None => {}
        }
        last = counts(&fanout);
        if fanout.has_ended() {
            bar.iter().for_each(ProgressBar::finish_and_clear);
            return Ok(fanout);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What makes a line worth another.
fn counts(fanout: &Fanout) -> String {
    format!("{} {} {} {}", fanout.state, fanout.total, fanout.done, fanout.failed)
}

/// State, failures, rate and time left. `since`: the items that are done since it is watched.
fn line(fanout: &Fanout, since: u64, elapsed: Duration) -> String {
    let mut parts = vec![
        format!("{}: {} of {} done", fanout.state, HumanCount(fanout.done), HumanCount(fanout.total)),
        format!("{} failed", HumanCount(fanout.failed)),
    ];
    let rate = since as f64 / elapsed.as_secs_f64().max(0.001);
    if rate >= 0.1 && !fanout.has_ended() {
        let left = fanout.total.saturating_sub(fanout.done + fanout.missing) as f64 / rate;
        let rate = if rate < 10.0 { format!("{rate:.1}") } else { HumanCount(rate as u64).to_string() };
        parts.push(format!("{rate} per second"));
        parts.push(format!("about {} left", HumanDuration(Duration::from_secs_f64(left))));
    }
    parts.join(", ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fanout(state: &str, done: u64) -> Fanout {
        let (id, total) = ("01985bd1-0000-7000-8000-000000000001", 20_000);
        let raw = json!({"id": id, "state": state, "complete": state == "completed", "total": total, "done": done, "failed": 7});
        serde_json::from_value(raw).unwrap()
    }

    #[test]
    fn a_line_tells_how_far_it_is() {
        assert!(ProgressStyle::with_template(BAR).is_ok());
        let seconds = Duration::from_secs;
        assert_eq!(line(&fanout("open", 500), 0, seconds(1)), "open: 500 of 20,000 done, 7 failed");
        assert_eq!(
            line(&fanout("sealed", 10_000), 500, seconds(10)),
            "sealed: 10,000 of 20,000 done, 7 failed, 50 per second, about 3 minutes left"
        );
        assert_eq!(line(&fanout("completed", 20_000), 500, seconds(10)), "completed: 20,000 of 20,000 done, 7 failed");
    }
}
