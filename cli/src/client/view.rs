//! A fan-out in a form for people.

use fanfold::clock::Timestamp;
use fanfold::text::beginning;
use fanfold_client::{Fanout, State};
use indicatif::HumanCount;
use serde_json::Value;

use super::print::state;
use super::producer;

/// The most bytes of a text that are shown.
const TEXT_BYTES_MAX: usize = 200;

/// A fan-out in some lines.
pub(super) fn text(fanout: &Fanout) -> String {
    let mut lines = vec![format!("fan-out {}: {}\n", fanout.id, standing(fanout))];
    let mut row = |name: &str, value: String| lines.push(format!("  {name:<12}{value}"));
    if let Some(user_key) = &fanout.user_key {
        row("user key", shown(user_key));
    }
    row("opened", moment(fanout.created_at));
    for (name, field) in [
        ("parent", "parent"),
        ("reissue of", "reissue_of"),
        ("reissued as", "reissued_as"),
        ("then", "then"),
        ("notice", "notice"),
    ] {
        row_of(&fanout.raw[field], |value| row(name, value));
    }
    let partitions = fanout.raw["producer"]["partitions"].as_array();
    partitions.iter().for_each(|partitions| row("producer", producer::progress(partitions)));
    let mut count = |name: &str, count: u64| row(name, format!("{:>9}", HumanCount(count).to_string()));
    count("items", fanout.total);
    count("succeeded", fanout.succeeded);
    count("failed", fanout.failed);
    if fanout.duplicates > 0 {
        count("duplicates", fanout.duplicates);
    }
    if fanout.missing > 0 {
        count("missing", fanout.missing);
    }
    if !fanout.has_ended() {
        count("left", fanout.total.saturating_sub(fanout.done + fanout.missing));
    }
    if fanout.raw["progress"] == "at_least" {
        lines.push("\n  More items may be done: only item groups that have ended are counted. --exact also counts in the others.".to_owned());
    }
    let open = fanout.state == State::Open;
    let errors = partitions.and_then(|partitions| producer::errors(fanout.id, partitions, open));
    lines.extend(errors.map(|errors| format!("\n{errors}")));
    lines.join("\n")
}

/// Its state, in a few words.
fn standing(fanout: &Fanout) -> String {
    let drains = !fanout.has_ended() && !matches!(fanout.state, State::Open | State::Sealed);
    format!("{}{}", state(fanout.state.name()), if drains { ", calls in progress are ending" } else { "" })
}

/// A row for its parent, its follow-up task or its notice.
fn row_of(value: &Value, row: impl FnOnce(String)) {
    let text = |name: &str| value[name].as_str().unwrap_or_default();
    match value {
        Value::String(item) => row(item.clone()),
        Value::Object(then) if then.contains_key("kind") => {
            let registered = if then["registered"] == true { "registered" } else { "not registered yet" };
            row(format!("task {} of kind {}, {registered}", text("id"), shown(text("kind"))));
        }
        Value::Object(_) => row(notice_text(value)),
        _ => {}
    }
}

/// The state of a notice; unless it was delivered, also the time of the next try, and the last error.
pub(super) fn notice_text(notice: &Value) -> String {
    let next = notice["next_at"].as_u64().map(|at| format!(", next try at {}", moment(at)));
    let error = notice["error"].as_str().filter(|_| notice["state"] != "delivered");
    let error = error.map(|error| format!(": {}", shown(error)));
    format!("{}{}{}", word(&notice["state"]), next.unwrap_or_default(), error.unwrap_or_default())
}

/// A user's text in one line, without control characters.
pub(crate) fn shown(text: &str) -> String {
    beginning(text.as_bytes(), TEXT_BYTES_MAX)
}

/// The request of a batch API, as the API shows it: its line, its headers, and its body, indented.
pub(super) fn request_text(request: &Value) -> String {
    let to = [word(&request["method"]), word(&request["to"])].join(" ");
    let mut lines = vec![to.trim_start().to_owned()];
    for (name, value) in request["headers"].as_object().into_iter().flatten() {
        lines.push(format!("{name}: {}", word(value)));
    }
    lines.push(format!("Idempotency-Key: {}", word(&request["idempotency_key"])));
    let body = word(&request["body"]);
    lines.push(String::new());
    lines.extend(body.lines().map(str::to_owned));
    let whole = request["body_bytes"].as_u64().unwrap_or_default();
    if whole > body.len() as u64 {
        lines.push(format!("… {} more bytes", HumanCount(whole - body.len() as u64)));
    }
    // What tasks contain must not steer a terminal.
    let plain = |line: &String| line.replace(char::is_control, "\u{fffd}");
    let indented = |line: String| if line.is_empty() { line } else { format!("  {line}") };
    lines.iter().map(plain).map(indented).collect::<Vec<_>>().join("\n")
}

/// A word of the API's, such as an id or a status.
pub(super) fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Formats a time in milliseconds since 1970.
pub(super) fn moment(milliseconds: u64) -> String {
    Timestamp(milliseconds).rfc3339_seconds()
}
