//! Reading an answer by its mapping. What the answer does not say is never guessed.

use std::collections::HashMap;

use fanfold::ids::TaskId;
use fanfold::limits::{ENTRY_BYTES_MAX, ERROR_BYTES_MAX};
use fanfold::mapping::{Bindings, CompiledResponse, Match, Sign, Term, Variable};
use fanfold::text::{BYTE_ORDER_MARK, beginning};
use fanfold_http_client::aws::error_code;
use serde_json::Value;

use super::Mapping;
use super::items::{self, Item};
use super::names::Names;
use super::reading::{Reading, Readings, Said};
use crate::answer::extras;
use crate::aws::cause_of;
use crate::{Answer, Call, CallError, CallMember, Cause, MemberAnswer, MemberOutcome};

impl Mapping {
    /// What is known without a call: that members cannot be in a request.
    #[must_use]
    pub fn uncalled(&self, call: &Call) -> Readings {
        let mut members = vec![None; call.members.len()];
        for (at, problem) in &self.unfit {
            let error = format!("the request cannot be written for it: {problem}");
            if let Some(place) = members.get_mut(*at) {
                *place = Some(Reading::new(MemberOutcome::Failed, Some(error)));
            }
        }
        Readings { members, problem: None }
    }

    /// An answer that was read as any batch API's, with the failures of members that were not in the request: it cannot be about
    /// these.
    #[must_use]
    pub fn complete(&self, answer: Answer, call: &Call) -> Answer {
        if self.unfit.is_empty() {
            return answer;
        }
        let uncalled = self.uncalled(call).members;
        let succeeded = |member: &CallMember| MemberAnswer::new(member.id, MemberOutcome::Succeeded);
        let (mut members, problem) = match answer {
            Answer::AllSucceeded => (call.members.iter().map(succeeded).collect(), None),
            Answer::Members(members) => (members, None),
            Answer::Unclear { members, problem } => (members, Some(problem)),
            Answer::Later(later) => return Answer::Later(later),
        };
        let failed: HashMap<TaskId, Reading> =
            call.members.iter().zip(uncalled).filter_map(|(member, reading)| Some((member.id, reading?))).collect();
        members.retain(|member: &MemberAnswer| !failed.contains_key(&member.id));
        members.extend(failed.into_iter().map(|(id, reading)| reading.of(id)));
        match problem {
            None => Answer::Members(members),
            Some(problem) => Answer::Unclear { members, problem },
        }
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// It says that the call failed as a whole, or it cannot be read. `reason`: the status in words.
    pub fn read(&self, call: &Call, status: u16, reason: &str, body: &[u8]) -> Result<Readings, CallError> {
        let text = String::from_utf8_lossy(body);
        let text = text.trim_start_matches(BYTE_ORDER_MARK).trim();
        let said = Said { status, text, body: serde_json::from_str(text).ok() };
        let mut readings = self.uncalled(call);
        let Some(response) = &self.response else { return Ok(readings) };
        let status = Value::from(said.status);
        let bindings = self.values.bindings().with(Variable::Status, &status);
        if !said.success() && !response.statuses.contains(&said.status) {
            return Err(self.whole(response, &said, reason, &bindings));
        }
        if said.success() && failed_as_a_whole(response, &said, &bindings)? {
            return Err(self.whole(response, &said, reason, &bindings));
        }
        let read = self.of_members(response, call, &said, &bindings).map_err(|problem| {
            // A status that is no success says something even if the items cannot be read.
            if !said.success() {
                return self.whole(response, &said, reason, &bindings);
            }
            CallError::new(Cause::BadAnswer, format!("the answer {problem}: {}", said.shown()))
        })?;
        for (at, reading) in self.sent.iter().zip(read.members) {
            if let Some(place) = readings.members.get_mut(*at) {
                *place = reading;
            }
        }
        Ok(Readings { problem: read.problem, ..readings })
    }

    /// What an answer says of the members that were sent.
    fn of_members(
        &self,
        response: &CompiledResponse,
        call: &Call,
        said: &Said<'_>,
        bindings: &Bindings<'_>,
    ) -> Result<Readings, String> {
        let items = self.items(response, said, bindings)?;
        let names = Names::of(response, call, &self.sent, bindings)?;
        let mut members: Vec<Option<Reading>> = vec![None; self.sent.len()];
        // Of any number of items that name no member, the first is kept.
        let (mut strange, mut others) = (None, 0_usize);
        for (order, (from, item)) in items.into_iter().enumerate() {
            let from = Value::String(from.to_owned());
            let bindings = bindings.with(Variable::Item, item).with(Variable::From, &from);
            match names.member(response.name.as_ref(), &bindings, order) {
                Ok(index) => {
                    let reading = reading(response, item, &bindings);
                    if let Some(place) = members.get_mut(index) {
                        *place = Some(place.take().map_or(reading.clone(), |first| both(first, reading)));
                    }
                }
                Err(_) if strange.is_some() => others += 1,
                Err(problem) => strange = Some(problem),
            }
        }
        // Only where every item is known to be of a member does silence about the others say something.
        if response.matching.lists_exceptions() && said.success() && strange.is_none() {
            let succeeded = Reading::new(MemberOutcome::Succeeded, None);
            members.iter_mut().filter(|place| place.is_none()).for_each(|place| *place = Some(succeeded.clone()));
        }
        let others = if others > 0 { format!(", and {others} others name none either") } else { String::new() };
        let problem = strange.map(|first| format!("an item of it {first}{others}"));
        Ok(Readings { members, problem })
    }

    /// The items of an answer that is read by its items.
    fn items<'a>(
        &self,
        response: &'a CompiledResponse,
        said: &'a Said<'_>,
        bindings: &Bindings<'_>,
    ) -> Result<Vec<Item<'a>>, String> {
        let items = match (&said.body, said.text.is_empty()) {
            _ if response.matching == Match::None && said.differs() => {
                return Err(
                    "says by its status 207 that outcomes differ, and by `match: none` it has no items".to_owned()
                );
            }
            _ if response.matching == Match::None => Vec::new(),
            (Some(body), _) => items::of(response, body, bindings, said.differs())?,
            (None, true) if !said.differs() && response.lists.iter().all(|list| list.optional) => Vec::new(),
            (None, true) => return Err("is empty".to_owned()),
            (None, false) => return Err("is not JSON".to_owned()),
        };
        if response.matching == Match::Index && items.len() != self.sent.len() {
            return Err(format!(
                "has {} items for {} members, so no item is known to be of a member",
                items.len(),
                self.sent.len()
            ));
        }
        Ok(items)
    }

    /// The error of a call that failed as a whole.
    fn whole(&self, response: &CompiledResponse, said: &Said<'_>, reason: &str, bindings: &Bindings<'_>) -> CallError {
        let body = said.body.as_ref().unwrap_or(&Value::Null);
        let bindings = bindings.with(Variable::Body, body);
        let why = response.whole_error.as_ref().and_then(|term| said_by(term, &bindings));
        let why = why.unwrap_or_else(|| said.shown());
        let why = if why.is_empty() { why } else { format!(": {why}") };
        let given = response.whole_status.as_ref().and_then(|term| status_by(term, &bindings));
        let cause = given.or_else(|| self.of_aws(said)).unwrap_or(Cause::Status(said.status));
        let error = CallError::new(cause, format!("the batch API answered {reason}{why}"));
        // A term that has no value leaves it to the status: many errors have no body.
        let again = response.whole_retry.as_ref().and_then(|term| term.flag(&bindings).ok());
        CallError { retriable: again.unwrap_or(error.retriable), ..error }
    }

    /// What the error of an AWS API says of every call, whatever its status is.
    fn of_aws(&self, said: &Said<'_>) -> Option<Cause> {
        if said.success() || !matches!(self.sign, Some(Sign::Aws(_))) {
            return None;
        }
        cause_of(&error_code(self.error_type.as_deref(), said.text.as_bytes()))
    }
}

/// What an item says of its member.
fn reading(response: &CompiledResponse, item: &Value, bindings: &Bindings<'_>) -> Reading {
    let unclear = |error: String| Reading::new(MemberOutcome::Unclear, Some(error));
    match response.ok.as_ref().map_or(Ok(false), |term| term.flag(bindings)) {
        Ok(true) => {
            let result =
                response.result.as_ref().and_then(|term| term.value(bindings).ok()).map(|value| value.into_owned());
            return Reading { result, ..Reading::new(MemberOutcome::Succeeded, None) };
        }
        Ok(false) => {}
        Err(error) => return unclear(format!("`batch_api.response.ok`: {error}; the item is {}", shown(item))),
    }
    let error = response.error.as_ref().and_then(|term| said_by(term, bindings));
    let error = error.unwrap_or_else(|| beginning(item.to_string().as_bytes(), ERROR_BYTES_MAX));
    let again = response.retry.as_ref().map_or(Ok(response.matching == Match::Echo), |term| term.flag(bindings));
    let said = |term: &Term| term.value(bindings).ok().filter(|value| !value.is_null()).map(|value| value.to_string());
    let code = response.code.as_ref().and_then(said).and_then(|code| extras::code(&code));
    match again {
        // A delay that is none is left out: the outcome counts all the same.
        Ok(true) => {
            let asked = response.retry_after.as_ref().and_then(said);
            let retry_after = asked.and_then(|asked| extras::retry_after(&asked).ok());
            Reading { code, retry_after, ..Reading::new(MemberOutcome::Retry, Some(error)) }
        }
        Ok(false) => Reading { code, ..Reading::new(MemberOutcome::Failed, Some(error)) },
        Err(problem) => unclear(format!("`batch_api.response.retry`: {problem}; the item is {}", shown(item))),
    }
}

fn shown(item: &Value) -> String {
    beginning(item.to_string().as_bytes(), ENTRY_BYTES_MAX)
}

/// An error as a term gives it: a text, or any other JSON. None: it gives nothing.
fn said_by(term: &Term, bindings: &Bindings<'_>) -> Option<String> {
    match term.value(bindings).ok()?.as_ref() {
        Value::Null => None,
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => Some(beginning(text.as_bytes(), ERROR_BYTES_MAX)),
        other => Some(beginning(other.to_string().as_bytes(), ERROR_BYTES_MAX)),
    }
}

/// A status as a term gives it. None: it gives none that a failed call may have.
fn status_by(term: &Term, bindings: &Bindings<'_>) -> Option<Cause> {
    let status = term.value(bindings).ok()?.as_u64().and_then(|status| u16::try_from(status).ok())?;
    (300..=599).contains(&status).then_some(Cause::Status(status))
}

/// Two items about one member: if they differ, which of them holds is not known.
fn both(first: Reading, second: Reading) -> Reading {
    if first.outcome == second.outcome {
        return first;
    }
    Reading::new(MemberOutcome::Unclear, Some("the answer has several outcomes for it".to_owned()))
}

fn failed_as_a_whole(response: &CompiledResponse, said: &Said<'_>, bindings: &Bindings<'_>) -> Result<bool, CallError> {
    let Some(term) = &response.whole_failed else { return Ok(false) };
    let body = said.body.clone().unwrap_or_default();
    term.flag(&bindings.with(Variable::Body, &body)).map_err(|error| {
        let message = format!("the answer is unclear, `batch_api.response.whole.failed`: {error}: {}", said.shown());
        CallError::new(Cause::BadAnswer, message)
    })
}
