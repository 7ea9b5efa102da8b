//! Kinds that stopped or resumed, whose notice is still to be delivered.

use fanfold::messages::About;
use fanfold::store::gates::Gate;

use crate::{Round, Sweep, SweepError, SweepReport};

impl Sweep {
    /// Sends the messages of overdue notices of kinds again. There are few kinds: one per policy.
    pub(crate) async fn sweep_kinds(&self, round: &Round, report: &mut SweepReport) -> Result<(), SweepError> {
        // If they could not be read, this sweep fails at its end, and the next one tries again.
        let Some(kinds) = round.known.kinds() else { return Ok(()) };
        let notices = self.gates.notices();
        for gate in self.gates.get_many(&kinds).await?.into_iter().filter(Gate::to_notify) {
            match self.policies.get(&gate.kind).await {
                Ok(Some(policy)) if policy.notify.is_some() => {}
                // The policy no longer names a destination.
                Ok(_) => continue,
                Err(error) => {
                    tracing::error!(%error, kind = gate.kind, "the policy cannot be read");
                    continue;
                }
            }
            let changed_at = gate.notice_at.unwrap_or_default();
            let about = About::Kind(gate.kind);
            let again = self.wake_overdue(&notices, about, &gate.notice, changed_at, round.request).await?;
            report.kinds += u64::from(again);
        }
        Ok(())
    }
}
