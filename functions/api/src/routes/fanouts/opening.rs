//! How fan-outs are opened: all are checked, then opened, then the tasks that they are opened with are registered together.

use fanfold::ids::derived;
use fanfold::limits::{ACKS_AT_ONCE_MAX, FANOUTS_PER_REQUEST_MAX, TASKS_PER_REQUEST_MAX};
use fanfold::policy::{FieldError, PolicyError};
use fanfold::registering::{RegisterError, TaskFault};
use fanfold::store::fanouts::Fanout;
use fanfold::store::tasks::RequestNote;
use fanfold::tracking::{NewFanout, OpenRequest, Opened, TrackingError};
use fanfold_http::{Code, Problem};
use futures::{StreamExt, TryStreamExt, stream};

use super::then;
use crate::Api;

/// A fan-out that is to be opened.
type ToOpen = (NewFanout, OpenRequest);

/// Opens a fan-out.
pub(super) async fn open(api: &Api, request: ToOpen) -> Result<Opened, Problem> {
    check(api, &request).await?;
    check_tasks(api, std::slice::from_ref(&request), |_| String::new()).await?;
    let opened = begin(api, request).await?;
    register(api, std::slice::from_ref(&opened)).await?;
    Ok(opened)
}

/// Opens fan-outs, in their order. All are checked before the first is opened. `key`: the idempotency key, from which their
/// ids follow.
pub(super) async fn open_several(api: &Api, requests: Vec<ToOpen>, key: Option<&str>) -> Result<Vec<Opened>, Problem> {
    check_counts(&requests)?;
    let checks = requests
        .iter()
        .enumerate()
        .map(|(at, request)| async move { check(api, request).await.map_err(|problem| problem.within(&place(at))) });
    stream::iter(checks.collect::<Vec<_>>()).buffered(ACKS_AT_ONCE_MAX).try_collect::<()>().await?;
    check_tasks(api, &requests, |at| format!("{}.", place(at))).await?;
    if let Some(key) = key {
        note(api, &requests, key).await?;
    }
    let begins = requests
        .into_iter()
        .enumerate()
        .map(|(at, request)| async move { begin(api, request).await.map_err(|problem| problem.within(&place(at))) });
    let opened: Vec<Opened> = stream::iter(begins.collect::<Vec<_>>()).buffered(ACKS_AT_ONCE_MAX).try_collect().await?;
    register(api, &opened).await?;
    Ok(opened)
}

/// Notes what is asked for under an idempotency key, before the first fan-out is opened. Under a used key, others would be
/// opened beside those that are there.
async fn note(api: &Api, requests: &[ToOpen], key: &str) -> Result<(), Problem> {
    let texts = requests.iter().map(|(_, request)| serde_json::to_string(request)).collect::<Result<Vec<_>, _>>();
    let texts = texts.map_err(|error| Problem::internal(&error))?;
    let digest = derived::fanouts_digest(texts.iter().map(String::as_str));
    let note = RequestNote { digest, tasks: requests.len() as u64 };
    let first = api.tasks.note_request(&format!("fanouts:{key}"), note).await?;
    if first == note {
        return Ok(());
    }
    let differs = if first.tasks == note.tasks {
        "a fan-out of `fanouts` differs".to_owned()
    } else {
        format!("`fanouts` had {} fan-outs, now {}", first.tasks, note.tasks)
    };
    Err(TrackingError::KeyReused(differs).into())
}

/// Where a request stands among several.
fn place(at: usize) -> String {
    format!("fanouts[{at}]")
}

fn check_counts(requests: &[ToOpen]) -> Result<(), Problem> {
    let refuse = |problem: String| {
        let error = FieldError { field: "fanouts".to_owned(), problem };
        Err(Problem::fields(Code::OutOfRange, vec![error]))
    };
    let tasks: usize = requests.iter().filter_map(|(_, request)| request.tasks.as_ref()).map(Vec::len).sum();
    match requests.len() {
        fanouts if !(1..=FANOUTS_PER_REQUEST_MAX).contains(&fanouts) => {
            refuse(format!("has {fanouts} fan-outs, 1 to {FANOUTS_PER_REQUEST_MAX} are allowed"))
        }
        _ if tasks > TASKS_PER_REQUEST_MAX => {
            refuse(format!("have {tasks} tasks together, at most {TASKS_PER_REQUEST_MAX} are allowed"))
        }
        _ => Ok(()),
    }
}

/// Checks all but what policies say of its tasks.
async fn check(api: &Api, (new, request): &ToOpen) -> Result<(), Problem> {
    destination(request).map_err(|PolicyError(errors)| Problem::fields(Code::InvalidDestination, errors))?;
    if let Some(error) = request.producer.as_ref().and_then(|producer| producer.refused(api.allow_commands)) {
        return Err(Problem::fields(Code::InvalidProducer, vec![error]));
    }
    // Before what policies say, as it may have too much of something.
    request.check()?;
    if let Some(error) = then::refusal(api, request).await?
        && !api.tracking.opened_before(*new).await?
    {
        return Err(Problem::fields(Code::InvalidFollow, vec![error]));
    }
    Ok(api.tracking.check_open(request, *new).await?)
}

/// Whether the destination can take what is to be reported.
fn destination(request: &OpenRequest) -> Result<(), PolicyError> {
    request.notify.as_ref().map_or(Ok(()), |notify| notify.check("notify"))?;
    request.notify_on.as_ref().map_or(Ok(()), |on| on.check(request.notify.as_ref()))
}

/// Checks whether the policies of the tasks accept them. Those of a repetition were accepted when it came first. `path` is put before
/// the names of a request's fields.
async fn check_tasks(api: &Api, requests: &[ToOpen], path: impl Fn(usize) -> String) -> Result<(), Problem> {
    let all: Vec<usize> = (0..requests.len()).collect();
    let mut faults = refused(api, requests, &all).await?;
    if faults.is_empty() {
        return Ok(());
    }
    let before: Vec<_> = requests.iter().map(|(new, _)| api.tracking.opened_before(*new)).collect();
    let before: Vec<bool> = stream::iter(before).buffered(ACKS_AT_ONCE_MAX).try_collect().await?;
    // Without the tasks of these, as only so many faults are named.
    if before.contains(&true) {
        let new: Vec<usize> = all.into_iter().filter(|at| !before[*at]).collect();
        faults = refused(api, requests, &new).await?;
    }
    let error = |(at, fault): (usize, TaskFault)| {
        let field = format!("{}{}", path(at), fault.path());
        FieldError { field, problem: fault.problem }
    };
    let errors: Vec<FieldError> = faults.into_iter().map(error).collect();
    if errors.is_empty() { Ok(()) } else { Err(Problem::fields(Code::InvalidTasks, errors)) }
}

/// The first faults of the tasks of the requests at these positions, each with the position of its request.
async fn refused(api: &Api, requests: &[ToOpen], of: &[usize]) -> Result<Vec<(usize, TaskFault)>, Problem> {
    let (mut tasks, mut from) = (Vec::new(), Vec::new());
    for at in of {
        let requested = requests[*at].1.task_requests();
        from.extend((0..requested.len()).map(|index| (*at, index)));
        tasks.extend(requested);
    }
    if tasks.is_empty() {
        return Ok(Vec::new());
    }
    let faults = match api.registrar.check(tasks, "").await {
        Ok(_) => return Ok(Vec::new()),
        Err(RegisterError::Refused(faults)) => faults,
        Err(error) => return Err(error.into()),
    };
    let within = |fault: TaskFault| {
        let (at, index) = from.get(fault.index).copied().unwrap_or_default();
        (at, TaskFault { index, ..fault })
    };
    Ok(faults.into_iter().map(within).collect())
}

/// Writes the header, and what belongs to it.
async fn begin(api: &Api, (new, request): ToOpen) -> Result<Opened, Problem> {
    Ok(api.producing.open_checked(&api.tracking, request, new).await?)
}

/// Registers the tasks that fan-outs were opened with. If this worker dies, a repetition of the request or a sweep does so.
async fn register(api: &Api, opened: &[Opened]) -> Result<(), Problem> {
    let fanouts: Vec<Fanout> = opened.iter().map(|opened| opened.fanout.clone()).collect();
    Ok(api.registrar.register_opened(&fanouts).await?)
}
