//! What is wrong with a batch API.

use super::{BatchApi, Mode, Way};
use crate::limits::{ANSWERS_WITHIN_MAX, ANSWERS_WITHIN_MIN, BATCH_API_TIMEOUT_MAX, MAPPING_BYTES_MAX};
use crate::policy::Span;
use crate::policy::check::Faults;
use crate::policy::destination::check_queue;
use crate::producing::check_function;

impl BatchApi {
    /// Names what is wrong with its mappings.
    fn check_mappings(&self, faults: &mut Faults) {
        if !matches!(self.way, Way::Url(_)) {
            let way = self.way.field();
            for (field, given) in [
                ("use", self.preset.is_some()),
                ("request", self.request.is_some()),
                ("response", self.response.is_some()),
            ] {
                if given {
                    faults.add(&format!("batch_api.{field}"), not_http(way));
                }
            }
            return;
        }
        let bytes = serde_json::to_vec(&self.with).map_or(usize::MAX, |json| json.len());
        if bytes > MAPPING_BYTES_MAX {
            faults.add("batch_api.with", format!("has {bytes} bytes as JSON, at most {MAPPING_BYTES_MAX} are allowed"));
        }
        if let Some((name, preset)) = self.preset.as_deref().zip(self.preset()) {
            for (constant, about) in preset.with.iter().filter(|(constant, _)| !self.with.contains_key(*constant)) {
                faults
                    .add(&format!("batch_api.with.{constant}"), format!("is missing: `{name}` needs {}", about.about));
            }
        }
        let mut report = |field: &str, problem: String| faults.add(field, problem);
        if let Some(request) = &self.request {
            request.compile("batch_api.request", &mut report);
        }
        if let Some(response) = &self.response {
            response.compile("batch_api.response", &mut report);
        }
    }

    /// Names what is wrong with the time for an answer that comes later.
    fn check_answers_within(&self, faults: &mut Faults) {
        let field = "batch_api.answers_within";
        let Some(within) = self.answers_within else {
            if matches!(self.way, Way::Sqs(_)) {
                faults
                    .add(field, "is missing: a message to a queue is answered later, so a time such as `1h` is needed");
            }
            return;
        };
        if !self.way.may_answer_later() {
            faults.add(field, answered_at_once(self.way.field()));
        }
        if within.0 < ANSWERS_WITHIN_MIN {
            faults.add(field, format!("is {within}, at least {} is needed", Span(ANSWERS_WITHIN_MIN)));
        }
        faults.whole_millis(field, within);
        faults.at_most(field, within, ANSWERS_WITHIN_MAX);
        if self.mode == Mode::Strict {
            let problem = "is `strict`, and with `answers_within` outcomes may come in parts; `slots` is allowed";
            faults.add("batch_api.mode", problem);
        }
    }

    /// Names what is wrong with it.
    pub(in crate::policy) fn check(&self, faults: &mut Faults) {
        match &self.way {
            Way::Url(url) => faults.url("batch_api.url", url),
            Way::Lambda(function) => {
                if let Err(problem) = check_function(function) {
                    faults.add("batch_api.lambda", problem);
                }
            }
            Way::Sqs(queue) => {
                if let Err(problem) = check_queue(queue) {
                    faults.add("batch_api.sqs", problem);
                }
            }
            Way::Command(command) if command.first().is_none_or(String::is_empty) => {
                faults.add("batch_api.command", "is empty, a program and its arguments are expected");
            }
            Way::Command(_) => {}
        }
        self.check_mappings(faults);
        self.check_answers_within(faults);
        if self.timeout.0.is_zero() {
            faults.add("batch_api.timeout", "is 0s, more is needed");
        }
        faults.whole_millis("batch_api.timeout", self.timeout);
        faults.at_most("batch_api.timeout", self.timeout, BATCH_API_TIMEOUT_MAX);
    }
}

/// A field that is about HTTP does not go with another way.
fn not_http(way: &str) -> String {
    format!("is about HTTP, and the batch API is a `{way}`; `url` is allowed")
}

/// Only some ways have answers that come later.
fn answered_at_once(way: &str) -> String {
    format!("is about answers that come later, and a `{way}` answers at once; `url` and `sqs` are allowed")
}
