//! `fanfold up`.

use fanfold::config::variables;
use fanfold::store::policies::Policies;
use serde_json::json;

use crate::args::UpArgs;
use crate::batch_api;
use crate::client::print;
use crate::counters::Counters;
use crate::failure::Failure;
use crate::folder::check_data;
use crate::guard::Callers;
use crate::policies;
use crate::say::say;
use crate::serve;
use crate::stack::EmbeddedStack;
use crate::stop::Stop;

/// Serves a stack until Ctrl-C, SIGTERM or SIGHUP.
pub(crate) async fn up(args: UpArgs) -> Result<(), Failure> {
    check_data(args.data.as_deref())?;
    let wanted = policies::read(&args.policy, true)?;
    let listener = serve::bind(&args.listen).await?;
    let counters = Counters::install();
    let stack = EmbeddedStack::open(args.data.as_deref()).await?;
    let stop = Stop::listen()?;
    let table = stack.surroundings("ApiFunction").table(variables::POLICIES_TABLE)?;
    let policies = Policies::new(table);
    for policy in &wanted {
        policies.put(policy.policy()).await?;
    }
    let folder = std::env::current_dir().map_err(|error| Failure::io("the current folder", error))?;
    let running =
        stack.start(batch_api::local(folder.clone()), &folder, None, serve::takes_commands(&listener)).await?;
    let server = serve::start(listener, &running, Callers::All, counters)?;
    if args.json {
        let url = format!("http://{}", server.address());
        print(&format!("{:#}", json!({"url": url, "dashboard": server.dashboard()})))?;
    } else {
        say(format_args!("Fanfold's HTTP API is at http://{}; stop it with Ctrl-C", server.address()));
        server.say_dashboard();
    }
    let by = stop.asked().await;
    drop(server);
    running.stop(&stop, by.patience()).await;
    Ok(())
}
