//! The identity of a message that was held: the embedded queue gives it a new id and a new time when it is handed over, so
//! the ones that its sender got travel in a message attribute and are put back when it is received.

use fanfold::clock::World;
use rustack_sqs_core::message::md5_of_message_attributes;
use rustack_sqs_model::input::{ReceiveMessageInput, SendMessageInput};
use rustack_sqs_model::types::{Message, MessageAttributeValue};

/// Attributes a message can bring along; with one more it is as many as the queue takes.
pub(super) const ATTRIBUTES_MAX: usize = 9;

/// No sender can use it: names with this beginning are reserved.
const NAME: &str = "AWS.fanfold.sent";

/// Names that stand for every attribute.
const EVERY: [&str; 2] = ["All", ".*"];

/// Gives a message its id and the time it was sent. Returns the id.
pub(super) fn put(message: &mut SendMessageInput) -> String {
    let world = World::system();
    let id = world.uuid().to_string();
    let value = MessageAttributeValue {
        data_type: "String".to_owned(),
        string_value: Some(format!("{id} {}", world.now().0)),
        binary_value: None,
    };
    message.message_attributes.insert(NAME.to_owned(), value);
    id
}

/// Makes a receive bring the stamps along.
pub(super) fn ask(input: &mut ReceiveMessageInput) {
    let names = &mut input.message_attribute_names;
    if !names.iter().any(|name| EVERY.contains(&name.as_str())) {
        names.push(NAME.to_owned());
    }
}

/// Takes the stamp, if there is one, off a received message.
pub(super) fn take(message: &mut Message) {
    let Some(stamp) = message.message_attributes.remove(NAME) else {
        return;
    };
    let stamp = stamp.string_value.unwrap_or_default();
    let (id, sent) = stamp.split_once(' ').unwrap_or_default();
    message.message_id = Some(id.to_owned());
    message.md5_of_message_attributes = md5_of_message_attributes(&message.message_attributes);
    if let Some(timestamp) = message.attributes.get_mut("SentTimestamp") {
        *timestamp = sent.to_owned();
    }
}
