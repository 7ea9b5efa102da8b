//! A call is refused because of one of its members, of which the batch API has posted before that it failed. What is left of the
//! call then is often one member, which is not the one.

use fanfold_batch_api::{Call, CallError, CallMember};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::Post;
use crate::dice::Dice;
use crate::lock;
use crate::server::{DOOMED, Server};

impl Server {
    /// Some calls that are refused with this error: before that, outcomes of all members but one are posted. The one could be
    /// done.
    pub(crate) async fn leaving_one(&self, call: &Call, error: CallError) -> CallError {
        let sim = &self.sim;
        let dice = Dice::new(sim.seed, &format!("posts before refusals {} {}", call.batch_id, call.attempt));
        let token = lock(&sim.model).later.tokens.get(&(call.batch_id, call.attempt)).cloned();
        let fine = |member: &&CallMember| !is_poison(member) && !self.is_doomed(member);
        let innocent: Vec<_> = call.members.iter().filter(fine).map(|member| member.id).collect();
        let Some(token) = token.filter(|_| !innocent.is_empty() && dice.chance(7_000)) else { return error };
        sim.count("batch API: refuses whom it leaves");
        let left = dice.pick(&innocent);
        let keeps = lock(&sim.model).kinds.get(&call.kind).is_some_and(|kind| kind.keeps);
        let mut members: Vec<Value> = Vec::new();
        for member in call.members.iter().filter(|member| member.id != left) {
            let fails = is_poison(member) || self.is_doomed(member);
            self.say(member.id, !fails);
            let mut said = json!({"id": member.id, "outcome": if fails { "failed" } else { "succeeded" }});
            if fails {
                said["error"] = json!(DOOMED);
            } else if keeps {
                said["result"] = lock(&sim.model).returns(call, member.id);
            }
            members.push(said);
        }
        if dice.chance(3_000) {
            members.push(json!({"id": left, "outcome": "retry", "retry_after": dice.between(30, 600)}));
        }
        let (at, batch, attempt) = (Instant::now(), call.batch_id, call.attempt);
        let post = Post { at, batch, attempt, token, members, late: false };
        lock(&sim.model).later.posts.push(post);
        sleep(dice.millis(500, 3_000)).await;
        error
    }
}

/// Whether calls with this member are refused as a whole.
fn is_poison(member: &CallMember) -> bool {
    member.content.get().contains("\"poison\":")
}
