//! What a service manager is told (systemd's `sd_notify(3)`), where one listens.
//!
//! It learns when the server is ready, when it reads its configuration again, when it finishes, and, if it asked for
//! that, every now and then that it is alive.

use sd_notify::NotifyState;

/// The server answers.
pub(super) fn ready(what: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(&format!("serving {what}"))]);
}

/// The configuration is being read again; [`ready`] ends that.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(_) => notify(&[NotifyState::Reloading]),
    }
}

/// What is under way is being finished.
pub(super) fn stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("finishing what is in progress")]);
}

/// Says regularly that the server is alive, if the service manager wants to know. The runtime that answers requests
/// says so: where it hangs, so does this.
pub(super) fn watch() {
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    tokio::spawn(async move {
        let mut tick = tokio::time::interval(limit / 2);
        loop {
            tick.tick().await;
            notify(&[NotifyState::Watchdog]);
        }
    });
}

/// Without a service manager this does nothing. One that cannot be reached cannot be told so either.
fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager cannot be told");
    }
}
