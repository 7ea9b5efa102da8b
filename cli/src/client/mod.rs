//! The command as a client of a stack that runs elsewhere, over its HTTP API.

mod ack;
mod add;
mod aws_cli;
mod batches;
mod cancel;
mod connection;
mod credentials;
mod dashboard;
mod dev;
mod doctor;
mod filter;
mod items;
mod lanes;
mod left;
mod list;
mod many;
mod moment;
mod open;
mod plotted;
mod policy;
mod print;
mod producer;
mod progress;
mod redrive;
mod refusal;
mod reissue;
mod reset;
mod results;
mod scope;
mod seal;
mod status;
mod switch;
mod switches;
mod tasks;
mod view;
mod wait;
mod watch;

use std::process::ExitCode;

use clap::Subcommand;
use uuid::Uuid;

pub(crate) use self::print::print;
pub(crate) use self::refusal::Refusal;
pub(crate) use self::view::shown;
use crate::failure::Failure;

/// The commands that are clients of a stack, one per file.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    List(list::ListArgs),
    Status(status::StatusArgs),
    Wait(wait::WaitArgs),
    Items(items::ItemsArgs),
    Results(results::ResultsArgs),
    Open(open::OpenArgs),
    Add(add::AddArgs),
    Seal(seal::SealArgs),
    Ack(ack::AckArgs),
    Cancel(cancel::CancelArgs),
    Reissue(reissue::ReissueArgs),
    Reset(reset::ResetArgs),
    Redrive(redrive::RedriveArgs),
    Batches(batches::BatchesArgs),
    Lanes(lanes::LanesArgs),
    Switches(switches::SwitchesArgs),
    Doctor(doctor::DoctorArgs),
    Dashboard(dashboard::DashboardArgs),
    Dev(dev::DevArgs),
    Pause(switch::PauseArgs),
    Resume(switch::ResumeArgs),
    Drain(switch::DrainArgs),
    Tasks(tasks::TasksArgs),
    Policy(policy::PolicyArgs),
}

/// Runs one of them.
pub(crate) async fn run(command: ClientCommand) -> Result<ExitCode, Failure> {
    match command {
        ClientCommand::List(args) => list::run(args).await,
        ClientCommand::Status(args) => status::run(args).await,
        ClientCommand::Wait(args) => wait::run(args).await,
        ClientCommand::Items(args) => items::run(args).await,
        ClientCommand::Results(args) => results::run(args).await,
        ClientCommand::Open(args) => open::run(args).await,
        ClientCommand::Add(args) => add::run(args).await,
        ClientCommand::Seal(args) => seal::run(args).await,
        ClientCommand::Ack(args) => ack::run(args).await,
        ClientCommand::Cancel(args) => cancel::run(args).await,
        ClientCommand::Reissue(args) => reissue::run(args).await,
        ClientCommand::Reset(args) => reset::run(args).await,
        ClientCommand::Redrive(args) => redrive::run(args).await,
        ClientCommand::Batches(args) => batches::run(args).await,
        ClientCommand::Lanes(args) => lanes::run(args).await,
        ClientCommand::Switches(args) => switches::run(args).await,
        ClientCommand::Doctor(args) => doctor::run(args).await,
        ClientCommand::Dashboard(args) => dashboard::run(args).await,
        ClientCommand::Dev(args) => dev::run(args).await,
        ClientCommand::Pause(args) => switch::pause(args).await,
        ClientCommand::Resume(args) => switch::resume(args).await,
        ClientCommand::Drain(args) => switch::drain(args).await,
        ClientCommand::Tasks(args) => tasks::run(args).await,
        ClientCommand::Policy(args) => policy::run(args).await,
    }
}

/// Parses the id of a fan-out on the command line.
fn fanout_id(text: &str) -> Result<Uuid, String> {
    text.parse()
        .map_err(|_| "the id of a fan-out is expected, as `fanfold open` and `fanfold list` print it".to_owned())
}
