use proptest::prelude::*;

use super::*;

fn lane(text: &str) -> Lane {
    text.parse().unwrap()
}

fn kind() -> Scope {
    Scope::Kind("parcel".to_owned())
}

fn target(target: &str) -> Scope {
    Scope::Target { kind: "parcel".to_owned(), target: target.to_owned() }
}

#[test]
fn a_lane_is_paused_by_any_scope_that_it_is_within() {
    for scope in Scope::of(&lane("parcel:0:NY")) {
        let mut switches = Switches::default();
        switches.pause(&scope, Timestamp(5)).unwrap();
        assert!(switches.hold(&lane("parcel:0:NY")).paused, "{scope}");
        assert_eq!(switches.hold(&lane("parcel:1:NJ")).paused, scope.contains(&kind()), "{scope}");
        switches.resume(&scope, Timestamp(9));
        let hold = Hold { resumed_at: Some(Timestamp(9)), ..Hold::default() };
        assert_eq!(switches.hold(&lane("parcel:0:NY")), hold);
    }
}

#[test]
fn scopes_are_switched_on_their_own() {
    let mut switches = Switches::default();
    switches.pause(&kind(), Timestamp(1)).unwrap();
    switches.pause(&target("NY"), Timestamp(2)).unwrap();
    switches.resume(&kind(), Timestamp(3));
    assert!(switches.hold(&lane("parcel:0:NY")).paused && !switches.hold(&lane("parcel:0:NJ")).paused);
    let board = Switchboard { kinds: BTreeMap::from([("parcel".to_owned(), switches)]), ..Switchboard::default() };
    assert_eq!(board.pausing(&Scope::Lane(lane("parcel:3:NY"))).collect::<Vec<_>>(), [&target("NY")]);
    assert_eq!(board.pausing(&kind()).count(), 0);
}

#[test]
fn repeating_it_changes_nothing() {
    let mut switches = Switches::default();
    switches.resume(&kind(), Timestamp(1));
    assert_eq!(switches, Switches::default(), "it was not paused");
    switches.pause(&kind(), Timestamp(2)).unwrap();
    switches.pause(&kind(), Timestamp(3)).unwrap();
    assert_eq!(switches.get(&kind()).unwrap().since, Timestamp(2));
    switches.resume(&kind(), Timestamp(4));
    switches.resume(&kind(), Timestamp(5));
    assert_eq!(switches.get(&kind()), Some(Switch { state: SwitchState::Resumed, since: Timestamp(4) }));
}

#[test]
fn only_what_was_seen_is_taken_away() {
    let mut switches = Switches::default();
    switches.drain(&kind(), Timestamp(1)).unwrap();
    let seen = switches.get(&kind()).unwrap();
    switches.drain(&kind(), Timestamp(2)).unwrap();
    switches.finish(&kind(), seen);
    assert!(switches.hold(&lane("parcel:0:NY")).draining, "it was asked for again");
    let seen = switches.get(&kind()).unwrap();
    switches.finish(&kind(), seen);
    assert_eq!(switches, Switches::default());
    switches.pause(&kind(), Timestamp(3)).unwrap();
    let seen = switches.get(&kind()).unwrap();
    switches.finish(&kind(), seen);
    assert!(switches.hold(&lane("parcel:0:NY")).paused);
}

#[test]
fn there_is_room_for_so_many() {
    let mut switches = Switches::default();
    let long = |n: usize| target(&format!("{n:0>1024}"));
    for n in 0..SWITCHES_PER_KIND_MAX {
        switches.pause(&long(n), Timestamp(u64::MAX / 2)).unwrap();
    }
    assert!(switches.pause(&long(SWITCHES_PER_KIND_MAX), Timestamp(1)).is_err());
    switches.pause(&long(0), Timestamp(1)).unwrap();
    assert!(switches.encode().unwrap().len() < 340 * 1_024, "DynamoDB takes 400 KB, and a policy is there, too");
}

proptest! {
    #[test]
    fn what_is_written_is_read(rows in prop::collection::vec((0_usize..4, 0_u32..3, 0_u64..99, 0_usize..3), 0..9)) {
        let mut switches = Switches::default();
        for (scope, partition, since, what) in rows {
            let scope = Scope::of(&Lane { kind: "parcel".to_owned(), partition, target: format!("a:{since}") })[scope.max(1)].clone();
            let state = [SwitchState::Paused, SwitchState::Draining, SwitchState::Resumed][what];
            switches.0.insert(scope, Switch { state, since: Timestamp(since) });
        }
        let read = switches.encode().map(|text| Switches::decode(Some("parcel"), &text).unwrap());
        prop_assert_eq!(read.unwrap_or_default(), switches);
    }
}

#[test]
fn the_one_of_everything_is_read() {
    let mut switches = Switches::default();
    switches.pause(&Scope::All, Timestamp(7)).unwrap();
    assert_eq!(Switches::decode(None, &switches.encode().unwrap()).unwrap(), switches);
}
