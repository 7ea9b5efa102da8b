//! The tools.

use crate::command::{LONG, TIME};
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

/// A tool that only reads.
const READS: Spec = Spec { name: "", about: "", words: &[], parameters: &[], one_of: &[], action: false, time: TIME };

/// A tool that changes something.
const CHANGES: Spec = Spec { action: true, ..READS };

/// All tools: first those that only read.
pub(crate) const TOOLS: &[Spec] = &[
    Spec {
        name: "check_stack",
        about: "What is wrong with the stack, and how to fix it: errors, stale work, dead letters, paused scopes",
        words: &["doctor"],
        ..READS
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
        ..READS
    },
    Spec {
        name: "get_fanout",
        about: "A fan-out's state and counts, and the partitions of its producer with their errors",
        words: &["status"],
        parameters: &[FANOUT, optional("exact", Sort::Flag, "Also count in item groups that have not ended")],
        ..READS
    },
    Spec {
        name: "list_items",
        about: "The items of a fan-out in a state, as ids and ranges",
        words: &["items"],
        parameters: &[
            FANOUT,
            optional("state", Sort::Text, "pending (the default), failed, succeeded, missing or duplicate"),
        ],
        ..READS
    },
    Spec {
        name: "get_results",
        about: "What became of a fan-out's tasks that succeeded or failed: outcome, error, code, and the result if it is kept",
        words: &["results"],
        parameters: &[FANOUT, LIMIT],
        time: LONG,
        ..READS
    },
    Spec {
        name: "get_tasks",
        about: "Tasks: status, batch, content, and the error or the result. An item's id is its task's",
        words: &["tasks", "get"],
        parameters: &[required("ids", Sort::Arguments, "The ids of the tasks")],
        ..READS
    },
    Spec {
        name: "get_batches",
        about: "Batches: lane, status, attempts, the last error, and the outcome of each member",
        words: &["batches"],
        parameters: &[required("ids", Sort::Arguments, "The ids of the batches")],
        ..READS
    },
    Spec {
        name: "list_lanes",
        about: "Lanes that are busy or in which tasks wait: how many, since when, and the batches in flight",
        words: &["lanes"],
        parameters: &[KIND, TARGET, PARTITION, optional("paused", Sort::Flag, "Only lanes that are paused"), LIMIT],
        ..READS
    },
    Spec {
        name: "list_switches",
        about: "Scopes that are paused, that drain, or that were just resumed",
        words: &["switches"],
        ..READS
    },
    Spec {
        name: "list_policies",
        about: "The policies: how tasks of each kind are grouped, paced and called",
        words: &["policy", "list"],
        ..READS
    },
    Spec { name: "list_dead_letters", about: "The number of dead letters of each step", words: &["redrive"], ..READS },
    Spec {
        name: "pause",
        about: "Pauses a kind, a target, a lane or everything: no more calls of batch APIs begin",
        words: &["pause"],
        parameters: &[ALL, KIND, TARGET, PARTITION],
        ..CHANGES
    },
    Spec {
        name: "resume",
        about: "Resumes a scope that is paused or that drains",
        words: &["resume"],
        parameters: &[ALL, KIND, TARGET, PARTITION],
        ..CHANGES
    },
    Spec {
        name: "resume_producer",
        about: "Resumes the failed partitions of a fan-out's producer where they stopped. A reissue has a producer, too",
        words: &["resume"],
        parameters: &[required("producer", Sort::Text, "The id of the fan-out")],
        ..CHANGES
    },
    Spec {
        name: "drain",
        about: "Forms the batches of a scope at once, without linger",
        words: &["drain"],
        parameters: &[ALL, KIND, TARGET, PARTITION],
        ..CHANGES
    },
    Spec {
        name: "cancel_fanout",
        about: "Cancels a fan-out: no more calls begin for it. It cannot be undone",
        words: &["cancel"],
        parameters: &[FANOUT],
        ..CHANGES
    },
    Spec {
        name: "reissue_fanout",
        about: "Calls the failed items of a fan-out that has ended again, as a new fan-out",
        words: &["reissue"],
        parameters: &[
            FANOUT,
            optional("missing", Sort::Flag, "Also items that were missing at its end, because it was cut short"),
            optional("max_batch", Sort::Number, "The maximum size of their batches: 1 isolates culprits"),
        ],
        ..CHANGES
    },
    Spec {
        name: "wake_fanout",
        about: "Sends the messages again that a fan-out's outstanding items may wait for. Returns what they wait for",
        words: &["reissue", "--outstanding"],
        parameters: &[FANOUT],
        time: LONG,
        ..CHANGES
    },
    Spec {
        name: "cancel_tasks",
        about: "Cancels tasks that no batch has claimed. It cannot be undone",
        words: &["tasks", "cancel"],
        parameters: &[
            optional("ids", Sort::Arguments, "The tasks; or else a kind: all that wait there"),
            KIND,
            TARGET,
            PARTITION,
        ],
        one_of: &["ids", "kind"],
        time: LONG,
        ..CHANGES
    },
    Spec {
        name: "reset_tasks",
        about: "Registers the work of failed tasks that are not items once more",
        words: &["reset"],
        parameters: &[optional("ids", Sort::Arguments, "The tasks; or else a kind"), KIND, TARGET, PARTITION],
        one_of: &["ids", "kind"],
        time: LONG,
        ..CHANGES
    },
    Spec {
        name: "redrive",
        about: "Moves dead letters back to the queues of their steps",
        words: &["redrive"],
        parameters: &[
            optional("steps", Sort::Arguments, "The steps: `list_dead_letters` names them; or else `all`"),
            optional("all", Sort::Flag, "Those of all steps"),
        ],
        one_of: &["steps", "all"],
        time: LONG,
        ..CHANGES
    },
];
