//! Brings the tasks of a file into a fan-out.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fanfold::ids::{ItemGroup, ItemId, TaskId, expand};
use fanfold::limits::ITEMS_PER_ADD_MAX;
use fanfold::messages::TaskRequest;
use fanfold::policy::{Destination, NoticesQueue};
use fanfold::store::fanouts::Fanout;
use fanfold::tracking::{OpenRequest, Tracking};
use fanfold_local::InvocationMeter;
use fanfold_register::Register;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::begin::Begun;
use super::meter::Meter;
use crate::failure::Failure;
use crate::fault::Fault;
use crate::job::Job;

/// Registrations under way at once: while one is stored, the next is read.
const REGISTRATIONS: usize = 2;

/// Tasks in one registration: the more there are of a lane, the fewer bundles they take, and bundles are what is written
/// beside the tasks themselves.
const REGISTRATION_TASKS: usize = 25_000;

/// Bytes of contents in one registration, give or take a task.
const REGISTRATION_BYTES: usize = 8 * 1_024 * 1_024;

/// Registered tasks without an outcome from which on the next ones wait: what waits is named by messages, which are kept in memory.
const AHEAD_MAX: u64 = 400_000;

/// How long they wait at most: where nothing is handled, nothing is lost by registering slowly.
const AHEAD_WAIT: Duration = Duration::from_secs(5);

/// Between two looks at that.
const LOOK: Duration = Duration::from_millis(20);

/// An opened fan-out with room for every task.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) fanout: Fanout,
    pub(crate) groups: Vec<ItemGroup>,
}

/// Opens the fan-out of a run with as many items as there are tasks, or finds it again.
pub(crate) async fn open(tracking: &Tracking, key: Uuid, name: &str, tasks: u64) -> Result<Opened, Failure> {
    let key = key.to_string();
    let mut left = tasks;
    let mut take = || {
        let items = u32::try_from(left).unwrap_or(u32::MAX).min(ITEMS_PER_ADD_MAX);
        left -= u64::from(items);
        (items, left == 0)
    };
    let (items, seal) = take();
    let notify = Some(Destination::Queue(NoticesQueue::Notices));
    let request = OpenRequest { items, seal, user_key: Some(name.to_owned()), notify, ..OpenRequest::default() };
    let opened = tracking.open(request, Some(&key)).await?;
    let (mut fanout, mut groups) = (opened.fanout, opened.groups);
    let mut sealed = seal;
    while !sealed {
        let (items, last) = take();
        // The key of an add is unique within its fan-out.
        groups.extend(tracking.add(fanout.id, items, Some(&groups.len().to_string())).await?);
        sealed = last;
        if sealed {
            fanout = tracking.seal(fanout.id).await?;
        }
    }
    Ok(Opened { fanout, groups })
}

/// Registers the tasks that are not registered yet. The run's meter and `invocations` follow: deployed, each registration is an
/// invocation of its function.
pub(super) async fn register(
    job: &Job,
    begun: &Begun,
    register: &Arc<Register>,
    invocations: &InvocationMeter,
) -> Result<(), Failure> {
    let opened = &begun.opened;
    let done = usize::try_from(opened.fanout.cursor).unwrap_or(usize::MAX);
    let items = expand(opened.fanout.id, &opened.groups);
    let rows = job.input.rows()?.zip(items).skip(done);
    let kind = &job.policy.policy.kind;
    let chunks = Chunks { rows: rows.map(|(row, item)| Ok((row?.content, item))), kind };
    let stored = stream::iter(chunks).map(|chunk: Result<Vec<TaskRequest>, Fault>| async {
        let tasks = chunk?;
        keep_behind(&begun.meter).await;
        let count = tasks.len() as u64;
        // Tasks are known by their items, so the request needs no id of its own.
        let began = Instant::now();
        let register = Arc::clone(register);
        // In a task of its own, for the threads to share the work; it ends with this future.
        let mut stored = JoinSet::new();
        stored.spawn(async move { register.register(tasks, "").await });
        match stored.join_next().await {
            Some(Ok(stored)) => stored?,
            _ => return Err(Failure::Internal("a registration ended before it was through".to_owned())),
        };
        invocations.add(began.elapsed());
        Ok::<u64, Failure>(count)
    });
    let mut stored = stored.buffered(REGISTRATIONS);
    let mut cursor = opened.fanout.cursor;
    while let Some(count) = stored.try_next().await? {
        cursor += count;
        begun.meter.registered.store(cursor, Ordering::Relaxed);
        begun.tracking.fanouts.advance(opened.fanout.id, cursor).await?;
    }
    Ok(())
}

/// Waits while far more tasks are registered than handled.
async fn keep_behind(meter: &Meter) {
    let until = Instant::now() + AHEAD_WAIT;
    while meter.ahead() >= AHEAD_MAX && Instant::now() < until {
        sleep(LOOK).await;
    }
}

/// Tasks in portions for one registration each.
struct Chunks<'a, R> {
    rows: R,
    kind: &'a str,
}

impl<R: Iterator<Item = Result<(serde_json::Value, ItemId), Fault>>> Iterator for Chunks<'_, R> {
    type Item = Result<Vec<TaskRequest>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut tasks = Vec::new();
        let mut bytes = 0;
        while tasks.len() < REGISTRATION_TASKS && bytes < REGISTRATION_BYTES {
            match self.rows.next() {
                None => break,
                Some(Err(fault)) => return Some(Err(fault)),
                Some(Ok((content, item))) => {
                    bytes += content.to_string().len();
                    tasks.push(TaskRequest { id: Some(TaskId::Item(item)), kind: self.kind.to_owned(), content });
                }
            }
        }
        (!tasks.is_empty()).then_some(Ok(tasks))
    }
}
