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
    File {
        file: Box<ServeFileSystemResponseBody>,
        /// What is left of the length that was announced, if one was.
        left: Option<u64>,
    },
}

impl Body {
    pub(super) fn empty() -> Body {
        Body::memory(Bytes::new())
    }

    pub(super) fn memory(bytes: Bytes) -> Body {
        Body { content: Content::Memory(Full::new(bytes)), entry: None }
    }

    /// A file of which `length` bytes are announced: it is read no further, and fails if it has fewer. Files
    /// may grow and shrink while they are sent.
    pub(super) fn file(body: ServeFileSystemResponseBody, length: Option<u64>) -> Body {
        Body { content: Content::File { file: Box::new(body), left: length }, entry: None }
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
            Content::File { left: Some(0), .. } => None,
            Content::File { file, left } => limit(ready!(Pin::new(file.as_mut()).poll_frame(cx)), left),
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
            Content::File { file, left } => *left == Some(0) || file.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Memory(full) => full.size_hint(),
            Content::File { left: Some(left), .. } => SizeHint::with_exact(*left),
            Content::File { file, left: None } => file.size_hint(),
        }
    }
}

/// Cuts what goes beyond the announced length; an end before it is an error.
fn limit(
    frame: Option<io::Result<Frame<Bytes>>>,
    left: &mut Option<u64>,
) -> Option<io::Result<Frame<Bytes>>> {
    let Some(left) = left else { return frame };
    match frame.map(|frame| frame.map(Frame::into_data)) {
        Some(Ok(Ok(mut data))) => {
            data.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= data.len() as u64;
            Some(Ok(Frame::data(data)))
        }
        Some(Ok(Err(trailers))) => Some(Ok(trailers)),
        Some(Err(error)) => Some(Err(error)),
        None if *left > 0 => {
            *left = 0;
            Some(Err(io::Error::other("the file became shorter while it was sent")))
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(lengths: &[usize], announced: u64) -> (Vec<usize>, bool) {
        let mut left = Some(announced);
        let mut taken = Vec::new();
        for length in lengths {
            if left == Some(0) {
                return (taken, true);
            }
            let frame = limit(Some(Ok(Frame::data(vec![0; *length].into()))), &mut left);
            taken.push(frame.unwrap().unwrap().into_data().unwrap().len());
        }
        let end = limit(None, &mut left);
        (taken, !matches!(end, Some(Err(_))))
    }

    #[test]
    fn no_more_and_no_less_is_sent_than_announced() {
        assert_eq!(pieces(&[5, 5], 10), (vec![5, 5], true));
        assert_eq!(pieces(&[5, 5, 5], 7), (vec![5, 2], true), "it grew");
        assert_eq!(pieces(&[5], 7), (vec![5], false), "it shrank");
        assert_eq!(pieces(&[], 0), (vec![], true));
    }
}
