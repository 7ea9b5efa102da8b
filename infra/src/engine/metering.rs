//! What an operation of the embedded DynamoDB costs: asks every request for its consumed capacity and reads it from the
//! answer, both as the engine's own types, so that no body is parsed twice.

use dynoxide::actions::batch_execute_statement::{BatchExecuteStatementRequest, BatchExecuteStatementResponse};
use dynoxide::actions::batch_get_item::{BatchGetItemRequest, BatchGetItemResponse};
use dynoxide::actions::batch_write_item::{BatchWriteItemRequest, BatchWriteItemResponse};
use dynoxide::actions::delete_item::{DeleteItemRequest, DeleteItemResponse};
use dynoxide::actions::execute_statement::{ExecuteStatementRequest, ExecuteStatementResponse};
use dynoxide::actions::get_item::{GetItemRequest, GetItemResponse};
use dynoxide::actions::put_item::{PutItemRequest, PutItemResponse};
use dynoxide::actions::query::{QueryRequest, QueryResponse};
use dynoxide::actions::scan::{ScanRequest, ScanResponse};
use dynoxide::actions::transact_get_items::{TransactGetItemsRequest, TransactGetItemsResponse};
use dynoxide::actions::transact_write_items::{TransactWriteItemsRequest, TransactWriteItemsResponse};
use dynoxide::actions::update_item::{UpdateItemRequest, UpdateItemResponse};
use dynoxide::errors::DynoxideError;
use dynoxide::types::{
    ConsumedCapacity, TRANSACTIONAL_CAPACITY_FACTOR, item_size, table_write_capacity_units, write_capacity_units,
};

use crate::usage::Units;

/// A request that consumes units.
pub(super) trait Metered {
    /// `ReturnConsumedCapacity`.
    fn capacity(&mut self) -> &mut Option<String>;

    /// `ReturnValuesOnConditionCheckFailure`, where a failed condition is charged by the size of the old item.
    fn old_item(&mut self) -> Option<&mut Option<String>> {
        None
    }

    /// Whether its units are read units.
    fn reads(&self) -> bool;

    /// Units charged if it is a transaction that is cancelled, which no answer reports.
    fn cancelled_units(&self) -> f64 {
        0.0
    }
}

/// An answer that reports the units consumed.
pub(super) trait Report {
    /// Visits what was consumed.
    fn consumed(&self, visit: &mut dyn FnMut(&ConsumedCapacity));

    /// Takes what was consumed out of the answer.
    fn forget(&mut self);

    /// Units of statements that failed in a batch that reports no capacity.
    fn unreported_units(&self) -> f64 {
        0.0
    }
}

/// How to charge a request once it is answered.
pub(super) struct Bill {
    reads: bool,
    hide_capacity: bool,
    hide_old_item: bool,
    cancelled_units: f64,
}

/// Makes a request report its cost, and remembers what its sender did not ask for.
pub(super) fn ask(request: &mut impl Metered) -> Bill {
    let (reads, cancelled_units) = (request.reads(), request.cancelled_units());
    let hide_capacity = set_unless_asked(request.capacity(), "TOTAL");
    let hide_old_item = request.old_item().is_some_and(|mode| set_unless_asked(mode, "ALL_OLD"));
    Bill { reads, hide_capacity, hide_old_item, cancelled_units }
}

/// A value that is neither absent nor `NONE` stays, right or wrong: the engine checks it.
fn set_unless_asked(mode: &mut Option<String>, value: &str) -> bool {
    let absent = mode.as_deref().is_none_or(|mode| mode == "NONE");
    if absent {
        *mode = Some(value.to_owned());
    }
    absent
}

impl Bill {
    /// The units of an answer, which afterwards is what its receiver asked for.
    pub(super) fn charge(&self, response: &mut impl Report) -> Units {
        let mut units = Units::default();
        response.consumed(&mut |capacity| match capacity.read_capacity_units {
            // A transaction repeated under its token is charged as a read.
            Some(read) => units.read += read,
            None if self.reads => units.read += capacity.capacity_units,
            None => units.write += capacity.capacity_units,
        });
        units.write += response.unreported_units();
        if self.hide_capacity {
            response.forget();
        }
        units
    }

    /// The units of a request that failed. A failed condition is charged by the size of the item it was checked on.
    pub(super) fn charge_failure(&self, error: &mut DynoxideError) -> Units {
        match error {
            DynoxideError::ConditionalCheckFailedException(_, item) => {
                let units = table_write_capacity_units(item.as_ref().map(item_size), None);
                if self.hide_old_item {
                    *item = None;
                }
                Units::write(units)
            }
            DynoxideError::DuplicateItemException(_) => Units::write(1.0),
            DynoxideError::TransactionCanceledException(..) if self.reads => Units::read(self.cancelled_units),
            DynoxideError::TransactionCanceledException(..) => Units::write(self.cancelled_units),
            _ => Units::default(),
        }
    }
}

/// Requests that differ only in whether they read, and in whether they may ask for the old item.
macro_rules! asks {
    ($reads:literal: $($request:ident)*) => {$(
        impl Metered for $request {
            fn capacity(&mut self) -> &mut Option<String> {
                &mut self.return_consumed_capacity
            }

            fn reads(&self) -> bool {
                $reads
            }
        }
    )*};
    (old item: $($request:ident)*) => {$(
        impl Metered for $request {
            fn capacity(&mut self) -> &mut Option<String> {
                &mut self.return_consumed_capacity
            }

            fn old_item(&mut self) -> Option<&mut Option<String>> {
                Some(&mut self.return_values_on_condition_check_failure)
            }

            fn reads(&self) -> bool {
                false
            }
        }
    )*};
}

/// Answers with one consumed capacity, or with a list of them by table.
macro_rules! reports {
    ($($response:ident)*) => {$(
        impl Report for $response {
            fn consumed(&self, visit: &mut dyn FnMut(&ConsumedCapacity)) {
                self.consumed_capacity.iter().for_each(visit);
            }

            fn forget(&mut self) {
                self.consumed_capacity = None;
            }
        }
    )*};
    (by table: $($response:ident)*) => {$(
        impl Report for $response {
            fn consumed(&self, visit: &mut dyn FnMut(&ConsumedCapacity)) {
                self.consumed_capacity.iter().flatten().for_each(visit);
            }

            fn forget(&mut self) {
                self.consumed_capacity = None;
            }
        }
    )*};
}

asks!(true: GetItemRequest BatchGetItemRequest QueryRequest ScanRequest);
asks!(false: BatchWriteItemRequest);
asks!(old item: PutItemRequest UpdateItemRequest DeleteItemRequest);

reports!(GetItemResponse PutItemResponse UpdateItemResponse DeleteItemResponse QueryResponse ScanResponse);
reports!(ExecuteStatementResponse);
reports!(by table: BatchGetItemResponse BatchWriteItemResponse TransactGetItemsResponse TransactWriteItemsResponse);

impl Metered for TransactGetItemsRequest {
    fn capacity(&mut self) -> &mut Option<String> {
        &mut self.return_consumed_capacity
    }

    fn reads(&self) -> bool {
        true
    }

    fn cancelled_units(&self) -> f64 {
        TRANSACTIONAL_CAPACITY_FACTOR * self.transact_items.len() as f64
    }
}

impl Metered for TransactWriteItemsRequest {
    fn capacity(&mut self) -> &mut Option<String> {
        &mut self.return_consumed_capacity
    }

    fn reads(&self) -> bool {
        false
    }

    /// Only the sizes of items put are known; the others are taken for items of one unit.
    fn cancelled_units(&self) -> f64 {
        let sizes = self.transact_items.iter().map(|item| item.put.as_ref().map_or(0, |put| item_size(&put.item)));
        TRANSACTIONAL_CAPACITY_FACTOR * sizes.map(write_capacity_units).sum::<f64>()
    }
}

impl Metered for ExecuteStatementRequest {
    fn capacity(&mut self) -> &mut Option<String> {
        &mut self.return_consumed_capacity
    }

    fn old_item(&mut self) -> Option<&mut Option<String>> {
        Some(&mut self.return_values_on_condition_check_failure)
    }

    fn reads(&self) -> bool {
        is_select(&self.statement)
    }
}

impl Metered for BatchExecuteStatementRequest {
    fn capacity(&mut self) -> &mut Option<String> {
        &mut self.return_consumed_capacity
    }

    /// Such a batch reads or writes, never both.
    fn reads(&self) -> bool {
        self.statements.first().is_some_and(|first| is_select(&first.statement))
    }
}

fn is_select(statement: &str) -> bool {
    statement.trim_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select"))
}

impl Report for BatchExecuteStatementResponse {
    fn consumed(&self, visit: &mut dyn FnMut(&ConsumedCapacity)) {
        self.consumed_capacity.iter().flatten().for_each(visit);
    }

    fn forget(&mut self) {
        self.consumed_capacity = None;
    }

    /// A batch in which no statement succeeded reports nothing; each failed condition costs what the item it was checked on
    /// takes to write, as far as the answer shows.
    fn unreported_units(&self) -> f64 {
        if self.consumed_capacity.is_some() {
            return 0.0;
        }
        let conditions = ["ConditionalCheckFailed", "DuplicateItem"];
        let errors = self.responses.iter().filter_map(|response| response.error.as_ref());
        let failed = errors.filter(|error| conditions.contains(&error.code.as_str()));
        failed.map(|error| table_write_capacity_units(error.item.as_ref().map(item_size), None)).sum()
    }
}
