//! Reading a page: asks the source, and takes the rows of this partition.

use fanfold::ids::{ItemGroup, TaskId, derived, expand};
use fanfold::limits::BAD_ROW_BYTES_MAX;
use fanfold::messages::TaskRequest;
use fanfold::policy::CompiledPolicy;
use fanfold::producing::{BadRow, Given, Producer, Sieve, Source, Whole};
use fanfold::registering::{CheckedTasks, PoliciesOfKinds, RegisterError, TaskFault};
use fanfold::store::producers::{KeptPage, Page, Partition};
use fanfold::text::shorten;
use fanfold::tracking::page_groups;
use serde_json::Value;
use uuid::Uuid;

use crate::reissue::have_policies;
use crate::{Produce, ProduceError, SourceAnswer, SourceError, SourceRequest};

impl Produce {
    /// The page that a partition is at, as it is kept. `known`: it may be kept already.
    pub(crate) async fn kept(
        &self,
        producer: &Producer,
        at: &Partition,
        known: bool,
    ) -> Result<KeptPage, ProduceError> {
        if known && let Some(page) = self.producing.producers.page(at).await? {
            return Ok(page);
        }
        let page = self.sift(producer, at).await?;
        Ok(self.producing.producers.take(at, page).await?)
    }

    async fn sift(&self, producer: &Producer, at: &Partition) -> Result<KeptPage, ProduceError> {
        let (SourceAnswer { rows: given, cursor }, before) = self.ask(producer, at).await?;
        let policies = self.registrar.policies(&given.iter().filter_map(Given::kind).collect()).await?;
        if matches!(producer.source, Source::Reissue(_)) {
            have_policies(&policies)?;
        }
        self.same_keys(producer, at, &policies).await?;
        let sieve = Sieve::new(producer, at.number, at.rows).map_err(SourceError::for_good)?;
        let mut taken: Vec<TaskId> = Vec::new();
        let policy = |kind: &str| policies.get(kind).and_then(Option::as_deref);
        let sifted = sieve.sift(given, policy, |row| taken.extend(before.get(row)));
        let (bad, rows) = (at.bad + sifted.bad, at.rows + sifted.rows);
        if producer.too_many_bad(bad, rows, cursor.is_none()) {
            return Err(SourceError::for_good(too_many(&sifted.bad_rows, bad, rows)).into());
        }
        let page = KeptPage::new(sifted, cursor.as_ref()).map_err(SourceError::for_good)?;
        // A task that is a bad row keeps its key: nobody asked for its work to be done by others.
        self.release(&taken, &policies).await?;
        Ok(page)
    }

    /// Checks that the keys by which policies share rows out are those by which rows of this fan-out were shared out before: with
    /// others, a row might belong to no partition, or to two.
    async fn same_keys(
        &self,
        producer: &Producer,
        at: &Partition,
        policies: &PoliciesOfKinds,
    ) -> Result<(), ProduceError> {
        if !producer.shares_by_policies() {
            return Ok(());
        }
        let key = |policy: &CompiledPolicy| derived::policy_key(policy.policy.key.as_deref());
        let keys = policies.iter().filter_map(|(kind, policy)| Some((kind.clone(), key(policy.as_deref()?))));
        match self.producing.producers.share_by(at.fanout, &keys.collect()).await? {
            None => Ok(()),
            Some(kind) => Err(SourceError::again(format!(
                "the `key` of policy `{kind}` is not what it was when the first rows of this fan-out were shared out among \
                 its partitions; put it back until the fan-out is sealed (a producer with a `key` of its own does not \
                 depend on it)"
            ))
            .into()),
        }
    }

    /// The page that a partition is at, of a producer that keeps none: all of its rows, with the ids of their items, as the same
    /// tasks whenever it is read. Nothing was written, so an error leaves no items without tasks.
    pub(crate) async fn whole(
        &self,
        producer: &Producer,
        at: &Partition,
    ) -> Result<(Page, Option<CheckedTasks>), ProduceError> {
        let (SourceAnswer { rows: given, cursor }, _) = self.ask(producer, at).await?;
        let count = given.len() as u64;
        let page = Page::whole(count, cursor.as_ref()).map_err(SourceError::for_good)?;
        let mut whole = Whole::new(given, at.rows).map_err(|bad| SourceError::for_good(not_whole(&bad)))?;
        let tasks = std::mem::take(&mut whole.tasks);
        if tasks.is_empty() {
            return Ok((page, None));
        }
        let groups = page_groups(at.fanout, at.number, at.page, items(&tasks));
        let tasks = with_items(tasks, at.fanout, &groups);
        match self.registrar.check(tasks, "").await {
            Ok(checked) => Ok((page, Some(checked))),
            Err(RegisterError::Refused(faults)) => {
                let row =
                    |fault: &TaskFault| whole.bad_row(fault.index, &format!("`{}`: {}", fault.field, fault.problem));
                Err(SourceError::for_good(not_whole(&faults.iter().map(row).collect::<Vec<_>>())).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A page as the source gives it. Of a reissue also the task that each row was before.
    async fn ask(&self, producer: &Producer, at: &Partition) -> Result<(SourceAnswer, Vec<TaskId>), ProduceError> {
        let cursor = match &at.cursor {
            Some(cursor) => serde_json::from_str(cursor).map_err(SourceError::for_good)?,
            None => Value::Null,
        };
        if let Source::Reissue(reissue) = &producer.source {
            return self.ask_reissue(reissue, at, cursor).await;
        }
        let ask = SourceRequest { fanout: at.fanout, partition: at.number, of: producer.partitions, cursor };
        Ok((self.sources.ask(&producer.source, &ask, self.world.now()).await?, Vec::new()))
    }
}

/// How many items the tasks of a page are.
pub(crate) fn items(tasks: &[TaskRequest]) -> u32 {
    u32::try_from(tasks.len()).unwrap_or(u32::MAX)
}

/// The tasks of a page, as the items of its groups.
pub(crate) fn with_items(tasks: Vec<TaskRequest>, fanout: Uuid, groups: &[ItemGroup]) -> Vec<TaskRequest> {
    let with_id = |(task, item)| TaskRequest { id: Some(TaskId::Item(item)), ..task };
    tasks.into_iter().zip(expand(fanout, groups)).map(with_id).collect()
}

/// Describes the rows that are too many.
fn too_many(bad_rows: &[BadRow], bad: u64, rows: u64) -> String {
    format!("{bad} of {rows} rows are no tasks, more than `tolerated_bad_rows` allows: {}", named(bad_rows))
}

/// Describes rows none of which is tolerated.
fn not_whole(bad_rows: &[BadRow]) -> String {
    format!("not every row is a task: {}", named(bad_rows))
}

/// Names the first few of them.
fn named(bad_rows: &[BadRow]) -> String {
    let named: Vec<String> = bad_rows.iter().take(3).map(|bad| format!("row {}: {}", bad.row, bad.problem)).collect();
    shorten(&named.join("; "), BAD_ROW_BYTES_MAX).into_owned()
}
