//! The client's ids and the server's are the same.

use fanfold::ids::{ItemGroup, ItemId};
use fanfold_client::{Item, expand_ranges};
use uuid::Uuid;

#[test]
fn an_id_is_one_for_the_client_if_it_is_one_for_the_server() {
    let id = "01890000-0000-7000-8000-000000000001";
    for text in [
        String::new(),
        id.to_owned(),
        format!("{id}:{id}"),
        format!("{id}:{id}:"),
        format!("{id}:{id}:0"),
        format!("{id}:{id}:7167"),
        format!("{id}:{id}:7168"),
        format!("{id}:{id}:99999"),
        format!("{id}:{id}:01"),
        format!("{id}:{id}:+1"),
        format!("{id}:{id}:-1"),
        format!("{id}:{id}:1-1"),
        format!("{id}:{id}:1-2"),
        format!("{id}:{id}:1:2"),
        format!("{id}:{}:1", id.replace('-', "")),
        format!("{}:{id}:1", id.replace("01890000", "0189ABCD")),
    ] {
        let (ours, theirs) = (text.parse::<Item>(), text.parse::<ItemId>());
        assert_eq!(ours.is_ok(), theirs.is_ok(), "{text}");
        if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
            assert_eq!((ours.to_string(), ours.index), (theirs.to_string(), theirs.index));
        }
    }
}

#[test]
fn groups_are_expanded_alike() {
    let (fanout, id) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let (our, their) = ([fanfold_client::ItemGroup { id, upto: 3 }], [ItemGroup { id, upto: 3 }]);
    let ours = fanfold_client::expand(fanout, &our).map(|item| item.to_string());
    let theirs = fanfold::ids::expand(fanout, &their).map(|item| item.to_string());
    assert_eq!(ours.collect::<Vec<_>>(), theirs.collect::<Vec<_>>());
}

#[test]
fn ranges_are_read() {
    let group = format!("{0}:{0}", Uuid::from_u128(1));
    let read =
        |tail: &str| expand_ranges(&format!("{group}:{tail}")).map(|items| items.map(|item| item.index).collect());
    assert_eq!(read("3-5"), Ok(vec![3, 4, 5]));
    assert_eq!(read("7167"), Ok(vec![7_167]));
    for bad in ["5-4", "5-7168", "5-", "-5", "1-2-3", "1-02"] {
        assert!(read(bad).is_err(), "{bad}");
    }
}
