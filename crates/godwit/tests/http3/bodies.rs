//! Bodies made for tests.

use crate::support::BoxError;
use bytes::Bytes;
use godwit::http3::{Body, Error};
use godwit_tls::Sha256;
use http::HeaderMap;
use http_body::Frame;
use http_body_util::BodyExt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as TaskContext, Poll};
use tokio::sync::mpsc;

pub const CHUNK: usize = 64 << 10;

/// The `at`th chunk of a long body: no two are the same.
fn chunk(at: usize, len: usize) -> Bytes {
    let mut data = vec![0; len];
    let mut state = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for piece in data.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        piece.copy_from_slice(&state.to_le_bytes()[..piece.len()]);
    }
    data.into()
}

/// A body of that many bytes, made as they are asked for, and trailers if there are any.
pub struct Long {
    len: usize,
    made: Arc<AtomicUsize>,
    pub trailers: Option<HeaderMap>,
}

impl Long {
    pub fn new(len: usize) -> Long {
        Long { len, made: Arc::default(), trailers: None }
    }

    /// Counts the bytes made.
    pub fn counter(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.made)
    }

    /// The hash of `len` bytes of such a body.
    pub fn hash(len: usize) -> String {
        let mut hash = Sha256::new();
        let mut at = 0;
        while at < len {
            hash.update(&chunk(at / CHUNK, CHUNK.min(len - at)));
            at += CHUNK;
        }
        hex(&hash.finish())
    }
}

impl http_body::Body for Long {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let made = self.made.load(Ordering::SeqCst);
        let next = CHUNK.min(self.len - made);
        if next == 0 {
            return Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
        }
        self.made.fetch_add(next, Ordering::SeqCst);
        Poll::Ready(Some(Ok(Frame::data(chunk(made / CHUNK, next)))))
    }
}

/// A body whose frames come from elsewhere.
pub struct Fed(mpsc::Receiver<Result<Bytes, BoxError>>);

pub fn fed() -> (mpsc::Sender<Result<Bytes, BoxError>>, Fed) {
    let (sender, receiver) = mpsc::channel(1);
    (sender, Fed(receiver))
}

impl http_body::Body for Fed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.poll_recv(cx).map_ok(Frame::data)
    }
}

/// What a body was.
pub struct Digest {
    pub len: usize,
    pub hash: String,
    pub trailers: Option<HeaderMap>,
}

/// Reads a body to its end.
pub async fn digest(mut body: Body) -> Result<Digest, Error> {
    let (mut hash, mut len, mut trailers) = (Sha256::new(), 0, None);
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) => {
                len += data.len();
                hash.update(&data);
            }
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    Ok(Digest { len, hash: hex(&hash.finish()), trailers })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
