//! The embedded services: a DynamoDB on SQLite and an SQS in memory. The real SDK reaches them without a socket; steps in the same
//! process ask the tables what they ask most without the SDK.

mod client;
mod connector;
mod database;
mod delayed;
mod direct;
mod dynamodb;
mod embedded;
mod error;
mod expiry;
mod fault;
mod folder;
mod in_process;
mod metering;
pub(crate) mod place;
mod send;
mod sqs;
mod stamp;
mod statements;
mod tokens;

use std::path::Path;
use std::sync::Arc;

pub use error::EngineError;
pub use fault::{Fate, Interceptor, Service, ServiceAnswer, ServiceRequest};
pub use sqs::Backlog;

use crate::usage::{Meter, Usage};
use connector::{Connector, Services};
use fanfold::clock::World;
use fanfold::config::Surroundings;

/// An embedded DynamoDB and SQS. Clones are the same engine.
#[derive(Clone, Debug)]
pub struct Engine {
    services: Arc<Services>,
}

impl Engine {
    /// An engine that forgets everything when it is dropped.
    pub fn memory() -> Result<Self, EngineError> {
        Ok(Self::new(dynamodb::Tables::memory()?))
    }

    /// An engine whose tables are kept in a folder, which is made if it is not there and is this engine's alone until it
    /// and its clients are dropped. Queues are always in memory.
    pub fn open(folder: &Path) -> Result<Self, EngineError> {
        Ok(Self::new(dynamodb::Tables::open(folder)?))
    }

    fn new(dynamodb: dynamodb::Tables) -> Self {
        let services = Services { dynamodb, sqs: sqs::Queues::new(), meter: Meter::default(), interceptor: None };
        Self { services: Arc::new(services) }
    }

    /// The same tables and queues, with requests of the clients made from the engine returned seen by `interceptor`.
    /// Usage is counted from zero.
    #[must_use]
    pub fn with_interceptor(&self, interceptor: Arc<dyn Interceptor>) -> Self {
        let services = Services {
            dynamodb: self.services.dynamodb.clone(),
            sqs: self.services.sqs.clone(),
            meter: Meter::default(),
            interceptor: Some(interceptor),
        };
        Self { services: Arc::new(services) }
    }

    /// The same tables and queues. Usage is counted from zero.
    #[must_use]
    pub fn metered_apart(&self) -> Self {
        let services = Services {
            dynamodb: self.services.dynamodb.clone(),
            sqs: self.services.sqs.clone(),
            meter: Meter::default(),
            interceptor: self.services.interceptor.clone(),
        };
        Self { services: Arc::new(services) }
    }

    /// What a step in this process is made of, whose variables `variables` looks up. An interceptor sees all its requests.
    pub fn surroundings(
        &self,
        world: World,
        variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Surroundings {
        let surroundings = Surroundings::new(self.dynamodb(), self.sqs(), world, variables);
        match self.services.interceptor {
            None => surroundings.served_by(self.services.clone()),
            Some(_) => surroundings,
        }
    }

    /// A client of the embedded DynamoDB.
    pub fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        client::dynamodb(self.connector())
    }

    /// A client of the embedded SQS.
    pub fn sqs(&self) -> aws_sdk_sqs::Client {
        client::sqs(self.connector())
    }

    /// What the clients and the steps of this engine asked for so far. What the engine does for itself is not in it.
    pub fn usage(&self) -> Usage {
        self.services.meter.usage()
    }

    /// How many messages a queue holds. Not counted as usage.
    pub async fn backlog(&self, queue_url: &str) -> Result<Backlog, EngineError> {
        self.services.sqs.backlog(queue_url).await
    }

    /// When the next delayed message is due, of whatever queue. None is delayed if there is no such time.
    pub async fn next_due(&self) -> Option<tokio::time::Instant> {
        self.services.sqs.next_due().await
    }

    /// From now on messages of this queue are not delayed, and those that wait for the end of their delay come at once.
    pub async fn end_delays(&self, queue_url: &str) {
        self.services.sqs.end_delays(queue_url).await;
    }

    /// Deletes items whose time to live has passed, as DynamoDB does by itself within days. Returns how many.
    pub fn expire_items(&self) -> Result<usize, EngineError> {
        self.services.dynamodb.expire_items()
    }

    pub(crate) fn tables(&self) -> &dynamodb::Tables {
        &self.services.dynamodb
    }

    pub(crate) fn queues(&self) -> &sqs::Queues {
        &self.services.sqs
    }

    fn connector(&self) -> Connector {
        Connector(Arc::clone(&self.services))
    }
}
