//! The names of what comes with a call of a batch API: headers, or the attributes of a message. HTTP ignores their case.

/// Of a message: the batch.
pub const BATCH: &str = "Fanfold-Batch";

/// Which call of its batch a call is.
pub const ATTEMPT: &str = "Fanfold-Attempt";

/// The token of outcomes that come later. Who posts them sends it, too.
pub const TOKEN: &str = "Fanfold-Token";

/// The same for repetitions of a request; the API knows it, too.
pub const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
