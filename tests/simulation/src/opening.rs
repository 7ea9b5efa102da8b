//! The request that opens a fan-out. Some users make it once more, long after they were answered.

use std::sync::Arc;
use std::time::Duration;

use fanfold::ids::ItemGroup;
use fanfold::registering::RegisterError;
use fanfold::tracking::{OpenRequest, Opened};
use futures::FutureExt;
use futures::future::BoxFuture;
use uuid::Uuid;

use crate::clients::Clients;
use crate::dice::Dice;
use crate::steps::Steps;

/// What makes the request under its key, as often as it is called.
pub(crate) fn opening(
    request: OpenRequest,
    key: String,
) -> impl Fn(Arc<Steps>) -> BoxFuture<'static, Result<Opened, RegisterError>> + Clone + Send + Sync + 'static {
    move |steps: Arc<Steps>| {
        let (request, key) = (request.clone(), key.clone());
        async move {
            let opened = steps.producing.open(&steps.tracking, request, Some(&key)).await?;
            steps.registrar.register_opened(std::slice::from_ref(&opened.fanout)).await?;
            Ok::<_, RegisterError>(opened)
        }
        .boxed()
    }
}

/// Some open it again when items were added, or it has ended: the answer is the same as before.
pub(crate) fn open_late(
    clients: &Arc<Clients>,
    what: String,
    (id, groups): (Uuid, Vec<ItemGroup>),
    call: impl Fn(Arc<Steps>) -> BoxFuture<'static, Result<Opened, RegisterError>> + Send + Sync + 'static,
) {
    let sim = &clients.cluster.sim;
    // Dice of its own: everything else is drawn as it is without it.
    let dice = Dice::new(sim.seed, &format!("{what}, late"));
    if !dice.chance(3_000) {
        return;
    }
    let delay = dice.skewed(Duration::from_secs(1), sim.plan.until);
    let clients = Arc::clone(clients);
    clients.clone().spawn(async move {
        tokio::time::sleep(delay).await;
        let Some(opened) = clients.until_done("api", &what, call).await else { return };
        if opened.fanout.id != id || opened.groups != groups {
            clients.cluster.sim.violate(format!("{what} was answered otherwise than before: {opened:?}"));
        }
    });
}
