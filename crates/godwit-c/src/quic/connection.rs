//! A connection: whether it is there, and how it is closed.

use super::transport::Limits;
use crate::abi;
use crate::failure::Failure;
use crate::handles::{Kind, Thing};
use crate::introductions::Introductions;
use crate::subject::Subject;
use godwit::ApplicationCode;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Streams of the peer that the application may not have heard of.
pub(crate) const MOST_NEW_STREAMS: usize = 64;

/// A connection: none yet, one, or none ever.
type Progress = Option<Result<godwit::Connection, Failure>>;

/// A QUIC connection.
pub(crate) struct Connection {
    pub(crate) subject: Arc<Subject>,
    pub(super) runtime: Handle,
    pub(super) limits: Limits,
    /// Streams that the peer opens.
    pub(super) introductions: Introductions,
    progress: watch::Sender<Progress>,
}

impl Thing for Connection {
    const KIND: Kind = Kind::Connection;

    /// Closes it unheard.
    fn close(&self) {
        self.subject.close();
        self.shut_down(ApplicationCode::default(), b"");
    }

    fn set_tag(&self, tag: u64) -> bool {
        self.subject.set_tag(tag);
        true
    }
}

impl Connection {
    /// One that is still to come about.
    pub(super) fn pending(subject: Arc<Subject>, runtime: Handle, limits: Limits) -> Connection {
        Connection::new(subject, runtime, limits, None)
    }

    pub(super) fn open(
        subject: Arc<Subject>,
        runtime: Handle,
        limits: Limits,
        inner: godwit::Connection,
    ) -> Connection {
        Connection::new(subject, runtime, limits, Some(Ok(inner)))
    }

    fn new(subject: Arc<Subject>, runtime: Handle, limits: Limits, progress: Progress) -> Connection {
        let introductions = Introductions::new(MOST_NEW_STREAMS);
        Connection { subject, runtime, limits, introductions, progress: watch::Sender::new(progress) }
    }

    /// It has come about, or never will.
    pub(super) fn settle(&self, outcome: Result<godwit::Connection, Failure>) {
        self.progress.send_replace(Some(outcome));
    }

    /// The connection as such, if it is there.
    pub(super) fn inner(&self) -> Result<godwit::Connection, Failure> {
        let pending = || Failure::new(abi::ERROR_STATE, "not connected yet; wait for GODWIT_EVENT_CONNECTED");
        self.progress.borrow().clone().unwrap_or_else(|| Err(pending()))
    }

    /// The same, once it is there.
    pub(super) async fn opened(&self) -> Result<godwit::Connection, Failure> {
        let mut progress = self.progress.subscribe();
        // The sender is in this.
        let _ = progress.wait_for(Option::is_some).await;
        self.inner()
    }

    /// Whether streams may still be opened on it.
    pub(super) fn check_open(&self) -> Result<(), Failure> {
        let over = |text: String| Failure::new(abi::ERROR_CLOSED, format!("the connection is over: {text}"));
        match &*self.progress.borrow() {
            None => Ok(()),
            Some(Err(failure)) => Err(over(failure.text.clone())),
            Some(Ok(inner)) => inner.close_reason().map_or(Ok(()), |error| Err(over(error.to_string()))),
        }
    }

    /// Closes it, however far it has come.
    pub(super) fn shut_down(&self, code: ApplicationCode, reason: &[u8]) {
        let progress = self.progress.borrow().clone();
        match progress {
            Some(Ok(inner)) => inner.close(code, reason),
            Some(Err(_)) => {}
            None => self.fail(Failure::cancelled()),
        }
    }

    /// It never comes about; said once.
    pub(super) fn fail(&self, failure: Failure) {
        let first = self.progress.send_if_modified(|progress| {
            let first = progress.is_none();
            if first {
                *progress = Some(Err(failure.clone()));
            }
            first
        });
        if first {
            self.subject.tell(self.subject.event(abi::EVENT_CONNECTION_CLOSED).with_failure(&failure));
        }
    }
}
