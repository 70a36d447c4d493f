//! What can go wrong, as the client and as the log see it.

use crate::reason::Reason;
use godwit_text::without_manual;
use http::StatusCode;
use std::fmt;
use std::sync::Arc;

/// Kinds of [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The request cannot be passed on as it is (400).
    BadRequest,
    /// A method or protocol that is not proxied (405, 501).
    NotSupported,
    /// An expectation other than `100-continue` (417).
    Expectation,
    /// The request has been here before (508).
    Loop,
    /// The client gave up its request's body (400).
    ClientGone,
    /// Every upstream is known to be unhealthy (503).
    NoUpstream,
    /// As many connections as the upstream may have are in use (503).
    Busy,
    /// No connection could be made: refused, unreachable, no such name, TLS (502).
    Connect,
    /// No connection was made in time (504).
    ConnectTimeout,
    /// The upstream broke off, or what it said was not HTTP (502).
    Broken,
    /// The response's head did not come in time (504).
    ResponseTimeout,
    /// The response's body stopped coming; its status had been sent.
    BodyTimeout,
}

impl ProblemKind {
    fn status(self) -> StatusCode {
        match self {
            ProblemKind::BadRequest | ProblemKind::ClientGone => StatusCode::BAD_REQUEST,
            ProblemKind::NotSupported => StatusCode::NOT_IMPLEMENTED,
            ProblemKind::Expectation => StatusCode::EXPECTATION_FAILED,
            ProblemKind::Loop => StatusCode::LOOP_DETECTED,
            ProblemKind::NoUpstream | ProblemKind::Busy => StatusCode::SERVICE_UNAVAILABLE,
            ProblemKind::Connect | ProblemKind::Broken => StatusCode::BAD_GATEWAY,
            ProblemKind::ConnectTimeout | ProblemKind::ResponseTimeout | ProblemKind::BodyTimeout => {
                StatusCode::GATEWAY_TIMEOUT
            }
        }
    }
}

/// Why the proxy answered by itself, or why a response broke off: in the extensions of the response, or as
/// the error of its body. Details are for the log; clients are told the status alone.
#[derive(Debug, Clone)]
pub struct Problem {
    kind: ProblemKind,
    reason: Reason,
    status: StatusCode,
    upstream: Option<Arc<str>>,
    detail: String,
}

impl Problem {
    pub(crate) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        let reason = Reason::of_kind(kind);
        Problem { kind, reason, status: kind.status(), upstream: None, detail: detail.into() }
    }

    /// With a reason that says more than the kind.
    pub(crate) fn because(mut self, reason: Reason) -> Self {
        self.reason = reason;
        self
    }

    /// With a status other than the kind's own.
    pub(crate) fn status_of(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// With the address of the upstream that it is about.
    pub(crate) fn at(mut self, upstream: &Arc<str>) -> Self {
        self.upstream.get_or_insert_with(|| Arc::clone(upstream));
        self
    }

    /// What kind it is.
    pub fn kind(&self) -> ProblemKind {
        self.kind
    }

    /// Why, as one of a few words.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The status that the client is told.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The address of the upstream that it is about, if any.
    pub fn upstream(&self) -> Option<&str> {
        self.upstream.as_deref()
    }

    /// What happened, for the log.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.upstream {
            Some(upstream) => write!(f, "{upstream}: {}", self.detail),
            None => f.write_str(&self.detail),
        }
    }
}

impl std::error::Error for Problem {}

/// An error with all of its causes in one line.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = without_manual(&error.to_string()).to_owned();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        let cause_text = without_manual(&cause_text);
        if !text.contains(cause_text) {
            text.push_str(": ");
            text.push_str(cause_text);
        }
        next = cause.source();
    }
    text
}
