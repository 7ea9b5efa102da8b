//! What the steps log, for tests of their messages.

use std::cell::RefCell;
use std::io::Write;
use std::sync::Once;

use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

thread_local! {
    static LINES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Appends to the buffer of the thread it is used on: a test's steps run on its own thread.
struct Here;

impl Write for Here {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LINES.with_borrow_mut(|lines| lines.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Begins to listen, and forgets what was logged on this thread so far.
pub fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let filter: Targets = "info,aws_smithy=off".parse().unwrap();
        let lines = fmt::layer().with_writer(|| Here).with_ansi(false).without_time();
        tracing_subscriber::registry().with(lines.with_filter(filter)).init();
    });
    logged();
}

/// What was logged on this thread since the last time.
pub fn logged() -> String {
    String::from_utf8(LINES.take()).unwrap()
}
