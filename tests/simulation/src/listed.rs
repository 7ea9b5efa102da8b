//! Lists of fan-outs: what `GET /fanouts` answers, and what its index must say of each record.

use std::collections::BTreeSet;

use fanfold::store::fanouts::{Fanout, FanoutState, Fanouts, Listing, UserKeys};
use fanfold_local::Engine;
use serde_json::Value;
use uuid::Uuid;

use crate::check::{keys, table};
use crate::lock;
use crate::model::Model;
use crate::request::text;
use crate::sim::Sim;

/// The lists that users read.
pub(crate) fn paths(model: &Model) -> Vec<String> {
    let mut paths = vec!["/fanouts".to_owned(), "/fanouts?state=open,sealed&order=oldest".to_owned()];
    let first = model.fanouts.values().next();
    paths.extend(first.map(|fanout| format!("/fanouts?user_key={}", fanout.user_key)));
    paths
}

/// What is wrong with a page of a list. The index may lag, so some may be left out; but none is there twice, or in another order.
pub(crate) fn page(sim: &Sim, path: &str, body: &Value) -> Option<String> {
    let Some(fanouts) = body["fanouts"].as_array() else { return Some("is no list".to_owned()) };
    let mut ids = BTreeSet::new();
    let model = lock(&sim.model);
    for fanout in fanouts {
        let id: Uuid = fanout["id"].as_str().and_then(|id| id.parse().ok()).unwrap_or_default();
        let opened = model.fanouts.contains_key(&id) || model.estimated.contains_key(&id);
        if !ids.insert(id) || !opened {
            return Some(format!("lists {id} twice, or no user has opened it"));
        }
        let state = fanout["state"].as_str().unwrap_or_default();
        let key = path.strip_prefix("/fanouts?user_key=");
        if path.contains("state=open,sealed") && !["open", "sealed"].contains(&state)
            || key.is_some_and(|key| fanout["user_key"] != key)
        {
            return Some(format!("lists {id}, which was not asked for"));
        }
    }
    let times: Option<Vec<u64>> = fanouts.iter().map(|fanout| fanout["created_at"].as_u64()).collect();
    let Some(mut times) = times else { return Some("does not say when fan-outs were opened".to_owned()) };
    if !path.contains("order=oldest") {
        times.reverse();
    }
    (!times.is_sorted()).then(|| "is in another order".to_owned())
}

/// What is wrong with what the index says of a header: it is found by how it stands, and a sweep watches it until its end is decided and
/// no longer.
pub(crate) fn entry(now: &Value) -> Option<String> {
    let Ok(state) = text(now, "state").parse::<FanoutState>() else { return Some("has no state".to_owned()) };
    let (watched, due) = (!now["idle"].is_null(), !now["look_at"].is_null());
    let stands = match state {
        FanoutState::Open | FanoutState::Sealed if watched => "watched:",
        FanoutState::Open | FanoutState::Sealed => "new:",
        FanoutState::Completed => "completed:",
        FanoutState::Cancelled | FanoutState::Failed | FanoutState::Expired => "cut:",
    };
    let decided = !matches!(state, FanoutState::Open | FanoutState::Sealed);
    let right = text(now, "stands").starts_with(stands) && due != decided && !(decided && watched);
    (!right).then(|| "is not found as it stands".to_owned())
}

/// When everything is quiet, lists have all there are.
pub(crate) async fn complete(engine: &Engine, sim: &Sim) -> Result<(), String> {
    let fanouts = Fanouts::new(table(engine, sim, "FANOUTS_TABLE"));
    let ids: Vec<Uuid> =
        keys(engine, sim, "FANOUTS_TABLE", "id").await?.iter().filter_map(|id| id.parse().ok()).collect();
    let stored = fanouts.get_many(&ids).await.map_err(|error| error.to_string())?;
    let unfinished = [FanoutState::Open, FanoutState::Sealed];
    let in_states = |states: &[FanoutState]| Listing { states: states.to_vec(), ..Listing::default() };
    let mut listings = vec![in_states(&[]), in_states(&unfinished), in_states(&[FanoutState::Completed])];
    let keys: BTreeSet<&String> = stored.iter().filter_map(|it| it.user_key.as_ref()).collect();
    listings.extend(keys.into_iter().map(|key| {
        let user_keys = UserKeys::Exactly(key.clone());
        Listing { user_keys, ..Listing::default() }
    }));
    for listing in listings {
        let asked = |it: &&Fanout| {
            let named = |key: &String| it.user_key.as_ref() == Some(key);
            (listing.states.is_empty() || listing.states.contains(&it.state))
                && !matches!(&listing.user_keys, UserKeys::Exactly(key) if !named(key))
        };
        let expected: BTreeSet<Uuid> = stored.iter().filter(asked).map(|it| it.id).collect();
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let page = fanouts.list(&listing, after.as_deref(), 3).await.map_err(|error| error.to_string())?;
            listed.extend(page.fanouts.into_iter().map(|fanout| fanout.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        if listed.len() != expected.len() || listed.iter().copied().collect::<BTreeSet<_>>() != expected {
            sim.violate(format!("of the fan-outs {listing:?} there are {expected:?}, and {listed:?} are listed"));
        }
    }
    Ok(())
}
