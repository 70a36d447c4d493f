//! A file's body, read in pieces.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tower_http::services::fs::ServeFileSystemResponseBody;

pub(super) struct Body {
    file: ServeFileSystemResponseBody,
    /// What is left of the length that was announced, if one was.
    left: Option<u64>,
}

impl Body {
    pub(super) fn file(file: ServeFileSystemResponseBody, left: Option<u64>) -> Body {
        Body { file, left }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        if this.left == Some(0) {
            return Poll::Ready(None);
        }
        let frame = limit(ready!(Pin::new(&mut this.file).poll_frame(cx)), &mut this.left);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0) || self.file.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(|| self.file.size_hint(), SizeHint::with_exact)
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
