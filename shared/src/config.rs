//! Configuration: read from the environment once, at start; what is missing is named.

use std::sync::Arc;

use aws_sdk_dynamodb::Client as DynamoDb;
use aws_sdk_sqs::Client as Sqs;

use crate::aws::{Embedded, Queue, Table};
use crate::clock::World;
use crate::messages::HandleMessage;
use crate::retention::Retention;
use crate::store::places::Spread;

/// A variable is missing or cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It is not set, or empty.
    #[error("environment variable {0} is not set")]
    Missing(&'static str),
    /// Its value cannot be used.
    #[error("environment variable {variable} is `{value}`: {problem}")]
    Unusable {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// What every step is made from: clients, clock and randomness, and variables.
#[derive(Clone)]
pub struct Surroundings {
    /// DynamoDB.
    pub dynamodb: DynamoDb,
    /// SQS.
    pub sqs: Sqs,
    /// Clock and randomness.
    pub world: World,
    /// How places are spread over records. Tests have few per record.
    pub spread: Spread,
    embedded: Option<Arc<dyn Embedded>>,
    variables: Arc<Lookup>,
}

/// Looks a variable up.
type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").finish_non_exhaustive()
    }
}

impl Surroundings {
    /// Surroundings whose variables `variables` looks up.
    pub fn new(
        dynamodb: DynamoDb,
        sqs: Sqs,
        world: World,
        variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self { dynamodb, sqs, world, spread: Spread::default(), embedded: None, variables: Arc::new(variables) }
    }

    /// The same surroundings, whose tables an engine in this process has, which the client of DynamoDB reaches, too.
    #[must_use]
    pub fn served_by(self, embedded: Arc<dyn Embedded>) -> Self {
        Self { embedded: Some(embedded), ..self }
    }

    /// The value of a variable.
    ///
    /// # Errors
    /// It is not set, or empty.
    pub fn variable(&self, name: &'static str) -> Result<String, ConfigError> {
        self.optional(name).ok_or(ConfigError::Missing(name))
    }

    /// The value of a variable that may be empty, or not set.
    #[must_use]
    pub fn optional(&self, name: &'static str) -> Option<String> {
        (self.variables)(name).filter(|value| !value.is_empty())
    }

    /// The value of a variable whose name is not known before, if it is set and not empty.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<String> {
        (self.variables)(name).filter(|value| !value.is_empty())
    }

    /// The whole number that a variable gives.
    ///
    /// # Errors
    /// The variable is not set, or is no whole number.
    pub fn number(&self, name: &'static str) -> Result<u32, ConfigError> {
        let value = self.variable(name)?;
        value.parse().map_err(|_| {
            let problem = format!("a whole number from 0 to {} is expected", u32::MAX);
            ConfigError::Unusable { variable: name, value, problem }
        })
    }

    /// How long records are kept: by default as long as they must be.
    ///
    /// # Errors
    /// The variable is no number of days that is allowed.
    pub fn retention(&self) -> Result<Retention, ConfigError> {
        let variable = variables::RETENTION_DAYS;
        let Some(value) = self.optional(variable) else { return Ok(Retention::default()) };
        Retention::of_days(self.number(variable)?).map_err(|problem| ConfigError::Unusable { variable, value, problem })
    }

    /// Whether a variable is `yes`. One that is not set is not.
    #[must_use]
    pub fn says_yes(&self, name: &'static str) -> bool {
        self.optional(name).as_deref() == Some("yes")
    }

    /// The table that a variable names.
    ///
    /// # Errors
    /// The variable is not set, or empty.
    pub fn table(&self, variable: &'static str) -> Result<Table, ConfigError> {
        let table = Table::new(self.dynamodb.clone(), self.variable(variable)?, self.world.clone());
        Ok(table.served_by(self.embedded.clone()).keeping(self.retention()?))
    }

    /// The queue whose URL a variable gives.
    ///
    /// # Errors
    /// The variable is not set, or empty.
    pub fn queue<M: serde::Serialize>(&self, variable: &'static str) -> Result<Queue<M>, ConfigError> {
        Ok(Queue::new(self.sqs.clone(), self.variable(variable)?))
    }

    /// The queue of `handle`. Where queues are fair, a message's lane is its group.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn handle_queue(&self) -> Result<Queue<HandleMessage>, ConfigError> {
        Ok(self.queue(variables::HANDLE_QUEUE_URL)?.fair(self.says_yes(variables::FAIR_QUEUES)))
    }
}

/// The names of the variables.
pub mod variables {
    /// Table of tasks and keys.
    pub const TASKS_TABLE: &str = "TASKS_TABLE";
    /// Table of locks.
    pub const LOCKS_TABLE: &str = "LOCKS_TABLE";
    /// Table of batches.
    pub const BATCHES_TABLE: &str = "BATCHES_TABLE";
    /// Table of fan-outs.
    pub const FANOUTS_TABLE: &str = "FANOUTS_TABLE";
    /// Table of item groups.
    pub const GROUPS_TABLE: &str = "GROUPS_TABLE";
    /// Table of policies.
    pub const POLICIES_TABLE: &str = "POLICIES_TABLE";
    /// Queue of `register`.
    pub const REGISTER_QUEUE_URL: &str = "REGISTER_QUEUE_URL";
    /// Table of producers' partitions and pages.
    pub const PRODUCERS_TABLE: &str = "PRODUCERS_TABLE";
    /// Queue of `produce`.
    pub const PRODUCE_QUEUE_URL: &str = "PRODUCE_QUEUE_URL";
    /// Queue of `elect`.
    pub const ELECT_QUEUE_URL: &str = "ELECT_QUEUE_URL";
    /// Queue of `group`.
    pub const GROUP_QUEUE_URL: &str = "GROUP_QUEUE_URL";
    /// Queue of `handle`.
    pub const HANDLE_QUEUE_URL: &str = "HANDLE_QUEUE_URL";
    /// Queue of `ack`.
    pub const ACK_QUEUE_URL: &str = "ACK_QUEUE_URL";
    /// Queue of `notify`.
    pub const NOTIFY_QUEUE_URL: &str = "NOTIFY_QUEUE_URL";
    /// Messages that `register` could not process.
    pub const REGISTER_DEAD_LETTER_QUEUE_URL: &str = "REGISTER_DEAD_LETTER_QUEUE_URL";
    /// Messages that `produce` could not process.
    pub const PRODUCE_DEAD_LETTER_QUEUE_URL: &str = "PRODUCE_DEAD_LETTER_QUEUE_URL";
    /// Messages that `elect` could not process.
    pub const ELECT_DEAD_LETTER_QUEUE_URL: &str = "ELECT_DEAD_LETTER_QUEUE_URL";
    /// Messages that `group` could not process.
    pub const GROUP_DEAD_LETTER_QUEUE_URL: &str = "GROUP_DEAD_LETTER_QUEUE_URL";
    /// Messages that `handle` could not process.
    pub const HANDLE_DEAD_LETTER_QUEUE_URL: &str = "HANDLE_DEAD_LETTER_QUEUE_URL";
    /// Messages that `ack` could not process.
    pub const ACK_DEAD_LETTER_QUEUE_URL: &str = "ACK_DEAD_LETTER_QUEUE_URL";
    /// Queue of notices that were given up.
    pub const NOTIFY_DEAD_LETTER_QUEUE_URL: &str = "NOTIFY_DEAD_LETTER_QUEUE_URL";
    /// Invocations of `notify` at once.
    pub const NOTIFY_CONCURRENCY: &str = "NOTIFY_CONCURRENCY";
    /// Calls of batch APIs at once, over all kinds.
    pub const BATCH_API_CONCURRENCY: &str = "BATCH_API_CONCURRENCY";
    /// Days that records of ended work are kept.
    pub const RETENTION_DAYS: &str = "RETENTION_DAYS";
    /// What the ARNs of the queues of dev sessions begin with. Empty: there are no dev sessions.
    pub const DEV_QUEUES: &str = "DEV_QUEUES";
    /// Whether messages about batches have their lane as their group: `yes` or `no`.
    pub const FAIR_QUEUES: &str = "FAIR_QUEUES";
    /// Secrets that webhooks are signed with. May be empty: then they are not signed.
    pub const WEBHOOK_SECRETS: &str = "WEBHOOK_SECRETS";
    /// Queue that users read notices from.
    pub const NOTICES_QUEUE_URL: &str = "NOTICES_QUEUE_URL";
    /// The stack's name, if its functions write metrics.
    pub const METRICS_STACK: &str = "METRICS_STACK";
    /// The region, which Lambda sets.
    pub const REGION: &str = "AWS_REGION";
    /// Half of the credentials, which Lambda sets.
    pub const ACCESS_KEY_ID: &str = "AWS_ACCESS_KEY_ID";
    /// The other half.
    pub const SECRET_ACCESS_KEY: &str = "AWS_SECRET_ACCESS_KEY";
    /// The token of temporary credentials.
    pub const SESSION_TOKEN: &str = "AWS_SESSION_TOKEN";
    /// An endpoint in place of those of AWS, as SDKs know it.
    pub const ENDPOINT_URL: &str = "AWS_ENDPOINT_URL";
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let dynamodb = DynamoDb::from_conf(
            aws_sdk_dynamodb::Config::builder()
                .behavior_version(aws_sdk_dynamodb::config::BehaviorVersion::latest())
                .build(),
        );
        let sqs = Sqs::from_conf(
            aws_sdk_sqs::Config::builder().behavior_version(aws_sdk_sqs::config::BehaviorVersion::latest()).build(),
        );
        let variables = |name: &str| match name {
            variables::TASKS_TABLE => Some("tasks".to_owned()),
            variables::LOCKS_TABLE => Some(String::new()),
            _ => None,
        };
        let surroundings = Surroundings::new(dynamodb, sqs, World::system(), variables);
        assert_eq!(surroundings.table(variables::TASKS_TABLE).unwrap().name, "tasks");
        for name in [variables::LOCKS_TABLE, variables::BATCHES_TABLE] {
            let error = surroundings.table(name).unwrap_err();
            assert_eq!(error, ConfigError::Missing(name));
            assert_eq!(error.to_string(), format!("environment variable {name} is not set"));
        }
    }
}
