//! Tasks that were reissued for small batches.

use aws_smithy_runtime_api::client::result::ConnectorError;
use fanfold::ids::TaskId;

use crate::lock;
use crate::order::intended;
use crate::request::{Record, Request, text};
use crate::wire::Line;

impl Line {
    /// A batch has no more members than each of its tasks was reissued for. An intent was written just now.
    pub(crate) async fn in_small_batches(&self, request: &Request) -> Result<(), ConnectorError> {
        let Some((batch, _, members)) = intended(request) else { return Ok(()) };
        let small: Vec<(Record, usize)> = {
            let model = lock(&self.sim.model);
            let small = |id: &TaskId| {
                // Who finds the key of a task that is not stored yet stores that task, for batches of any size.
                let most = model.small_batch(id).filter(|_| model.rivals(id).len() == 1)?;
                Some((("TasksTable".to_owned(), id.to_string()), most))
            };
            members.ids().iter().filter_map(small).collect()
        };
        if small.is_empty() {
            return Ok(());
        }
        *lock(&self.sim.stats).brought.entry("intents with tasks for small batches").or_default() += 1;
        let records: Vec<Record> = small.iter().map(|(record, _)| record.clone()).collect();
        let tasks = self.images(&records).await?;
        // A task that a lost worker has left is freed from its bundle, and goes in batches of any size.
        let bundled = |record: &Record| tasks.get(record).is_some_and(|task| text(task, "status") == "bundled");
        for (record, most) in small.iter().filter(|(record, most)| members.len() > *most && bundled(record)) {
            let (len, task) = (members.len(), &record.1);
            self.sim.violate(format!("batch {batch} is to have {len} members, task {task} was reissued for {most}"));
        }
        Ok(())
    }
}
