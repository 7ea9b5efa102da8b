//! Client of Fanfold: opens fan-outs, waits for their ends, and acks the items that workers have done.

mod buffer;
mod client;
mod compact;
mod consumer;
mod control;
mod error;
mod http;
mod ids;
mod items;
mod list;
mod models;
mod policies;
mod query;
mod senders;
mod tasks;

pub use buffer::AckBuffer;
pub use client::{Fanfold, OpenFanout};
pub use compact::{AckMessage, Entry, Outcome};
pub use consumer::{BatchResponse, Consumer, ItemFailure, Message, SqsEvent, SqsRecord, item_in_body};
pub use control::{Redriven, ResetTasks, Scope};
pub use error::{AckError, ClientError, FieldProblem, Problem};
pub use ids::{GROUP_ITEMS_MAX, GroupName, Item, ItemGroup, NoItem, expand, expand_ranges};
pub use list::ListFanouts;
pub use models::{
    AckAnswer, AckedFanout, AddedItems, Count, CountAnswer, CountedFanout, Fanout, ItemsState, Mode, Refused,
    RefusedCount, State, TaskResult,
};
pub use senders::{AckSender, HttpAcks, Sent, SqsAcks};
pub use tasks::{KeyWithin, NewTask, Streamed};
