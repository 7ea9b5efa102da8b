//! Ids that follow from what they are for. Every worker that repeats a step derives the same id, and so finds what an earlier
//! try wrote, or writes it again under the same name. Records and messages hold these values: they never change, and a test
//! pins each.

use uuid::Uuid;

use super::TaskId;
use crate::clock::Timestamp;
use crate::lane::Lane;

/// Namespace of all derived ids (UUID version 5, RFC 9562), so that none collides with another program's.
const NAMESPACE: Uuid = Uuid::from_u128(0x6f5b_2f0e_93d1_5c0a_8d4e_fa9f_01d0_0001);

/// The same parts for the same purpose give the same id, on any machine.
fn derived(purpose: &str, parts: &[&[u8]]) -> Uuid {
    let mut name = Vec::with_capacity(64);
    name.extend_from_slice(purpose.as_bytes());
    for part in parts {
        // The length in front keeps ("ab", "c") apart from ("a", "bc").
        name.extend_from_slice(&(part.len() as u64).to_be_bytes());
        name.extend_from_slice(part);
    }
    Uuid::new_v5(&NAMESPACE, &name)
}

/// A position as it is hashed: in eight bytes, whatever the machine's word is.
fn position(at: usize) -> [u8; 8] {
    (at as u64).to_be_bytes()
}

/// The fan-out that is opened under an idempotency key: a repeated call finds the first one's.
#[must_use]
pub fn fanout(idempotency_key: &str) -> Uuid {
    derived("fanout", &[idempotency_key.as_bytes()])
}

/// The fan-out at a position of a request that opens several under one idempotency key.
#[must_use]
pub fn fanout_at(idempotency_key: &str, at: usize) -> Uuid {
    derived("fanout of several", &[idempotency_key.as_bytes(), &position(at)])
}

/// The seed of the groups that one call adds to a fan-out under an idempotency key: a repeated call names the same groups, and
/// adds none.
#[must_use]
pub(crate) fn addition(fanout: Uuid, idempotency_key: &str) -> Uuid {
    derived("add", &[fanout.as_bytes(), idempotency_key.as_bytes()])
}

/// The seed of the groups with the items of one page of a producer's partition: a worker that adds the page again names the
/// same groups, and adds nothing.
#[must_use]
pub(crate) fn page(fanout: Uuid, partition: u32, page: u64) -> Uuid {
    derived("page", &[fanout.as_bytes(), &partition.to_be_bytes(), &page.to_be_bytes()])
}

/// An item group, from the seed of the call that adds it and its position in that call. The seed of the groups that a fan-out is
/// opened with is the fan-out itself, so that they are known from its header.
#[must_use]
pub fn group(fanout: Uuid, seed: Uuid, at: usize) -> Uuid {
    derived("group", &[fanout.as_bytes(), seed.as_bytes(), &position(at)])
}

/// A task that came without an id, from its request's id (of a request under an idempotency key, or of a message) and its
/// position there: a repeated request is about the same tasks.
#[must_use]
pub fn task(request: &str, at: usize) -> TaskId {
    TaskId::Single(derived("task", &[request.as_bytes(), &position(at)]))
}

/// The record that notes what a request asked for. A hash, for an idempotency key may hold anything.
#[must_use]
pub fn request(request: &str) -> Uuid {
    derived("request", &[request.as_bytes()])
}

/// What a request asks for, from id, kind and content of each of its tasks in their order: an idempotency key that comes with
/// another digest was used for something else.
#[must_use]
pub(crate) fn request_digest<'a>(tasks: impl IntoIterator<Item = (TaskId, &'a str, &'a str)>) -> Uuid {
    let tasks: Vec<_> = tasks.into_iter().map(|(id, kind, content)| (id.to_string(), kind, content)).collect();
    let parts: Vec<&[u8]> =
        tasks.iter().flat_map(|(id, kind, content)| [id.as_bytes(), kind.as_bytes(), content.as_bytes()]).collect();
    derived("tasks", &parts)
}

/// What a request to open several fan-outs asks for, from the JSON of each in their order: an idempotency key that comes
/// with another digest was used for something else.
#[must_use]
pub fn fanouts_digest<'a>(fanouts: impl IntoIterator<Item = &'a str>) -> Uuid {
    derived("fanouts", &fanouts.into_iter().map(str::as_bytes).collect::<Vec<_>>())
}

/// What a stream asks for, from its lines in their order: for each the id, kind and content of its task or, if it has none, its
/// bytes. An idempotency key that comes with another digest was used for something else.
#[must_use]
pub(crate) fn stream_digest<'a>(lines: impl IntoIterator<Item = Result<(TaskId, &'a str, String), &'a [u8]>>) -> Uuid {
    let line = |line: Result<(TaskId, &'a str, String), &'a [u8]>| match line {
        Ok((id, kind, content)) => derived("line", &[id.to_string().as_bytes(), kind.as_bytes(), content.as_bytes()]),
        Err(line) => derived("line", &[line]),
    };
    let lines: Vec<[u8; 16]> = lines.into_iter().map(line).map(Uuid::into_bytes).collect();
    derived("stream", &lines.iter().map(<[u8; 16]>::as_slice).collect::<Vec<_>>())
}

/// Corrected contents of items, in the order of these: an idempotency key that comes with another digest was used for something
/// else.
#[must_use]
pub(crate) fn corrected_digest<'a>(contents: impl IntoIterator<Item = (String, &'a str)>) -> Uuid {
    let contents: Vec<_> = contents.into_iter().collect();
    let parts: Vec<&[u8]> = contents.iter().flat_map(|(item, content)| [item.as_bytes(), content.as_bytes()]).collect();
    derived("corrected", &parts)
}

/// What identifies the key of a policy, or that it has none.
#[must_use]
pub fn policy_key(key: Option<&str>) -> Uuid {
    derived("key of a policy", &key.map(str::as_bytes).into_iter().collect::<Vec<_>>())
}

/// The id of a task in a file that is registered under a name that the user chose, from the number of its row, its kind and its
/// content. Registering the file again under that name gives each task the same id.
#[must_use]
pub fn row_task(name: &str, row: u64, kind: &str, content: &str) -> TaskId {
    let parts: [&[u8]; 4] = [name.as_bytes(), &row.to_be_bytes(), kind.as_bytes(), content.as_bytes()];
    TaskId::Single(derived("row", &parts))
}

/// The record of a task's key. A later task with the same key and scope finds the task that has it.
#[must_use]
pub fn key(scope: &str, value: &str) -> Uuid {
    derived("key", &[scope.as_bytes(), value.as_bytes()])
}

/// The hash of a record's key by which a sparse index is spread over its shards: the shard stands in the record.
#[must_use]
pub(crate) fn shard_hash(key: &str) -> u128 {
    derived("shard", &[key.as_bytes()]).as_u128()
}

/// The workflow of the n-th chunk of tasks, from 1, when workflows of one lane are merged; `first` names the chunk before
/// those. A repeated delivery of the same messages sends the same ones on.
#[must_use]
pub fn workflow(first: Uuid, chunk: usize) -> Uuid {
    derived("workflow", &[first.as_bytes(), &position(chunk)])
}

/// The batch that a workflow stands for at one of its tries: a repeated delivery finds the lock it has taken.
#[must_use]
pub fn batch(workflow: Uuid, tries: u32) -> Uuid {
    derived("batch", &[workflow.as_bytes(), &tries.to_be_bytes()])
}

/// The batch that a formed batch hands its lane's lock to: a worker that repeats this recognizes it.
#[must_use]
pub fn next_batch(batch: Uuid) -> Uuid {
    derived("next", &[batch.as_bytes()])
}

/// The batch that leads a lane when this one leaves its flight while tasks wait: a repetition recognizes it.
#[must_use]
pub fn led_on(batch: Uuid) -> Uuid {
    derived("led on", &[batch.as_bytes()])
}

/// The task that is registered when a fan-out ends: a repetition finds it stored.
#[must_use]
pub fn then_task(fanout: Uuid) -> TaskId {
    TaskId::Single(derived("then", &[fanout.as_bytes()]))
}

/// The task that a task becomes when it is reset after its failure: a repetition finds it stored.
#[must_use]
pub fn reset_task(task: Uuid) -> TaskId {
    TaskId::Single(derived("reset", &[task.as_bytes()]))
}

/// The notice of a fan-out's end. A receiver recognizes a repeated notice by its id.
#[must_use]
pub fn end_notice(fanout: Uuid) -> Uuid {
    derived("fanout.completed", &[fanout.as_bytes()])
}

/// The notice of a percentage of a fan-out's items, in ten-thousandths. A receiver recognizes a repeated notice by its id.
#[must_use]
pub fn progress_notice(fanout: Uuid, percentage: u16) -> Uuid {
    derived("fanout.progress", &[fanout.as_bytes(), &percentage.to_be_bytes()])
}

/// A part of the notice of a batch's failures. A receiver recognizes a repeated notice by its id.
#[must_use]
pub(crate) fn failed_notice(batch: Uuid, part: usize) -> Uuid {
    derived("tasks.failed", &[batch.as_bytes(), &position(part)])
}

/// The notice of a kind's state since a change, from the change's number and time. A receiver recognizes a repeated notice
/// by its id.
#[must_use]
pub(crate) fn kind_notice(kind: &str, change: u64, since: Timestamp) -> Uuid {
    derived("kind", &[kind.as_bytes(), &change.to_be_bytes(), &since.0.to_be_bytes()])
}

/// A version of a policy, from its JSON: what a gate knows of a batch API holds for the version it was called by.
#[must_use]
pub(crate) fn policy_version(json: &str) -> Uuid {
    derived("policy", &[json.as_bytes()])
}

/// The group of messages about a lane's batches: of fixed size, and in characters that SQS takes, whatever the target is.
#[must_use]
pub fn message_group(lane: &Lane) -> Uuid {
    derived("message group", &[lane.to_string().as_bytes()])
}

/// A target as a gate remembers it: of one size, however long its text is.
#[must_use]
pub fn target(target: &str) -> Uuid {
    derived("target", &[target.as_bytes()])
}

/// The fingerprint of a file's tasks, from that of those before (nil at first) and the next one's content: a run that is taken
/// up again must be about the same ones.
#[must_use]
pub fn file_fingerprint(before: Uuid, content: &str) -> Uuid {
    derived("task of a file", &[before.as_bytes(), content.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_purposes_are_kept_apart() {
        assert_ne!(derived("x", &[b"ab", b"c"]), derived("x", &[b"a", b"bc"]));
        assert_ne!(derived("x", &[b"a"]), derived("y", &[b"a"]));
    }

    /// Ids are stored: another version makes the same ones.
    #[test]
    fn every_value_stays_what_it_is() {
        let [a, b] = [1, 2].map(|n| Uuid::from_u128(0x0189_0000_0000_7000_8000_0000_0000_0000 + n));
        let pin = |id: Uuid, value: &str| assert_eq!(id.to_string(), value);
        pin(fanout("k"), "6b43d4bc-b68e-5de1-a246-2aaebaaf8159");
        pin(fanout_at("k", 1), "8f3d11d2-a717-5933-95dd-ea601b0ee75e");
        pin(addition(a, "k"), "4dd06de9-9373-504f-8b4b-a0a41d6c16bb");
        pin(group(a, a, 0), "7394c2fb-d9af-5d0e-8be6-49d407409d19");
        pin(group(a, b, 1), "c8be679b-c501-54ec-8d04-b8bcc37e177d");
        pin(page(a, 1, 2), "7d6b15c9-dc3e-58fe-97c7-de3474111129");
        assert_eq!(task("http:k", 1).to_string(), "fc2719cc-3fdd-5d0f-9877-f4d5d0418fc0");
        pin(request("http:k"), "990e1850-f422-5f8a-9a25-c82dddb7449a");
        let tasks = [(a, r#"{"n":1}"#), (b, r#"{"n":2}"#)].map(|(id, content)| (TaskId::Single(id), "parcel", content));
        pin(request_digest(tasks), "56964117-4338-55cb-9f79-cfea2dc26ae5");
        // Such texts are pinned where `OpenRequest` is.
        pin(fanouts_digest([r#"{"items":1}"#, r#"{"items":2}"#]), "28603e53-a7a4-5b73-a9fc-0206e85827ce");
        let lines = [Ok((TaskId::Single(a), "parcel", r#"{"n":1}"#.to_owned())), Err(&b"x"[..])];
        pin(stream_digest(lines), "d1048d6c-f856-58a1-82bc-94689fed94c9");
        let row = row_task("k", 7, "parcel", r#"{"n":1}"#);
        assert_eq!(row.to_string(), "ed28d032-fe88-5033-bd2e-262ff8edad51");
        pin(key("parcel", "k"), "efd2e224-dfa4-58f7-a89f-1a0020389075");
        assert_eq!(shard_hash("parcel:0:117"), 29_547_995_451_461_952_509_886_967_692_757_326_194);
        pin(workflow(a, 1), "8a9a6555-276a-5372-8b28-e400f92b3b02");
        pin(batch(a, 1), "8c025572-e7f3-5ac6-bc5a-11a339bd2838");
        pin(next_batch(a), "1da67a1b-3bf3-50f9-8c9d-1eaaa5a01ebd");
        pin(led_on(a), "12d48b20-15f9-5505-8de8-529ebc1ffb6e");
        assert_eq!(then_task(a).to_string(), "1f86d086-4091-5dc7-b352-9bb00d2401ab");
        assert_eq!(reset_task(a).to_string(), "be818ec5-9a92-579f-b9b1-b8d3fe40f42f");
        pin(corrected_digest([("i".to_owned(), "1"), ("j".to_owned(), "2")]), "22b2f58b-b198-5542-990b-d32abca920c3");
        pin(end_notice(a), "951bc220-b330-5219-820a-f8e809f1a19d");
        pin(progress_notice(a, 2_500), "9e5ce6bc-88cb-5a02-a58e-dbf9e69bd579");
        pin(failed_notice(a, 1), "d77dd362-0f30-59ca-a4a6-cdc7edf30229");
        pin(kind_notice("parcel", 1, Timestamp(2)), "441ac84e-834c-5a37-8d6b-4f691bc3e65a");
        pin(policy_version(r#"{"kind":"parcel"}"#), "9d6ad059-da5a-5a0d-9ce4-d64e8608ac26");
        pin(policy_key(None), "56f15ba7-635f-55e6-a33e-3f6355e61023");
        pin(policy_key(Some("content.order")), "0ce72a2f-43d7-501a-859e-111e190024ff");
        pin(target("117"), "22a49203-5d43-5b7e-99ae-204f0571b11b");
        pin(message_group(&"parcel:0:117".parse().unwrap()), "931df37b-59ee-5662-b5b0-13f03e841ac0");
        pin(file_fingerprint(a, r#"{"n":1}"#), "f41f7295-acc3-5740-9a38-543d5bfec6d7");
    }
}
