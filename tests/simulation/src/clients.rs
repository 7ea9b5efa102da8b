//! Users: they open, add, register, ack and seal, and repeat what got no answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fanfold::messages::AckRequest;
use fanfold::policy::Policy;
use fanfold::registering::Streamed;
use fanfold::tracking::TrackingError;
use fanfold_register::{RegisterError, Registered};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::cluster::{Cluster, Pool};
use crate::dice::Dice;
use crate::lock;
use crate::steps::Steps;
use crate::streams::Streaming;

/// How long a function behind the HTTP API may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The users of a run.
pub(crate) struct Clients {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) dice: Dice,
    /// Decides what readers look at, and when.
    pub(crate) readers: Dice,
    pub(crate) scenario: crate::scenario::Scenario,
    busy: AtomicUsize,
}

/// Whether a call that failed is worth repeating.
pub(crate) trait Passing {
    fn passing(&self) -> bool;

    /// Whether it failed because a kind has no policy, which may be stored again.
    fn wants_policy(&self) -> bool {
        false
    }
}

impl Passing for TrackingError {
    fn passing(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Queue(_))
    }
}

impl Passing for RegisterError {
    fn passing(&self) -> bool {
        match self {
            Self::Refused(_) | Self::KeyReused { .. } => false,
            Self::Tracking(error) => error.passing(),
            Self::Store(_) | Self::Queue(_) => true,
        }
    }

    fn wants_policy(&self) -> bool {
        matches!(self, Self::Refused(faults) if faults.iter().all(|fault| fault.problem.contains("there is no policy")))
    }
}

impl<E, R> Passing for aws_sdk_dynamodb::error::SdkError<E, R> {
    fn passing(&self) -> bool {
        true
    }
}

impl Passing for fanfold::aws::StoreError {
    fn passing(&self) -> bool {
        true
    }
}

impl Clients {
    pub(crate) fn new(cluster: &Arc<Cluster>, scenario: crate::scenario::Scenario) -> Arc<Self> {
        let dice = |purpose| Dice::new(cluster.sim.seed, purpose);
        let (dice, readers) = (dice("clients"), dice("readers"));
        Arc::new(Self { cluster: Arc::clone(cluster), dice, readers, scenario, busy: AtomicUsize::new(0) })
    }

    /// Users who still have something to do.
    pub(crate) fn busy(&self) -> usize {
        self.busy.load(Ordering::Relaxed)
    }

    /// Another user begins.
    pub(crate) fn spawn(self: &Arc<Self>, user: impl Future<Output = ()> + Send + 'static) {
        self.busy.fetch_add(1, Ordering::Relaxed);
        let clients = Arc::clone(self);
        tokio::spawn(async move {
            user.await;
            clients.busy.fetch_sub(1, Ordering::Relaxed);
        });
    }

    /// Makes a call until it is answered; none if it was refused, which is a violation.
    pub(crate) async fn until_done<T, E, F>(&self, step: &'static str, what: &str, call: F) -> Option<T>
    where
        T: Send + 'static,
        E: Passing + std::fmt::Display + Send + 'static,
        F: Fn(Arc<Steps>) -> BoxFuture<'static, Result<T, E>>,
    {
        self.until_tired(usize::MAX, step, what, call).await
    }

    /// Makes a call that is not repeated, whether or not it is answered.
    pub(crate) async fn once<T, E, F>(&self, step: &'static str, what: &str, call: F) -> Option<T>
    where
        T: Send + 'static,
        E: Passing + std::fmt::Display + Send + 'static,
        F: Fn(Arc<Steps>) -> BoxFuture<'static, Result<T, E>>,
    {
        self.until_tired(1, step, what, call).await
    }

    /// Makes a call until it is answered, but no more often than `tries`.
    pub(crate) async fn until_tired<T, E, F>(&self, tries: usize, step: &'static str, what: &str, call: F) -> Option<T>
    where
        T: Send + 'static,
        E: Passing + std::fmt::Display + Send + 'static,
        F: Fn(Arc<Steps>) -> BoxFuture<'static, Result<T, E>>,
    {
        let sim = &self.cluster.sim;
        for _ in 0..tries {
            sim.trace.line("user", what);
            let lease = self.cluster.lease(Pool::Steps, false).await?;
            match self.cluster.run(lease, step, TIMEOUT, &call).await {
                Some(Ok(answer)) => return Some(answer),
                Some(Err(error)) if !(error.passing() || error.wants_policy() && lock(&sim.model).ever_missing) => {
                    sim.violate(format!("{what}: {error}"));
                    return None;
                }
                Some(Err(error)) => sim.trace.line("user", &format!("{what} failed: {error}")),
                None => sim.trace.line("user", &format!("{what} got no answer")),
            }
            // Some are away for long, so that only a sweep goes on with what they began.
            let away = self.dice.chance(1_500);
            let (least, most) = if away { (400_000, 1_800_000) } else { (100, 60_000) };
            tokio::time::sleep(self.dice.skewed(Duration::from_millis(least), Duration::from_millis(most))).await;
        }
        None
    }

    /// Whether and when a call is made once more, although it was answered.
    pub(crate) fn repeat(&self) -> Option<Duration> {
        let sim = &self.cluster.sim;
        let again = self.dice.chance(sim.rate(sim.plan.message_again / 2));
        again.then(|| self.dice.skewed(Duration::from_millis(1), sim.plan.message_delay))
    }

    /// Registers tasks over HTTP.
    pub(crate) async fn register_http(
        &self,
        tries: usize,
        tasks: Vec<fanfold::messages::TaskRequest>,
        request: String,
    ) -> Option<Vec<Registered>> {
        let what = format!("POST /tasks {request} {}", names(&tasks));
        self.until_tired(tries, "register", &what, move |steps| {
            let (tasks, request) = (tasks.clone(), request.clone());
            async move { steps.all.register.register_once(tasks, &request).await }.boxed()
        })
        .await
    }

    /// Registers the tasks of a stream under its key. Returns what becomes of each line, or none if other lines were registered
    /// under the key.
    pub(crate) async fn stream_http(&self, tries: usize, lines: Vec<Streamed>, key: String) -> Option<Streaming> {
        let what = format!("POST /tasks {key} as a stream of {} lines", lines.len());
        self.until_tired(tries, "register", &what, move |steps| {
            let (lines, key) = (lines.clone(), key.clone());
            async move {
                match steps.all.register.register_stream(lines, Some(&key)).await {
                    Err(RegisterError::KeyReused { .. }) => Ok(None),
                    answer => answer.map(Some),
                }
            }
            .boxed()
        })
        .await
    }

    /// Registers tasks over HTTP, which may be refused; whether they were accepted.
    pub(crate) async fn may_register(
        &self,
        tasks: Vec<fanfold::messages::TaskRequest>,
        request: String,
    ) -> Option<bool> {
        let what = format!("POST /tasks {request} {}, perhaps to be refused", names(&tasks));
        self.until_done("register", &what, move |steps| {
            let (tasks, request) = (tasks.clone(), request.clone());
            async move {
                match steps.all.register.register_once(tasks, &request).await {
                    // An earlier try may have stored some before the policy was deleted.
                    Err(error) if error.wants_policy() => Err(error),
                    Err(RegisterError::Refused(_) | RegisterError::KeyReused { .. }) => Ok(false),
                    answer => answer.map(|_| true),
                }
            }
            .boxed()
        })
        .await
    }

    /// Acks items over HTTP.
    pub(crate) async fn ack_http(&self, request: AckRequest) -> Option<fanfold_ack::AckAnswer> {
        let count = request.items.len() + request.failed.len();
        self.until_done("ack http", &format!("POST /acks of {count}"), move |steps| {
            let request = request.clone();
            async move { steps.all.ack.apply(&request).await }.boxed()
        })
        .await
    }

    /// Stores a policy.
    pub(crate) async fn put_policy(&self, policy: Policy) {
        let what = format!("PUT /policies/{}", policy.kind);
        let put = self.until_done("api", &what, move |steps| {
            let policy = policy.clone();
            async move { steps.policies.put(&policy).await }.boxed()
        });
        put.await;
    }

    /// Puts a message in a queue that users may send to. What SQS took it does not lose.
    pub(crate) fn send(&self, queue: &str, body: String) -> String {
        let id = self.cluster.sim.post(queue, body.clone(), Duration::ZERO);
        self.cluster.sim.trace.line("user", &format!("sends {id} to {queue}: {body}"));
        id
    }

    /// The requests of these tasks were accepted.
    pub(crate) fn accept(&self, ids: &[fanfold::ids::TaskId]) {
        let mut model = lock(&self.cluster.sim.model);
        ids.iter().for_each(|id| model.accept(id));
    }
}

fn names(tasks: &[fanfold::messages::TaskRequest]) -> String {
    let name = |task: &fanfold::messages::TaskRequest| {
        let id = task.id.map_or_else(|| "-".to_owned(), |id| id.to_string());
        format!("{id} {} {}", task.kind, task.content)
    };
    tasks.iter().map(name).collect::<Vec<_>>().join(", ")
}
