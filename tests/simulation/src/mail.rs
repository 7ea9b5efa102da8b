//! SQS as the steps see it: what they send goes to the simulation's own queues, notices to the model.

use std::time::Duration;

use aws_smithy_runtime_api::client::result::ConnectorError;
use fanfold::limits::{DELAY_MAX, MESSAGES_PER_CALL_MAX};
use fanfold::notice::{FanoutEnded, Notice};
use fanfold::store::fanouts::FanoutState;
use serde_json::{Value, json};

use crate::estimated;
use crate::hooks::ReceiverAnswer;
use crate::lock;
use crate::observe;
use crate::request::{Request, queue_of, text};
use crate::wire::{Line, WireAnswer};

/// SQS: bytes of one message and of one batch call.
const BYTES: usize = 256 * 1_024;

impl Line {
    /// About how many messages wait in a queue: SQS's counts may be late.
    fn counted(&self, queue: &str) -> usize {
        // Nobody lets messages become dead letters here.
        let Some(queue) = self.sim.queues.get(queue) else { return 0 };
        let visible = queue.backlog();
        let counted = match self.sim.gate.is_none() && self.sim.dice.chance(2_000) {
            true => self.sim.dice.below(2 * visible + 2),
            false => visible.max(self.sim.plan.counted),
        };
        self.sim.count(if counted == 0 { "no message counted in a queue" } else { "messages counted in a queue" });
        counted
    }

    pub(crate) async fn apply_sqs(&self, request: &Request, partial: bool) -> Result<WireAnswer, ConnectorError> {
        let queue = queue_of(&request.body).to_owned();
        if request.operation == "GetQueueAttributes" {
            let counted = self.counted(&queue).to_string();
            let counts = json!({"ApproximateNumberOfMessages": counted, "ApproximateNumberOfMessagesNotVisible": "0"});
            return Ok(WireAnswer::ok(json!({"Attributes": counts})));
        }
        let entries = request.body["Entries"].as_array().cloned().unwrap_or_default();
        let bytes: usize = entries.iter().map(|entry| entry["MessageBody"].as_str().unwrap_or("").len()).sum();
        if request.operation != "SendMessageBatch"
            || !(1..=MESSAGES_PER_CALL_MAX).contains(&entries.len())
            || bytes > BYTES
        {
            self.sim.violate(format!("SQS would refuse {} of {} entries, {bytes} bytes", request.kind, entries.len()));
        }
        let (mut successful, mut failed) = (Vec::new(), Vec::new());
        for entry in entries {
            if partial && self.sim.dice.chance(4_000) {
                self.sim.count("entry of a send refused");
                failed.push(json!({"Id": entry["Id"], "Code": "InternalError", "SenderFault": false}));
                continue;
            }
            let delay = Duration::from_secs(entry["DelaySeconds"].as_u64().unwrap_or(0));
            if delay > DELAY_MAX {
                self.sim.violate(format!("SQS would refuse a delay of {delay:?}"));
            }
            let body = entry["MessageBody"].as_str().unwrap_or("").to_owned();
            self.in_time(&queue, &body, delay).await?;
            self.lingers(&queue, &body, delay).await?;
            if queue == "NotifyDeadLetterQueue" {
                lock(&self.sim.model).hooks.letter(&body);
            }
            if let Some(gate) = &self.sim.gate {
                gate.sent((&queue, &body, delay));
            }
            let id = if queue == "NoticesQueue" {
                self.notice(&body).await?;
                self.sim.queues.next_id()
            } else {
                self.sim.post(&queue, body, delay)
            };
            successful.push(json!({"Id": entry["Id"], "MessageId": id, "MD5OfMessageBody": ""}));
        }
        Ok(WireAnswer::ok(json!({"Successful": successful, "Failed": failed})))
    }

    /// A message for a batch's next attempt waits for its time.
    async fn in_time(&self, queue: &str, body: &str, delay: Duration) -> Result<(), ConnectorError> {
        let Some((record, attempt)) = observe::next_attempt(queue, body) else { return Ok(()) };
        let images = self.images(std::slice::from_ref(&record)).await?;
        let early = images.get(&record).and_then(|batch| observe::too_early(&self.sim, batch, attempt, delay));
        if let Some(early) = early {
            self.sim
                .violate(format!("a message for a batch comes {early:?} too early: {body} in {delay:?}, {images:?}"));
        }
        Ok(())
    }

    /// A notice gets to a user. It must not come before what it reports, and always say the same.
    async fn notice(&self, body: &str) -> Result<(), ConnectorError> {
        let notice: Notice = match serde_json::from_str(body) {
            Ok(notice) => notice,
            Err(error) => {
                self.sim.violate(format!("a notice cannot be read: {error}: {body}"));
                return Ok(());
            }
        };
        if let Some(end) = notice.event.end() {
            self.ended(end).await?;
        }
        crate::notices::called(&self.sim, &notice);
        let strictness = self.sim.strictness();
        let problem = lock(&self.sim.model).hooks.called(notice.id, strictness);
        problem.into_iter().for_each(|problem| self.sim.violate(problem));
        lock(&self.sim.model).hooks.answered(notice.id, ReceiverAnswer::Takes);
        lock(&self.sim.model).heard.takes(&notice);
        let known = lock(&self.sim.model).notices.entry(notice.id).or_insert_with(|| notice.clone()).clone();
        if known != notice {
            self.sim.violate(format!("notice {} said {known:?}, and then {notice:?}", notice.id));
        }
        Ok(())
    }

    /// Whether a fan-out's end is reported too early.
    async fn ended(&self, end: &FanoutEnded) -> Result<(), ConnectorError> {
        let id = end.fanout;
        let record = ("FanoutsTable".to_owned(), id.to_string());
        let images = self.images(std::slice::from_ref(&record)).await?;
        let state = images.get(&record).map_or("", |item| text(item, "state"));
        let ended = images.get(&record).is_some_and(|item| !item["ended_at"].is_null());
        if state != end.state.as_str() || !ended {
            self.sim.violate(format!("the end of fan-out {id} was reported while it was {state}"));
        }
        if lock(&self.sim.model).estimated.contains_key(&id) {
            let header = images.get(&record).unwrap_or(&Value::Null);
            estimated::check::notice(end, header).into_iter().for_each(|problem| self.sim.violate(problem));
            return Ok(());
        }
        let Some(fanout) = lock(&self.sim.model).fanouts.get(&id).cloned() else {
            self.sim.violate(format!("the end of fan-out {id} was reported, which no user opened"));
            return Ok(());
        };
        let groups: std::collections::BTreeSet<String> =
            fanout.items.iter().map(|item| item.group.to_string()).collect();
        let groups: Vec<_> = groups.into_iter().map(|group| ("GroupsTable".to_owned(), group)).collect();
        let open = |item: &Value| !item["open"].is_null();
        let left: Vec<String> =
            self.images(&groups).await?.into_iter().filter(|(_, item)| open(item)).map(|((_, id), _)| id).collect();
        let items = fanout.items.len() as u64;
        let right = match end.state {
            FanoutState::Completed => fanout.sealing && end.total == items,
            // A user may get the ids of added items after they are missing.
            FanoutState::Expired => fanout.expired && end.total >= items,
            FanoutState::Failed => fanout.failing && fanout.exceeded(end.failed, end.total) && end.total >= items,
            _ => fanout.cancelling && end.total >= items,
        };
        if !left.is_empty() || !right {
            self.sim.violate(format!(
                "the end of a fan-out of {items} items was reported early: {end:?}, open groups: {left:?}, {fanout:?}"
            ));
        }
        Ok(())
    }
}
