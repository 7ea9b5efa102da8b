//! Switches that call for work: what waits in a resumed scope is woken, and draining ends when nothing waits any more.

use std::collections::BTreeMap;

use fanfold::clock::Timestamp;
use fanfold::control::{Scope, Switch, SwitchState};
use fanfold::lane::Lane;
use fanfold::limits::SWITCH_STAYS_MIN;
use fanfold::store::policies::SwitchError;

use crate::known::Known;
use crate::late::Late;
use crate::{Round, Sweep, SweepError, SweepReport, SweepRequest};

/// The lanes in which tasks wait, each with the time at which its oldest task was registered.
pub(crate) type Oldest = BTreeMap<Lane, Timestamp>;

impl Sweep {
    /// Begins a round: reads the switches. `known`: the kinds that have a policy.
    pub(crate) async fn begin_round(&self, request: SweepRequest, known: Known) -> Result<Round, SweepError> {
        let begun_at = self.world.now();
        let late = Late::of(&self.elect, &self.group, &self.handle);
        Ok(Round { request, begun_at, switches: self.policies.switchboard().await?, known, late })
    }

    /// Takes switches away whose work is done: this round woke what waited, or found that nothing waits any more.
    pub(crate) async fn finish_switches(
        &self,
        round: &Round,
        oldest: &Oldest,
        report: &mut SweepReport,
    ) -> Result<(), SweepError> {
        for (scope, switch) in round.switches.iter().filter(|(scope, switch)| is_through(round, oldest, scope, *switch))
        {
            let finish = self.policies.switch(scope, |switches, _| {
                switches.finish(scope, switch);
                Ok(())
            });
            match finish.await {
                // One that was used again stays.
                Ok(left) => report.switches += u64::from(left.get(scope).is_none()),
                // Another sweep took it away, and its kind has no policy.
                Err(SwitchError::UnknownKind(_) | SwitchError::TooMany(_)) => {}
                Err(SwitchError::Store(error)) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Whether this round did the work of a switch. It must have begun some time after the switch was set. Whatever indexes and
/// workers had not seen by then is found like any other lost message.
fn is_through(round: &Round, oldest: &Oldest, scope: &Scope, switch: Switch) -> bool {
    // What is paused by itself, or has no policy, is not waited for: it may be so for long.
    let waits =
        |(lane, oldest): (&Lane, &Timestamp)| scope.covers(lane) && *oldest <= switch.since && !round.rests(lane);
    let stayed = switch.since.plus(SWITCH_STAYS_MIN) <= round.begun_at;
    match switch.state {
        SwitchState::Paused => false,
        SwitchState::Resumed => stayed,
        SwitchState::Draining => stayed && !oldest.iter().any(waits),
    }
}
