//! Ctrl-C, SIGTERM and SIGHUP: once to end in good order, twice to end at once.

use std::future::pending;
use std::process::ExitCode;
use std::time::Duration;

use fanfold::limits::{ATTEMPT_MARGIN, BATCH_API_TIMEOUT_MAX};
use tokio::sync::watch;

use crate::failure::Failure;

/// How long an end at once may take before the process is left as it is.
const AT_ONCE: Duration = Duration::from_secs(2);

/// The longest that calls in progress take to end: the longest `timeout` of a policy, and what is written after a call.
pub(crate) const CALLS_END_WITHIN: Duration = BATCH_API_TIMEOUT_MAX.saturating_add(ATTEMPT_MARGIN);

/// How long they may take where nobody waits for them: whoever terminates a process, such as a container, kills it
/// after a while.
pub(crate) const TERMINATED_WITHIN: Duration = Duration::from_secs(15);

/// Who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT, as Ctrl-C sends it.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP, as a terminal sends it that is closed.
    Hangup,
}

impl Signal {
    /// 128 and the number of the signal, as shells have it.
    pub(crate) fn status(self) -> u8 {
        match self {
            Self::Interrupt => 128 + 2,
            Self::Terminate => 128 + 15,
            Self::Hangup => 128 + 1,
        }
    }

    /// How long calls in progress may take to end then. Who presses Ctrl-C can press it again.
    pub(crate) fn patience(self) -> Duration {
        match self {
            Self::Interrupt => CALLS_END_WITHIN,
            Self::Terminate | Self::Hangup => TERMINATED_WITHIN,
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
                // A terminal that is closed may send several, which are one wish. After Ctrl-C it is another one.
                let hung_up = matches!(sender.borrow().last(), Some(Signal::Hangup | Signal::Terminate));
                if signal == Signal::Hangup && hung_up {
                    continue;
                }
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

    /// Waits for the next signal; after two it does not wait.
    pub(crate) async fn asked_again(&self) {
        let so_far = self.0.borrow().len();
        self.times((so_far + 1).min(2)).await;
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
    /// None: it is ignored, and stays so.
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        // To listen would undo what `nohup` did.
        let hangup = if hangups_are_ignored() { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())?, hangup })
    }

    async fn next(&mut self) -> Signal {
        let Self { interrupt, terminate, hangup } = self;
        let hung_up = async {
            match hangup {
                Some(hangup) => hangup.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => Signal::Interrupt,
            _ = terminate.recv() => Signal::Terminate,
            _ = hung_up => Signal::Hangup,
        }
    }
}

/// Whether SIGHUP is ignored, as under `nohup`.
#[cfg(unix)]
fn hangups_are_ignored() -> bool {
    use std::io::IsTerminal;
    match std::fs::read_to_string("/proc/self/status") {
        Ok(status) => ignores_hangups(&status),
        // Where there is no such file it cannot be known. `nohup` leaves neither of these in the terminal.
        Err(_) => !std::io::stdout().is_terminal() && !std::io::stderr().is_terminal(),
    }
}

/// The same by the status that Linux shows of a process: the lowest bit of what it ignores is SIGHUP's.
#[cfg(unix)]
fn ignores_hangups(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    ignored.is_some_and(|bits| bits & 1 == 1)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_ctrl_c_a_call_may_take_as_long_as_a_policy_lets_it() {
        assert!(Signal::Interrupt.patience() > BATCH_API_TIMEOUT_MAX);
        for by in [Signal::Terminate, Signal::Hangup] {
            assert_eq!(by.patience(), TERMINATED_WITHIN, "{by:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn that_hangups_are_ignored_is_seen() {
        let ignored = |bits: &str| ignores_hangups(&format!("Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t{bits}\n"));
        assert!(ignored("0000000000001001") && ignored("0000000000000001"));
        assert!(!ignored("0000000000001000") && !ignored("") && !ignores_hangups(""));
    }

    #[tokio::test]
    async fn who_asked_is_asked_for_again_once() {
        use futures::FutureExt;
        let (sender, received) = watch::channel(Vec::new());
        let stop = Stop(received);
        let asks = |signal| sender.send_modify(|signals: &mut Vec<Signal>| signals.push(signal));
        assert!(stop.asked_again().now_or_never().is_none(), "nobody asked");
        asks(Signal::Interrupt);
        assert!(stop.asked_again().now_or_never().is_none(), "that was the first");
        asks(Signal::Terminate);
        assert!(stop.asked_again().now_or_never().is_some());
    }
}
