//! What a folder asks for: a policy, tasks, and perhaps a batch API to start.

mod find;
mod settings;
pub(crate) mod yaml;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fanfold::policy::{CompiledPolicy, Policy, Way};

use crate::failure::Failure;
use crate::fault::{Fault, Faults};
use crate::policies::located;
use crate::rows::Input;
use settings::Settings;

pub(crate) use find::extension;

/// Stands for the port of the batch API in policy.yaml, and in the command that starts it.
pub(crate) const PORT: &str = "${PORT}";

/// The ports that are tried. They are below those that systems give to connections, which could have such a port before the
/// server listens on it.
const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 12_000;

/// What a folder asks for.
#[derive(Debug)]
pub(crate) struct Job {
    /// The folder.
    pub(crate) folder: PathBuf,
    /// The file the policy was read from.
    pub(crate) policy_file: PathBuf,
    /// The policy, checked.
    pub(crate) policy: CompiledPolicy,
    /// The tasks.
    pub(crate) input: Input,
    /// How the batch API is started, if the runner is to do that.
    pub(crate) server: Option<StartedApi>,
}

/// A batch API to start.
#[derive(Debug)]
pub(crate) struct StartedApi {
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    /// Where it is to listen: the variable `PORT`.
    pub(crate) port: u16,
    /// How long it may take to listen there.
    pub(crate) patience: Duration,
}

impl Job {
    /// Reads a folder; rows are checked later, one by one. `input`: the file that is asked for; `held`: that of the run
    /// in the data folder.
    pub(crate) fn read(
        folder: &Path,
        input: Option<&Path>,
        held: Option<&Path>,
        limit: Option<u64>,
    ) -> Result<Self, Failure> {
        if !folder.is_dir() {
            return Err(Fault::new(
                folder.display(),
                "is not a folder; a folder with policy.yaml and tasks is expected",
            )
            .into());
        }
        let settings = Settings::read(folder)?;
        let patience = settings.patience();
        let server = match settings.start {
            None => None,
            Some(command) => {
                let port = free_port()?;
                let command = command.into_iter().map(|part| part.replace(PORT, &port.to_string())).collect();
                Some(StartedApi { command, port, patience })
            }
        };
        let policy_file = find::policy(folder)?;
        let policy = read_policy(&policy_file, server.as_ref())?;
        let input = find::input(folder, input, settings.input.as_deref(), held)?;
        Ok(Self { folder: folder.to_owned(), policy_file, policy, input: Input::new(input, limit)?, server })
    }

    /// A name for the run: the folder's.
    pub(crate) fn name(&self) -> String {
        let folder = self.folder.canonicalize().unwrap_or_else(|_| self.folder.clone());
        folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned()
    }
}

/// Reads and checks a policy. With a server, its port is put in place of `${PORT}`.
fn read_policy(file: &Path, server: Option<&StartedApi>) -> Result<CompiledPolicy, Failure> {
    let place = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| Fault::new(&place, error))?;
    let with_port = match server {
        Some(server) => text.replace(PORT, &server.port.to_string()),
        None => text.clone(),
    };
    let policy: Policy = yaml::read(file, &with_port, "a policy with at least `kind`, `target` and `batch_api`")?;
    if server.is_none() && matches!(&policy.batch_api.way, Way::Url(url) if url.contains(PORT)) {
        let problem =
            format!("`batch_api.url`: has {PORT}, but run.yaml has no `start`, the command that listens on this port");
        return Err(Fault::new(&place, problem).into());
    }
    CompiledPolicy::new(policy).map_err(|errors| {
        let mut faults = Faults::default();
        located(file, &text, errors.0).into_iter().for_each(|fault| faults.add(fault));
        Failure::Unusable(faults)
    })
}

/// A free port, another one each time. Each process begins elsewhere, so that those that start at once do not find the same.
/// Another program could still take it before the server does; then the server reports that.
fn free_port() -> Result<u16, Failure> {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let mut problem = std::io::Error::from(std::io::ErrorKind::AddrInUse);
    for _ in 0..PORTS {
        let number = std::process::id().wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed));
        let port = FIRST_PORT + (number % u32::from(PORTS)) as u16;
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return Ok(port),
            Err(error) => problem = error,
        }
    }
    Err(Failure::io("no port of 127.0.0.1 is free", problem))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ports_are_different_and_not_those_of_connections() {
        let ports: BTreeSet<u16> = (0..100).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.len(), 100);
        assert!(ports.iter().all(|port| (20_000..32_000).contains(port)), "{ports:?}");
    }
}
