//! A program and all that it started: on Unix a process group of its own, so that all of it can be ended.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};

/// Between two looks whether anything of it is left.
const LOOK: Duration = Duration::from_millis(20);

/// The signal that asks it to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// It may tidy up.
    Terminate,
    /// It may not.
    Kill,
}

/// A process group.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    pub(super) child: Child,
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
}

impl ProcessGroup {
    /// Starts a program with pipes for its standard streams.
    pub(super) fn spawn(command: &mut Command) -> std::io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let child = command.spawn()?;
        Ok(Self {
            // Its leader's process id names the group.
            #[cfg(unix)]
            id: child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw),
            child,
        })
    }

    /// Sends all of it a signal. What has ended already does not mind.
    #[cfg(unix)]
    pub(super) fn ask(&mut self, ask: Signal) {
        let signal = match ask {
            Signal::Terminate => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        };
        if let Some(id) = self.id {
            let _ = rustix::process::kill_process_group(id, signal);
        }
    }

    #[cfg(not(unix))]
    pub(super) fn ask(&mut self, _: Signal) {
        let _ = self.child.start_kill();
    }

    /// Waits until nothing of it is left.
    pub(super) async fn gone(&mut self) {
        let _ = self.child.wait().await;
        while self.exists() {
            tokio::time::sleep(LOOK).await;
        }
    }

    #[cfg(unix)]
    fn exists(&self) -> bool {
        self.id.is_some_and(|id| rustix::process::test_kill_process_group(id).is_ok())
    }

    #[cfg(not(unix))]
    fn exists(&self) -> bool {
        false
    }

    /// Nothing of it is left to be ended.
    pub(super) fn is_over(&mut self) {
        #[cfg(unix)]
        {
            self.id = None;
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.ask(Signal::Kill);
    }
}
