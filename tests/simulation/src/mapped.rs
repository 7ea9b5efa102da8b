//! Kinds whose batch API is a well-known one: calls are written by the preset's mapping, and what the API answers is read by it.
//! Sometimes the answer leaves an item out, or an item names a member that there is not.

use std::time::Duration;

use fanfold::policy::{Policy, Way};
use fanfold_batch_api::{Answer, Call, CallError, Mapping, MemberOutcome, Reply, Request, SentCall, Shape};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::scenario::KindPlan;
use crate::server::{DOOMED, Server};

/// APIs that take any content: members by index, as listed exceptions, by id, and not at all.
const PRESETS: [&str; 6] = ["elasticsearch", "kinesis", "bigquery", "bigquery", "sqs", "algolia"];

/// How often an answer is tampered with, in ten-thousandths.
const TAMPERED: u32 = 2_500;

/// A call as such an API gets it.
#[derive(Clone, Debug)]
pub(crate) struct MappedCall {
    preset: String,
    shape: Shape,
    sent: SentCall,
    mapping: Mapping,
}

impl KindPlan {
    /// Draws whether its batch API is a well-known one. Those answer at once, and what they return is not kept.
    pub(crate) fn map(&mut self, dice: &Dice) {
        let preset = dice.pick(&PRESETS);
        let posted = |(_, policy): &(Duration, Policy)| matches!(policy.batch_api.way, Way::Url(_));
        if !dice.chance(4_000) || !self.versions.iter().all(posted) {
            return;
        }
        let with = json!({"stream": "s", "queue_url": "q", "application": "a"});
        for (_, policy) in &mut self.versions {
            let mut api = json!(policy.batch_api);
            api["use"] = json!(preset);
            let needs = |name: &str| {
                matches!((preset, name), ("kinesis", "stream") | ("sqs", "queue_url") | ("algolia", "application"))
            };
            let with = with.as_object().into_iter().flatten().filter(|(name, _)| needs(name));
            api["with"] =
                with.map(|(name, value)| (name.clone(), value.clone())).collect::<serde_json::Map<_, _>>().into();
            if let Ok(api) = serde_json::from_value(api) {
                policy.batch_api = api;
                policy.batch_api.answers_within = None;
                policy.keep_results = false;
            }
        }
    }
}

impl MappedCall {
    /// A request as the API reads it. None: its kind calls no such API.
    ///
    /// # Errors
    /// It is not what the members are.
    pub(crate) fn of(preset: Option<&String>, request: &Request<'_>) -> Result<Option<Self>, String> {
        let (Some(preset), Some(mapping)) = (preset, &request.mapping) else { return Ok(None) };
        let shape = Shape::of_preset(preset).ok_or_else(|| format!("there is no preset {preset}"))?;
        let sent = shape.read(&request.body).map_err(|problem| format!("{preset} does not take a call: {problem}"))?;
        let contents =
            request.call.members.iter().map(|member| serde_json::from_str::<Value>(member.content.get()).ok());
        if !contents.eq(sent.members.iter().map(|member| Some(member.content.clone()))) {
            return Err(format!("{preset} got other members than {:?}: {sent:?}", request.call));
        }
        Ok(Some(Self { preset: preset.clone(), shape, sent, mapping: mapping.clone() }))
    }

    fn read(&self, call: &Call, reply: &Reply) -> Result<Answer, CallError> {
        self.read_bytes(call, reply.status, reply.body.to_string().as_bytes())
    }

    /// Reads what came as an answer.
    pub(crate) fn read_bytes(&self, call: &Call, status: u16, body: &[u8]) -> Result<Answer, CallError> {
        Ok(self.mapping.read(call, status, &status.to_string(), body)?.into_answer(call))
    }

    /// The place of a body's list, and the field of its items that names a member.
    fn items(&self) -> (&'static str, Option<&'static str>) {
        match self.preset.as_str() {
            "elasticsearch" => ("/items", None),
            "kinesis" => ("/Records", None),
            "bigquery" => ("/insertErrors", Some("index")),
            _ => ("/Failed", Some("Id")),
        }
    }

    /// Whether its status is all that an answer says.
    pub(crate) fn answers_anything(&self) -> bool {
        self.preset == "algolia"
    }

    /// Whether silence about a member means something else than success.
    fn names_all(&self) -> bool {
        self.preset != "bigquery"
    }
}

impl Server {
    /// The answer of a well-known API.
    pub(crate) fn answer_mapped(&self, call: &Call, mapped: &MappedCall) -> Result<Answer, CallError> {
        let (sim, dice) = (&self.sim, &self.sim.dice);
        let draw = |member| {
            if mapped.shape.says(MemberOutcome::Retry) && dice.chance(sim.rate(self.mood.member_again)) {
                sim.count("batch API: member again");
                MemberOutcome::Retry
            } else if self.is_doomed(member) {
                MemberOutcome::Failed
            } else {
                MemberOutcome::Succeeded
            }
        };
        let outcomes: Vec<(MemberOutcome, &str)> = call.members.iter().map(|member| (draw(member), DOOMED)).collect();
        sim.count("batch API: a well-known one");
        let unsaid = |(outcome, _): &(MemberOutcome, &str)| !mapped.shape.says(*outcome);
        if outcomes.iter().any(unsaid) {
            self.say_alone(call);
            return mapped.read(call, &mapped.shape.refused("one is doomed"));
        }
        for (member, (outcome, _)) in call.members.iter().zip(&outcomes) {
            if *outcome != MemberOutcome::Retry {
                self.say(member.id, *outcome == MemberOutcome::Succeeded);
            }
        }
        let mut reply = mapped.shape.done(&mapped.sent, &outcomes, 1);
        let (list, name) = mapped.items();
        if let Some(items) =
            reply.body.pointer_mut(list).and_then(Value::as_array_mut).filter(|items| !items.is_empty())
        {
            let at = dice.below(items.len());
            if mapped.names_all() && dice.chance(sim.rate(TAMPERED)) {
                sim.count("batch API: an item is missing");
                items.remove(at);
            } else if let Some(name) = name.filter(|_| dice.chance(sim.rate(TAMPERED))) {
                sim.count("batch API: an item names no member");
                items[at][name] = json!("4711");
            }
        }
        mapped.read(call, &reply)
    }
}
