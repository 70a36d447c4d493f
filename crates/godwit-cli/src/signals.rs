//! Somebody wants the program to end: Ctrl-C and, on Unix, a request to end, or the end of the terminal.

#[cfg(unix)]
pub(crate) struct Signals([tokio::signal::unix::Signal; 3]);

#[cfg(unix)]
impl Signals {
    /// From here on they no longer end the program by themselves. In a runtime.
    pub(crate) fn install() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ]))
    }

    /// The next of them.
    pub(crate) async fn next(&mut self) {
        let Signals([interrupt, terminate, hangup]) = self;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn install() -> std::io::Result<Signals> {
        Ok(Signals)
    }

    pub(crate) async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
