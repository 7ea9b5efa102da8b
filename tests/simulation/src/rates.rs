//! Rates as the batch API counts them: no span sees more of a lane or a kind than a burst (or one call) plus what the rate
//! allows in that span.

use std::collections::BTreeMap;
use std::time::Duration;

use fanfold::policy::{Per, Policy, Rate, Unit, Weight};
use fanfold_batch_api::Call;
use serde_json::json;
use tokio::time::Instant;

use crate::dice::Dice;
use crate::filled;

/// The calls seen so far, by lane and by kind: when, and what they spent, in thousandths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(BTreeMap<String, Vec<(Instant, u64)>>);

/// A rate as a batch API knows it.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    unit: Unit,
    /// In thousandths.
    amount: u64,
    burst: u64,
    per: Duration,
}

impl Counted {
    pub(crate) fn of(rate: &Rate) -> Option<Self> {
        let (unit, Weight(amount)) = rate.amount()?;
        // As docs/policies.md says.
        let quarter = amount * 250 / u64::try_from(rate.per.time().as_millis()).ok()?;
        let least = if unit == Unit::Weight { quarter } else { (quarter / 1_000).max(1) * 1_000 };
        Some(Self { unit, amount, burst: rate.burst.map_or(least, |burst| burst.0), per: rate.per.time() })
    }

    fn spent(&self, call: &Call) -> u64 {
        match self.unit {
            Unit::Tasks => call.members.len() as u64 * 1_000,
            Unit::Calls => 1_000,
            Unit::Weight => call.members.iter().map(filled::weight).sum(),
        }
    }
}

impl Seen {
    /// A call comes. Returns what is wrong with it, if clocks differ by `apart`.
    pub(crate) fn called(&mut self, whose: &str, counted: &Counted, call: &Call, apart: Duration) -> Option<String> {
        let now = Instant::now();
        let calls = self.0.entry(whose.to_owned()).or_default();
        calls.push((now, counted.spent(call)));
        let (mut sum, mut largest) = (0, 0);
        for (at, spent) in calls.iter().rev() {
            (sum, largest) = (sum + spent, largest.max(*spent));
            let span = now - *at + apart;
            let came = u128::from(counted.amount) * span.as_micros() / counted.per.as_micros();
            let allowed = u128::from(counted.burst.max(largest)) + came;
            if u128::from(sum) > allowed {
                let span = now - *at;
                return Some(format!(
                    "{whose} was called for {sum} thousandths within {span:?}, {allowed} are allowed: {counted:?}"
                ));
            }
        }
        None
    }
}

/// Draws the rates and `max_calls` of a policy, the same for all its versions.
pub(crate) fn draw<'a>(dice: &Dice, policies: impl Iterator<Item = &'a mut Policy>) {
    let rate = |often| {
        let per = dice.pick(&[Per::Second, Per::Second, Per::Minute]);
        let amount = if per == Per::Second { dice.between(1, 4) } else { dice.between(6, 40) };
        let burst = dice.pick(&[None, None, Some(1), Some(3), Some(9)]).map(|burst: u64| burst.min(amount * 60));
        let unit = dice.pick(&["tasks", "tasks", "calls", "weight"]);
        dice.chance(often).then(|| (unit, json!({"per": per, "burst": burst}), amount))
    };
    let (lane, kind) = (rate(4_000), rate(5_000));
    let calls = dice.chance(3_000).then(|| dice.between(1, 3) as u32);
    for policy in policies {
        let typed = |rate: &Option<(&str, serde_json::Value, u64)>| {
            let (unit, rest, amount) = rate.as_ref()?;
            let mut rate = rest.clone();
            rate[if *unit == "weight" && policy.weight.is_none() { "tasks" } else { unit }] = json!(amount);
            serde_json::from_value(rate).ok()
        };
        (policy.lane_rate, policy.kind_rate, policy.max_calls) = (typed(&lane), typed(&kind), calls);
    }
}
