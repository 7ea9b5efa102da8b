//! What a run asked of DynamoDB and SQS, as AWS would meter it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::engine::Service;

/// Bytes of payload SQS bills as one request.
const SQS_CHUNK: usize = 64 * 1024;

/// Requests and request units since the engine was made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// DynamoDB write request units.
    pub write_units: f64,
    /// DynamoDB read request units.
    pub read_units: f64,
    /// Calls made to DynamoDB, retries included.
    pub dynamodb_requests: u64,
    /// Calls made to SQS, retries included.
    pub sqs_requests: u64,
    /// The requests that SQS bills for them: one per 64 KB of payload.
    pub sqs_billed: f64,
    /// The same by operation, named `dynamodb.PutItem`, `sqs.SendMessage` and so on.
    pub by_operation: BTreeMap<String, OperationUsage>,
}

/// The invocations of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Invocations {
    /// How many ended.
    pub count: u64,
    /// How long they took, one after the other, times the function's memory in GB.
    pub gb_seconds: f64,
}

/// Counts the invocations of a function.
#[derive(Debug)]
pub(crate) struct InvocationMeter {
    gigabytes: f64,
    counts: Mutex<Invocations>,
}

impl InvocationMeter {
    /// Counts from zero; `memory`: MB of the function.
    pub(crate) fn new(memory: u32) -> Self {
        Self { gigabytes: f64::from(memory) / 1_024.0, counts: Mutex::default() }
    }

    /// Counts an invocation that has ended.
    pub(crate) fn add(&self, took: Duration) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.count += 1;
        counts.gb_seconds += took.as_secs_f64() * self.gigabytes;
    }

    /// What was counted so far.
    pub(crate) fn counted(&self) -> Invocations {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The requests of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OperationUsage {
    /// Calls made.
    pub requests: u64,
    /// Read or write units for DynamoDB; for SQS the requests billed, one for each 64 KB of payload.
    pub units: f64,
}

/// Request units of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Units {
    pub(crate) read: f64,
    pub(crate) write: f64,
}

impl Units {
    pub(crate) fn read(units: f64) -> Self {
        Self { read: units, write: 0.0 }
    }

    pub(crate) fn write(units: f64) -> Self {
        Self { read: 0.0, write: units }
    }
}

/// Counts calls; one short lock for each.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    total: Units,
    requests: [u64; 2],
    by_operation: BTreeMap<(Service, &'static str), OperationUsage>,
}

impl Counts {
    fn units(&self, of: Service) -> f64 {
        let operations = self.by_operation.iter().filter(|((service, _), _)| *service == of);
        operations.map(|(_, usage)| usage.units).sum()
    }
}

impl Meter {
    pub(crate) fn dynamodb(&self, operation: &'static str, units: Units) {
        self.add(Service::DynamoDb, operation, units, units.read + units.write);
    }

    /// Counts a call whose larger payload, request or answer, was of this many bytes.
    pub(crate) fn sqs(&self, operation: &'static str, payload: usize) {
        let billed = payload.div_ceil(SQS_CHUNK).max(1);
        self.add(Service::Sqs, operation, Units::default(), billed as f64);
    }

    fn add(&self, service: Service, operation: &'static str, units: Units, own_units: f64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.total.read += units.read;
        counts.total.write += units.write;
        counts.requests[service as usize] += 1;
        let entry = counts.by_operation.entry((service, operation)).or_default();
        entry.requests += 1;
        entry.units += own_units;
    }

    pub(crate) fn usage(&self) -> Usage {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        Usage {
            write_units: counts.total.write,
            read_units: counts.total.read,
            dynamodb_requests: counts.requests[Service::DynamoDb as usize],
            sqs_requests: counts.requests[Service::Sqs as usize],
            sqs_billed: counts.units(Service::Sqs),
            by_operation: counts
                .by_operation
                .iter()
                .map(|((service, operation), usage)| (format!("{}.{operation}", service.prefix()), *usage))
                .collect(),
        }
    }
}
