//! Runs a Fanfold stack inside one process: an embedded DynamoDB and SQS, under the real AWS SDK or asked directly, a reader of the stack's
//! `template.yaml`, the pump that moves messages from queues to steps as Lambda's event sources do, and an HTTP server.
//!
//! ```no_run
//! # async fn example(step: std::sync::Arc<dyn fanfold::delivery::Step>) -> Result<(), Box<dyn std::error::Error>> {
//! use fanfold_local::{Engine, Pump, Template};
//!
//! let template = Template::parse(&std::fs::read_to_string("template.yaml")?)?;
//! let engine = Engine::memory()?;
//! engine.provision(&template).await?;
//! for source in template.event_sources() {
//!     let pump = Pump::start(engine.sqs(), source.clone(), step.clone());
//!     pump.stop().await;
//! }
//! # Ok(())
//! # }
//! ```

mod engine;
pub mod http;
pub mod prices;
mod provision;
mod pump;
mod template;
mod usage;

pub use engine::{Backlog, Engine, EngineError, Fate, Interceptor, Service, ServiceAnswer, ServiceRequest};
pub use pump::{Pump, PumpHandle};
pub use template::{
    EventSource, Function, Index, Key, Projection, QueueResource, Redrive, Route, Schedule, TableResource, Template,
    TemplateError,
};
pub use usage::{Invocations, OperationUsage, Usage};
