//! Ctrl-C and SIGTERM: once to end in good order, twice to end at once.

use std::future::pending;
use std::process::ExitCode;
use std::time::Duration;

use tokio::sync::watch;

use crate::failure::Failure;

/// How long an end at once may take before the process is left as it is.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT, as Ctrl-C sends it.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Signal {
    /// 128 and the number of the signal, as shells have it.
    pub(crate) fn status(self) -> u8 {
        match self {
            Self::Interrupt => 128 + 2,
            Self::Terminate => 128 + 15,
        }
    }
}

/// Whether a signal asked this process to end.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<Vec<Signal>>);

impl Stop {
    /// Listens from now on; until now signals ended the process by themselves.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let (sender, received) = watch::channel(Vec::new());
        let mut signals = Signals::new().map_err(|error| Failure::io("signals cannot be waited for", error))?;
        tokio::spawn(async move {
            loop {
                let signal = signals.next().await;
                sender.send_modify(|signals| signals.push(signal));
                if sender.borrow().len() > 1 {
                    tokio::time::sleep(AT_ONCE).await;
                    std::process::exit(signal.status().into());
                }
            }
        });
        Ok(Self(received))
    }

    /// Waits until a signal asks.
    pub(crate) async fn asked(&self) -> Signal {
        self.times(1).await
    }

    /// Waits until a second signal asks: from then on the process waits for nothing.
    pub(crate) async fn asked_twice(&self) {
        self.times(2).await;
    }

    /// Works until it is done or a signal asks.
    pub(crate) async fn or<T>(&self, kept: bool, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        tokio::select! {
            result = work => result,
            by = self.asked() => Err(Failure::Stopped { kept, by }),
        }
    }

    async fn times(&self, times: usize) -> Signal {
        let mut received = self.0.clone();
        let asked = received.wait_for(|signals| signals.len() >= times).await.map(|signals| signals.last().copied());
        match asked {
            Ok(Some(signal)) => signal,
            // Signals are no longer listened for, so none will ask.
            _ => pending().await,
        }
    }
}

impl From<Signal> for ExitCode {
    fn from(signal: Signal) -> Self {
        Self::from(signal.status())
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> Signal {
        if tokio::signal::ctrl_c().await.is_err() {
            pending::<()>().await;
        }
        Signal::Interrupt
    }
}
