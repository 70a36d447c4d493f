//! A response's body: a page in memory or a file read in pieces, counted for the request log.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::Full;
use tower_http::services::fs::ServeFileSystemResponseBody;

use crate::serve::log::Entry;

/// Yields its bytes and writes the log line when it is dropped, so that a transfer cut short is logged too.
pub(crate) struct Body {
    content: Content,
    entry: Option<Entry>,
}

enum Content {
    Memory(Full<Bytes>),
    File(Box<ServeFileSystemResponseBody>),
}

impl Body {
    pub(super) fn empty() -> Body {
        Body::memory(Bytes::new())
    }

    pub(super) fn memory(bytes: Bytes) -> Body {
        Body { content: Content::Memory(Full::new(bytes)), entry: None }
    }

    pub(super) fn file(body: ServeFileSystemResponseBody) -> Body {
        Body { content: Content::File(Box::new(body)), entry: None }
    }

    /// Has the request logged when this body is done.
    pub(super) fn logged(mut self, entry: Option<Entry>, status: StatusCode) -> Body {
        self.entry = entry.map(|entry| entry.answered(status));
        self
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        let frame = match &mut this.content {
            Content::Memory(full) => {
                ready!(Pin::new(full).poll_frame(cx)).map(|frame| frame.map_err(|never| match never {}))
            }
            Content::File(file) => ready!(Pin::new(file.as_mut()).poll_frame(cx)),
        };
        if let (Some(Ok(frame)), Some(entry)) = (&frame, &mut this.entry)
            && let Some(data) = frame.data_ref()
        {
            entry.add(data.len());
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Memory(full) => full.is_end_stream(),
            Content::File(file) => file.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Memory(full) => full.size_hint(),
            Content::File(file) => file.size_hint(),
        }
    }
}
