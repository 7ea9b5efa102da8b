//! Switches that are to do something: they wake what waits in a scope that went on, and watch a scope drain.

use std::collections::BTreeMap;

use fanfold::clock::Timestamp;
use fanfold::control::{Scope, Switch, SwitchState};
use fanfold::lane::Lane;
use fanfold::limits::SWITCH_SETTLES;
use fanfold::store::policies::SwitchError;

use crate::{Round, Sweep, SweepError, SweepReport, SweepRequest};

/// The lanes in which tasks wait, each with when its oldest was registered.
pub(crate) type Oldest = BTreeMap<Lane, Timestamp>;

impl Sweep {
    /// Reads what is paused, drains, or is to be woken.
    pub(crate) async fn begin_round(&self, request: SweepRequest) -> Result<Round, SweepError> {
        let begun_at = self.world.now();
        Ok(Round { request, begun_at, switches: self.policies.switchboard().await? })
    }

    /// Takes switches away that did their work: this round woke what waited, or found that it is gone.
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
                Ok(_) => report.switches += 1,
                // Its policy is gone, and its switches with it.
                Err(SwitchError::UnknownKind(_) | SwitchError::TooMany(_)) => {}
                Err(SwitchError::Store(error)) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Whether a switch did its work, as this round found. It began some time after the switch was used: what indexes and workers had not
/// seen of it by then is no more than what any other hint may lose.
fn is_through(round: &Round, oldest: &Oldest, scope: &Scope, switch: Switch) -> bool {
    let waits = |(lane, oldest): (&Lane, &Timestamp)| scope.covers(lane) && *oldest <= switch.since;
    let settled = switch.since.plus(SWITCH_SETTLES) <= round.begun_at;
    match switch.state {
        SwitchState::Paused => false,
        SwitchState::Resumed => settled,
        SwitchState::Draining => settled && !oldest.iter().any(waits),
    }
}
