//! What a service manager is told (systemd's `sd_notify(3)`), where one listens.
//!
//! It learns when the server is ready, when it reads its configuration again, when another process takes its place,
//! when it finishes, and, if it asked for that, every now and then that it is alive.
//!
//! By default it listens only to the process that it takes for the main one (`NotifyAccess=main`). So it is the old
//! process that says which one has taken over, and nothing more after that.

use sd_notify::NotifyState;
use tokio::task::AbortHandle;

/// The server answers.
pub fn ready(what: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(&format!("serving {what}"))]);
}

/// Another process serves from now on.
pub fn handed_over(process: u32, what: &str) {
    let status = format!("serving {what}");
    notify(&[NotifyState::MainPid(process), NotifyState::Ready, NotifyState::Status(&status)]);
}

/// The configuration is being read again, or handed over; [`ready`] or [`handed_over`] ends that.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(_) => notify(&[NotifyState::Reloading]),
    }
}

/// What is under way is being finished.
pub fn stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("finishing what is in progress")]);
}

/// Says regularly that the server is alive, if the service manager wants to know. `answer` is ready when all threads that
/// answer requests have got to it: where one hangs, so does this.
///
/// What a new process says is heard once the old one has named it: one that is not counts.
pub fn watch<F>(answer: impl Fn() -> F + Send + 'static) -> Option<AbortHandle>
where
    F: Future<Output = ()> + Send,
{
    let limit = sd_notify::watchdog_enabled()?;
    let watch = tokio::spawn(async move {
        let mut tick = tokio::time::interval(limit / 3);
        loop {
            tick.tick().await;
            answer().await;
            notify(&[NotifyState::Watchdog]);
        }
    });
    Some(watch.abort_handle())
}

/// Without a service manager this does nothing. One that cannot be reached cannot be told so either.
fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager cannot be told");
    }
}
