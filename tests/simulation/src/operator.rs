//! An operator who pauses lanes for a while: no one gets another leader meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::FutureExt;
use tokio::time::sleep;

use crate::clients::Clients;
use crate::dice::Dice;
use crate::faults::LATE_MAX;
use crate::lock;

/// Pauses lanes that had a batch, one after the other, until faults stop.
pub(crate) async fn pause_lanes(clients: Arc<Clients>) {
    let sim = Arc::clone(&clients.cluster.sim);
    let dice = Dice::new(sim.seed, "operator");
    let mut paused = BTreeSet::new();
    while !sim.healed() {
        sleep(dice.skewed(Duration::from_secs(1), Duration::from_secs(120))).await;
        let lanes: BTreeSet<String> = lock(&sim.model).lanes.values().cloned().collect();
        if lanes.is_empty() || sim.healed() {
            continue;
        }
        let lane = dice.pick(&lanes.into_iter().collect::<Vec<_>>());
        sim.count("lanes paused");
        update(&clients, &lane, "SET paused = :yes").await;
        sleep(dice.skewed(Duration::from_secs(1), Duration::from_secs(300))).await;
        update(&clients, &lane, "REMOVE paused").await;
        paused.insert(lane);
    }
    // A pause whose answer was lost may have been applied after its end.
    sleep(LATE_MAX).await;
    for lane in paused {
        update(&clients, &lane, "REMOVE paused").await;
    }
}

async fn update(clients: &Clients, lane: &str, expression: &'static str) {
    let what = format!("{expression} of {lane}");
    let call = clients.until_done("operator", &what, |steps| {
        let update = steps.dynamodb.update_item().table_name("LocksTable");
        let update = update.key("lane", AttributeValue::S(lane.to_owned())).update_expression(expression);
        let yes = expression.contains(":yes").then(|| AttributeValue::Bool(true));
        let values = yes.map(|yes| [(":yes".to_owned(), yes)].into());
        async move { update.set_expression_attribute_values(values).send().await.map(drop) }.boxed()
    });
    call.await;
}
