//! The tools.

use crate::tool::{Parameter, Sort, Spec};

const fn optional(name: &'static str, sort: Sort, about: &'static str) -> Parameter {
    Parameter { name, about, sort, required: false }
}

const fn required(name: &'static str, sort: Sort, about: &'static str) -> Parameter {
    Parameter { name, about, sort, required: true }
}

const FANOUT: Parameter = required("id", Sort::Argument, "The id of the fan-out");
const KIND: Parameter = optional("kind", Sort::Text, "A kind of tasks");
const TARGET: Parameter = optional("target", Sort::Text, "A target of the kind");
const PARTITION: Parameter = optional("partition", Sort::Number, "A partition of the target");
const ALL: Parameter = optional("all", Sort::Flag, "Everything, instead of a kind");
const LIMIT: Parameter = optional("limit", Sort::Number, "The maximum number in the list");

/// All tools: first those that only read.
pub(crate) const TOOLS: &[Spec] = &[
    Spec {
        name: "check_stack",
        about: "What is wrong with the stack, and how to mend it: errors, stale work, dead letters, paused scopes",
        words: &["doctor"],
        parameters: &[],
        action: false,
    },
    Spec {
        name: "list_fanouts",
        about: "Fan-outs with their states and counts, newest first",
        words: &["list"],
        parameters: &[
            optional(
                "state",
                Sort::Text,
                "Only these states, separated by commas: open, sealed, completed, failed, cancelled, expired",
            ),
            optional("user_key", Sort::Text, "Only fan-outs with this user key"),
            optional("user_key_prefix", Sort::Text, "Only fan-outs whose user key begins with this"),
            optional("opened_after", Sort::Text, "Only those opened after this: `2h` (ago), or a date"),
            optional("opened_before", Sort::Text, "Only those opened before this"),
            optional("oldest", Sort::Flag, "The oldest first"),
            LIMIT,
        ],
        action: false,
    },
    Spec {
        name: "get_fanout",
        about: "A fan-out's state and counts",
        words: &["status"],
        parameters: &[FANOUT, optional("exact", Sort::Flag, "Also count in item groups that have not ended")],
        action: false,
    },
    Spec {
        name: "list_items",
        about: "The items of a fan-out in a state, as ids and ranges",
        words: &["items"],
        parameters: &[
            FANOUT,
            optional("state", Sort::Text, "pending (the default), failed, succeeded, missing or duplicate"),
        ],
        action: false,
    },
    Spec {
        name: "get_tasks",
        about: "Tasks: status, batch, content, and the error or the result. An item's id is its task's",
        words: &["tasks", "get"],
        parameters: &[required("ids", Sort::Arguments, "The ids of the tasks")],
        action: false,
    },
    Spec {
        name: "get_batches",
        about: "Batches: lane, status, attempts, the last error, and the outcome of each member",
        words: &["batches"],
        parameters: &[required("ids", Sort::Arguments, "The ids of the batches")],
        action: false,
    },
    Spec {
        name: "list_lanes",
        about: "Lanes that are busy or in which tasks wait: how many, since when, how many batches are in flight",
        words: &["lanes"],
        parameters: &[KIND, TARGET, PARTITION, optional("paused", Sort::Flag, "Only lanes that are paused"), LIMIT],
        action: false,
    },
    Spec {
        name: "list_switches",
        about: "Scopes that are paused, that drain, or that were just resumed",
        words: &["switches"],
        parameters: &[],
        action: false,
    },
    Spec {
        name: "list_policies",
        about: "The policies: how tasks of each kind are grouped, paced and called",
        words: &["policy", "list"],
        parameters: &[],
        action: false,
    },
    Spec {
        name: "list_dead_letters",
        about: "The number of dead letters of each step",
        words: &["redrive"],
        parameters: &[],
        action: false,
    },
    Spec {
        name: "pause",
        about: "Pauses a kind, a target, a lane or everything: no more calls of batch APIs begin",
        words: &["pause"],
        parameters: &[ALL, KIND, TARGET, PARTITION],
        action: true,
    },
    Spec {
        name: "resume",
        about: "Resumes a scope that is paused or that drains",
        words: &["resume"],
        parameters: &[ALL, KIND, TARGET, PARTITION],
        action: true,
    },
    Spec {
        name: "drain",
        about: "Forms the batches of a scope at once, without linger",
        words: &["drain"],
        parameters: &[ALL, KIND, TARGET, PARTITION],
        action: true,
    },
    Spec {
        name: "cancel_fanout",
        about: "Cancels a fan-out: no more calls begin for it. It cannot be undone",
        words: &["cancel"],
        parameters: &[FANOUT],
        action: true,
    },
    Spec {
        name: "reissue_fanout",
        about: "Calls the failed items of a fan-out that has ended again, as a new fan-out",
        words: &["reissue"],
        parameters: &[
            FANOUT,
            optional("max_batch", Sort::Number, "The maximum size of their batches: 1 isolates culprits"),
        ],
        action: true,
    },
    Spec {
        name: "reset_tasks",
        about: "Registers the work of failed tasks that are not items once more",
        words: &["reset"],
        parameters: &[optional("ids", Sort::Arguments, "The tasks; or else a kind"), KIND, TARGET, PARTITION],
        action: true,
    },
    Spec {
        name: "redrive",
        about: "Moves dead letters back to the queues of their steps",
        words: &["redrive"],
        parameters: &[
            optional("steps", Sort::Arguments, "The steps; or else all"),
            optional("all", Sort::Flag, "Those of all steps"),
        ],
        action: true,
    },
];
