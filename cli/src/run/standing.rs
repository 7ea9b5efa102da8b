//! Says when the run's kind stands still, why, and what to do; and when it resumes.

use std::time::Duration;

use fanfold::store::gates::Gates;

use crate::job::Job;
use crate::say::say;

/// Between two looks at the kind's gate.
const LOOK: Duration = Duration::from_secs(1);

/// Looks until it is dropped.
pub(super) async fn watch(gates: &Gates, job: &Job) {
    let kind = job.policy.policy.kind.as_str();
    let mut shown = false;
    loop {
        tokio::time::sleep(LOOK).await;
        let Ok(gates) = gates.get_many(&[kind]).await else { continue };
        let stopped = gates.into_iter().find_map(|gate| gate.stopped);
        match (&stopped, shown) {
            (Some(stopped), false) => say(format_args!(
                "fanfold: {}. Tasks wait and do not fail. Fanfold tries the batch API again from time to time, and the run \
                 continues by itself once it works. If this is not expected, check `batch_api` in {}",
                stopped.answer,
                job.policy_file.display()
            )),
            (None, true) => say("fanfold: the batch API works again: the run continues"),
            _ => {}
        }
        shown = stopped.is_some();
    }
}
