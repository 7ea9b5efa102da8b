//! Ids, lanes and packed lists of ids: what can be read is written the same way again, and nothing else can be read.
#![no_main]

use fanfold::ids::{GroupId, ItemId, ItemRange, TaskId};
use fanfold::lane::Lane;
use fanfold::limits::GROUP_ITEMS_MAX;
use fanfold::members::Members;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        text_of_ids(text);
    }
    packed(bytes);
});

fn text_of_ids(text: &str) {
    if let Ok(id) = text.parse::<ItemId>() {
        assert_eq!(id.to_string(), text);
        assert!(u32::from(id.index) < GROUP_ITEMS_MAX);
        assert_eq!(text.parse(), Ok(TaskId::Item(id)));
    }
    if let Ok(id) = text.parse::<TaskId>() {
        assert_eq!(id.to_string(), text);
    }
    if let Ok(range) = text.parse::<ItemRange>() {
        assert_eq!(range.to_string(), text);
        assert!(range.first.index <= range.last && u32::from(range.last) < GROUP_ITEMS_MAX);
    }
    if let Ok(group) = text.parse::<GroupId>() {
        assert_eq!(group.to_string(), text);
    }
    if let Ok(lane) = text.parse::<Lane>() {
        assert_eq!(lane.to_string(), text);
    }
}

/// Every member has a text that can be read: it is the key of its record.
fn packed(bytes: &[u8]) {
    let Ok(members) = Members::unpack(bytes) else { return };
    assert_eq!(Members::unpack(&members.pack()).as_ref(), Ok(&members));
    for (slot, id) in members.ids().iter().enumerate() {
        assert_eq!(members.slot(id), Some(slot));
        assert_eq!(id.to_string().parse(), Ok(*id));
    }
}
