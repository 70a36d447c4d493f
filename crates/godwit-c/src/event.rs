//! Something that happened, until the application takes it.
//!
//! What it says of its subject, its tag above all, is looked up when it is taken.

use crate::abi::{self, Plain};
use crate::about::About;
use crate::failure::Failure;
use crate::handles;
use crate::introductions::Place;
use crate::lease::{self, Lent};
use bytes::Bytes;
use http::HeaderMap;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// Something that happened.
pub(crate) struct Event {
    kind: u32,
    subject: Arc<About>,
    /// That of an operation, in place of the subject's.
    tag: Option<u64>,
    status: i32,
    flags: u32,
    code: u64,
    /// Where there are no bytes that have one.
    length: u64,
    lent: Option<Box<Lent>>,
    introduction: Option<Introduction>,
}

/// A handle that the application has not heard of. If it never does, it is closed.
struct Introduction {
    handle: Option<u64>,
    /// What it counts against.
    _place: Place,
}

impl Drop for Introduction {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            // It may be closed already: all of them are, when what they belong to is.
            let _ = handles::close(handle);
        }
    }
}

impl Event {
    pub(crate) fn new(kind: u32, subject: &Arc<About>) -> Event {
        let subject = Arc::clone(subject);
        let (status, flags, code, length) = (abi::OK, 0, 0, 0);
        Event { kind, subject, tag: None, status, flags, code, length, lent: None, introduction: None }
    }

    /// Its subject is new to the application, and has this place until that hears of it.
    pub(crate) fn introducing(mut self, place: Place) -> Event {
        self.introduction = Some(Introduction { handle: Some(self.subject.handle), _place: place });
        self
    }

    /// It reports on one operation.
    pub(crate) fn with_tag(self, tag: u64) -> Event {
        Event { tag: Some(tag), ..self }
    }

    pub(crate) fn with_code(self, code: u64) -> Event {
        Event { code, ..self }
    }

    pub(crate) fn with_flags(self, flags: u32) -> Event {
        Event { flags: self.flags | flags, ..self }
    }

    pub(crate) fn with_length(self, length: u64) -> Event {
        Event { length, ..self }
    }

    /// With bytes, and what they count against.
    pub(crate) fn with_bytes(self, bytes: Bytes, permit: Option<OwnedSemaphorePermit>) -> Event {
        self.lending(|lent| (lent.bytes, lent.permit) = (bytes, permit))
    }

    pub(crate) fn with_headers(self, headers: HeaderMap) -> Event {
        self.lending(|lent| lent.headers = headers)
    }

    pub(crate) fn with_failure(self, failure: &Failure) -> Event {
        let (error, status) = (failure.to_abi(), failure.status);
        Event { status, ..self }.lending(|lent| lent.error = Some(Box::new(error)))
    }

    pub(crate) fn lending(mut self, fill: impl FnOnce(&mut Lent)) -> Event {
        fill(self.lent.get_or_insert_default());
        self
    }

    /// Whether nobody wants to hear of it.
    pub(crate) fn is_moot(&self) -> bool {
        self.subject.is_closed()
    }

    /// As C sees it; what it lends is lent from now on.
    pub(crate) fn deliver(mut self) -> abi::Event {
        let mut event = abi::Event {
            kind: self.kind,
            tag: self.tag.unwrap_or_else(|| self.subject.tag()),
            handle: self.subject.handle,
            parent: self.subject.parent.as_ref().map_or(0, |parent| parent.handle),
            status: self.status,
            flags: self.flags,
            code: self.code,
            length: self.length,
            ..abi::Event::zeroed()
        };
        if let Some(mut lent) = self.lent.take() {
            lent.show(&mut event);
            event.lease = lease::begin(lent);
        }
        if let Some(introduction) = &mut self.introduction {
            introduction.handle = None;
        }
        event
    }
}
