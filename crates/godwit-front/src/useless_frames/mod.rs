//! How many frames an HTTP/2 client may send that ask for nothing and bring nothing.
//!
//! The HTTP/2 library limits what it answers and what it keeps, not what it merely reads: window updates by one byte,
//! priorities, settings, pings and frames of unknown types without end keep a processor busy for everybody else. It does
//! not say which frames have come either, so their heads (RFC 9113 section 4.1) are looked at here on their way to it.
//!
//! Frames of requests and with bytes of bodies are free: other limits are about those. All others are taken out of a
//! budget that comes back with time, with requests and with the bodies that the client is sent, because for those it updates
//! windows. Libraries that measure the path answer a DATA frame by a window update and a PING, however short it is (grpc-go
//! does for each while no PING of its own is under way): so the heads of what is sent are looked at too, and each DATA frame
//! gives back some. Those of a few bytes do so now and then only: a client that raises a window byte by byte has as many
//! as it likes (CVE-2019-9511). What is sent besides, acknowledgements of PINGs and SETTINGS, gives nothing back.
//!
//! Whoever sends more than a few is not read from for a while after each, which costs it more than us, and is closed when the
//! budget is used up. HTTP/3 does the same by itself ([`godwit::http3::Config::useless_per_second`]).
//!
//! Requests that are given up cost what requests cost and ask for no answer (CVE-2023-44487). How many a connection may
//! give up in all is [counted elsewhere](super::client::abandoned); here it is read from slowly after some, so that it does
//! not begin anew as soon as it was closed.

mod heads;

use std::cell::LazyCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use godwit_base::{Exhausted, RefillingBudget, Time};
use godwit_body::{BoxError, Progress};
use godwit_text::instant_now;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::access::GaveUp;
use heads::{Head, Heads};

/// Frames that a client may send at once. What libraries send with a window of 16 MiB, each 4 KiB of it given back by two
/// frames, is less.
const AT_ONCE: u64 = 10_000;
/// So many of them are read as they come.
const UNPACED: u64 = 1000;
/// For each one beyond, nothing is read for so long: less comes than a hundredth of a processor can answer.
const PAUSE: Duration = Duration::from_millis(2);
/// What comes back of them in a second: half of what is read then.
const PER_SECOND: u64 = 250;
/// Requests that may be given up before their answer is complete, as fast as they come, and how many of these come back in
/// a second; one more does with each answer that is complete.
const RESETS_UNPACED: u64 = 64;
const RESETS_PER_SECOND: u64 = 16;
/// For each one beyond, nothing is read for so long: a few connections give up fewer than a tenth of a processor can begin.
const RESET_PAUSE: Duration = Duration::from_millis(10);
/// What comes back with a request: window update, priority, end of the body, reset.
const PER_REQUEST: u64 = 4;
/// Bytes of bodies sent for which one comes back. Libraries send two for 4 KiB at most.
const SENT_FOR_ONE: u64 = 1 << 10;
/// What comes back with a DATA frame that is sent: a window update, a PING and one to spare.
const PER_DATA_SENT: u64 = 3;
/// DATA frames with fewer bytes are tiny.
const TINY: u64 = 64;
/// Tiny DATA frames that give something back in a second, and at once.
const TINY_PER_SECOND: u64 = 500;
/// Bytes of payload that count as one frame more.
const PAYLOAD_OF_ONE: u64 = 64;

/// The most padding that a DATA frame can have, with the byte that says how much.
const MOST_PADDING: u64 = 256;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const CONTINUATION: u8 = 9;
const PADDED: u8 = 8;
const END_STREAM: u8 = 1;

/// A stream of HTTP/2 that fails when its client has sent too much that is useless.
pub(super) struct Judged<S> {
    stream: S,
    pace: Arc<Progress>,
    begun: Instant,
    frames: Frames,
    /// Nothing is read before it is over.
    pause: Option<Pin<Box<Sleep>>>,
    ended: EndedByUseless,
}

/// Whether such a stream has failed because of what its client sent. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct EndedByUseless(Arc<AtomicBool>);

impl EndedByUseless {
    /// Why the connection has ended in truth: the HTTP/2 library passes on the words of the stream's error only.
    pub(super) fn in_place_of(&self, error: BoxError) -> BoxError {
        if self.0.load(Ordering::Relaxed) { GaveUp::Useless.into() } else { error }
    }
}

impl<S> Judged<S> {
    /// From its first byte on. `pace` learns when the connection is to be closed without ceremony.
    pub(super) fn new(stream: S, pace: Arc<Progress>) -> Judged<S> {
        let (begun, frames, ended) = (instant_now(), Frames::new(), EndedByUseless::default());
        Judged { stream, pace, begun, frames, pause: None, ended }
    }

    /// For asking later.
    pub(super) fn ended(&self) -> EndedByUseless {
        self.ended.clone()
    }

    /// So many bytes of `buffers` were written.
    fn on_written<'a>(&mut self, written: usize, buffers: impl Iterator<Item = &'a [u8]>) {
        let begun = self.begun;
        let mut left = written;
        for buffer in buffers {
            let bytes = buffer.get(..left).unwrap_or(buffer);
            self.frames.on_written(|| Time::ZERO + begun.elapsed(), bytes);
            left = left.saturating_sub(bytes.len());
            if left == 0 {
                return;
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Judged<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let begun = self.begun;
        let read = buffer.filled().get(before..).unwrap_or_default();
        match self.frames.on_read(|| Time::ZERO + begun.elapsed(), read) {
            Ok(pause) => self.pause = pause.map(|pause| Box::pin(tokio::time::sleep(pause))),
            Err(Exhausted) => {
                // Whoever fails has read nothing.
                buffer.set_filled(before);
                self.pace.abort();
                self.ended.0.store(true, Ordering::Relaxed);
                return Poll::Ready(Err(io::Error::other(GaveUp::Useless)));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Judged<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, buffer))?;
        self.on_written(written, [buffer].into_iter());
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, buffers))?;
        self.on_written(written, buffers.iter().map(|buffer| &**buffer));
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// What has come and gone on one connection, and what may still come.
struct Frames {
    budget: RefillingBudget,
    /// Tiny DATA frames that may still give something back.
    tiny: RefillingBudget,
    /// Requests that may still be given up as fast as they come.
    resets: RefillingBudget,
    /// Bytes of bodies sent for which nothing has come back yet.
    sent: u64,
    read: Heads,
    written: Heads,
}

impl Frames {
    fn new() -> Frames {
        let budget = RefillingBudget::new(AT_ONCE, PER_SECOND);
        let tiny = RefillingBudget::new(TINY_PER_SECOND, TINY_PER_SECOND);
        let resets = RefillingBudget::new(RESETS_UNPACED, RESETS_PER_SECOND);
        Frames { budget, tiny, resets, sent: 0, read: Heads::of_client(), written: Heads::of_server() }
    }

    /// The clock is asked once if a tiny frame has begun, and else not.
    fn on_written(&mut self, clock: impl FnOnce() -> Time, mut bytes: &[u8]) {
        let now = LazyCell::new(clock);
        while let Some(Head { kind, flags, length }) = self.written.next(&mut bytes) {
            if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
                self.resets.refund(1);
            }
            if kind != DATA || length == 0 {
                continue;
            }
            let sent = self.sent.saturating_add(length);
            self.budget.refund(sent / SENT_FOR_ONE);
            self.sent = sent % SENT_FOR_ONE;
            if length >= TINY || self.tiny.charge(*now, 1).is_ok() {
                self.budget.refund(PER_DATA_SENT);
            }
        }
    }

    /// For how long nothing is to be read now; fails once there has been too much. The clock is asked once if there is a
    /// frame to be charged for, and else not.
    fn on_read(
        &mut self,
        clock: impl FnOnce() -> Time,
        mut bytes: &[u8],
    ) -> Result<Option<Duration>, Exhausted> {
        let now = LazyCell::new(clock);
        let (mut charged, mut given_up) = (0_u64, 0_u32);
        while let Some(head) = self.read.next(&mut bytes) {
            charged = charged.saturating_add(self.on_head(&now, head)?);
            if head.kind == RST_STREAM && self.resets.charge(*now, 1).is_err() {
                given_up = given_up.saturating_add(1);
            }
        }
        let mut pause = RESET_PAUSE.saturating_mul(given_up);
        let is_paced = charged > 0 && self.budget.remaining(*now) < AT_ONCE.saturating_sub(UNPACED);
        if is_paced {
            pause = pause.saturating_add(PAUSE.saturating_mul(u32::try_from(charged).unwrap_or(u32::MAX)));
        }
        Ok((!pause.is_zero()).then_some(pause))
    }

    /// What a frame costs that has come.
    fn on_head(&mut self, now: &LazyCell<Time, impl FnOnce() -> Time>, head: Head) -> Result<u64, Exhausted> {
        let Head { kind, flags, length } = head;
        let may_be_padding = flags & PADDED != 0 && length <= MOST_PADDING;
        match kind {
            HEADERS => self.budget.refund(PER_REQUEST),
            CONTINUATION => {}
            DATA if length > 0 && !may_be_padding => {}
            _ => {
                let cost = 1 + length / PAYLOAD_OF_ONE;
                self.budget.charge(**now, cost)?;
                return Ok(cost);
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::heads::{HEAD, PREFACE};
    use super::*;

    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    const WINDOW_UPDATE: u8 = 8;
    const UNKNOWN: u8 = 0xbb;

    fn frame(kind: u8, flags: u8, length: usize) -> Vec<u8> {
        let [.., high, middle, low] = length.to_be_bytes();
        let mut frame = vec![high, middle, low, kind, flags, 0, 0, 0, 1];
        frame.resize(HEAD + length, 1);
        frame
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn begun() -> Frames {
        let mut frames = Frames::new();
        frames.on_read(|| at(0), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        frames
    }

    /// How many frames of a kind a client may send at once; `None`: as many as it likes.
    fn most(frame: &[u8]) -> Option<u64> {
        let mut frames = begun();
        (0..2 * AT_ONCE).find(|_| frames.on_read(|| at(0), frame).is_err())
    }

    #[test]
    fn frames_that_serve_nothing_are_counted() {
        let padding = frame(DATA, PADDED, 256);
        for useless in
            [frame(WINDOW_UPDATE, 0, 4), frame(PING, 0, 8), frame(UNKNOWN, 0, 0), frame(DATA, 0, 0)]
        {
            assert_eq!(most(&useless), Some(AT_ONCE), "{useless:?}");
        }
        assert_eq!(most(&padding), Some(AT_ONCE / 5), "it may be nothing but padding");
        assert_eq!(most(&frame(SETTINGS, 0, 6400)), Some(AT_ONCE / 101), "a large one is worth many");
        assert_eq!(most(&frame(UNKNOWN, 0, 16_384)), Some(AT_ONCE / 257));
    }

    #[test]
    fn frames_of_requests_and_bodies_are_free() {
        for useful in
            [frame(HEADERS, 4, 50), frame(CONTINUATION, 4, 50), frame(DATA, 0, 1), frame(DATA, PADDED, 257)]
        {
            assert_eq!(most(&useful), None, "{useful:?}");
        }
        let request = [
            frame(HEADERS, 5, 50),
            frame(WINDOW_UPDATE, 0, 4),
            frame(DATA, 1, 0),
            frame(RST_STREAM, 0, 4),
            frame(PING, 0, 8),
        ];
        assert_eq!(most(&request.concat()), None, "what belongs to a request");
    }

    #[test]
    fn the_clock_is_asked_when_something_is_charged() {
        let (useful, ping) = ([frame(HEADERS, 4, 50), frame(DATA, 0, 1000)].concat(), frame(PING, 0, 8));
        let mut frames = begun();
        let asked = std::cell::Cell::new(0);
        let clock = || {
            asked.set(asked.get() + 1);
            at(0)
        };
        frames.on_read(clock, &useful).unwrap();
        frames.on_read(clock, &ping[..5]).unwrap();
        assert_eq!(asked.get(), 0, "nor for the beginning of a head");
        frames.on_read(clock, &[&ping[5..], &ping.repeat(9)].concat()).unwrap();
        assert_eq!((asked.get(), frames.budget.remaining(at(0))), (1, AT_ONCE - 10));
    }

    #[test]
    fn frames_are_counted_however_they_are_cut() {
        let mut frames = Frames::new();
        let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        for _ in 0..AT_ONCE / 2 {
            sent.extend(frame(DATA, 0, 20));
            sent.extend(frame(PING, 0, 8));
        }
        for piece in sent.chunks(7) {
            frames.on_read(|| at(0), piece).unwrap();
        }
        assert_eq!(frames.budget.remaining(at(0)), AT_ONCE / 2);
    }

    #[test]
    fn time_brings_back_what_was_sent() {
        let ping = frame(PING, 0, 8);
        let mut frames = begun();
        for now in 0..100_000 {
            assert_eq!(frames.on_read(|| at(4 * now), &ping), Ok(None));
        }
        let mut frames = begun();
        let over = (0..100_000).find(|now| frames.on_read(|| at(4 * *now), &ping.repeat(2)).is_err());
        assert!(over.is_some_and(|over| (9_000..11_000).contains(&over)), "{over:?}");
    }

    #[test]
    fn whoever_sends_many_is_read_from_slowly() {
        let pings = frame(PING, 0, 8).repeat(100);
        let mut frames = begun();
        for _ in 0..UNPACED / 100 {
            assert_eq!(frames.on_read(|| at(0), &pings), Ok(None));
        }
        assert_eq!(frames.on_read(|| at(0), &pings), Ok(Some(PAUSE * 100)));
        assert_eq!(frames.on_read(|| at(0), &frame(HEADERS, 4, 50)), Ok(None), "requests are not to blame");
        assert_eq!(frames.on_read(|| at(0), &frame(DATA, 0, 1000)), Ok(None));
    }

    #[test]
    fn whoever_gives_up_many_requests_is_read_from_slowly() {
        let (request, reset) = (frame(HEADERS, 5, 50), frame(RST_STREAM, 0, 4));
        let given_up = [request.clone(), reset.clone()].concat();
        let mut frames = begun();
        for _ in 0..RESETS_UNPACED {
            assert_eq!(frames.on_read(|| at(0), &given_up), Ok(None));
        }
        assert_eq!(frames.on_read(|| at(0), &given_up.repeat(3)), Ok(Some(3 * RESET_PAUSE)));
        assert_eq!(frames.on_read(|| at(0), &request), Ok(None));
        // An answer that is complete brings one back, its beginning none; a second brings back some.
        for (answer, pause) in [
            (frame(HEADERS, 4, 30), Some(RESET_PAUSE)),
            (frame(HEADERS, 5, 30), None),
            (frame(DATA, 1, 9), None),
        ] {
            frames.on_written(|| at(0), &answer);
            assert_eq!(frames.on_read(|| at(0), &reset), Ok(pause), "{answer:?}");
        }
        assert_eq!(frames.on_read(|| at(1000), &reset.repeat(RESETS_PER_SECOND as usize)), Ok(None));
        assert_eq!(frames.on_read(|| at(1000), &reset), Ok(Some(RESET_PAUSE)));
    }

    #[test]
    fn a_download_pays_for_its_window_updates() {
        let updates = frame(WINDOW_UPDATE, 0, 4).repeat(2);
        let mut frames = begun();
        for _ in 0..100_000 {
            // All within the same moment.
            frames.on_written(|| at(0), &frame(DATA, 0, 4096));
            frames.on_read(|| at(0), &updates).unwrap();
        }
    }

    /// A window update and a PING, as grpc-go's estimate of the bandwidth sends them for a DATA frame.
    fn estimating() -> Vec<u8> {
        [frame(WINDOW_UPDATE, 0, 4), frame(PING, 0, 8)].concat()
    }

    #[test]
    fn each_message_that_is_sent_pays_for_what_estimates_the_bandwidth() {
        let (message, answer) = (frame(DATA, 0, 100), estimating());
        let mut frames = begun();
        for _ in 0..100_000 {
            // All within the same moment.
            frames.on_written(|| at(0), &message);
            assert_eq!(frames.on_read(|| at(0), &answer), Ok(None));
        }
        let message = frame(DATA, 0, 6);
        let mut frames = begun();
        for now in 0..100_000 {
            frames.on_written(|| at(2 * now), &message);
            assert_eq!(frames.on_read(|| at(2 * now), &answer), Ok(None), "of some bytes each, 500 a second");
        }
    }

    #[test]
    fn bytes_asked_for_one_by_one_do_not_pay_for_it() {
        let (byte, update) = (frame(DATA, 0, 1), frame(WINDOW_UPDATE, 0, 4));
        let mut frames = begun();
        let over = (0..3 * AT_ONCE).find(|_| {
            frames.on_written(|| at(0), &byte);
            frames.on_read(|| at(0), &update).is_err()
        });
        assert!(over.is_some_and(|over| over < 2 * AT_ONCE), "{over:?}");
    }

    #[test]
    fn acknowledgements_pay_for_nothing() {
        for (asked, answered) in
            [(frame(PING, 0, 8), frame(PING, 1, 8)), (frame(SETTINGS, 0, 6), frame(SETTINGS, 1, 0))]
        {
            let mut frames = begun();
            let mut answer = || {
                frames.on_written(|| at(0), &answered);
                frames.on_read(|| at(0), &asked)
            };
            assert!((0..UNPACED).all(|_| answer() == Ok(None)));
            assert_eq!(answer(), Ok(Some(PAUSE)));
            assert_eq!((0..AT_ONCE).find(|_| answer().is_err()), Some(AT_ONCE - UNPACED - 1));
        }
    }

    /// Takes seven bytes at a time, out of several buffers.
    struct Sevens(Vec<u8>);

    impl AsyncWrite for Sevens {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(cx, &[io::IoSlice::new(buffer)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffers: &[io::IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let bytes: Vec<u8> = buffers.iter().flat_map(|buffer| buffer.iter().copied()).take(7).collect();
            self.0.extend(&bytes);
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn what_is_written_counts_as_far_as_it_is_taken() {
        let frames =
            [frame(PING, 1, 8), frame(DATA, 0, 100), frame(DATA, 0, 0), frame(DATA, 1, 924)].concat();
        for lengths in [vec![frames.len()], vec![3, 0, 20, 9, 100], vec![1; 50]] {
            let mut judged = Judged::new(Sevens(Vec::new()), Arc::default());
            judged.frames = begun();
            judged.frames.on_read(|| at(0), &frame(PING, 0, 8).repeat(100)).unwrap();
            let mut left = &frames[..];
            while !left.is_empty() {
                let mut rest = left;
                let mut buffers = Vec::new();
                for length in &lengths {
                    let (buffer, after) = rest.split_at(rest.len().min(*length));
                    buffers.push(io::IoSlice::new(buffer));
                    rest = after;
                }
                let written = judged.write_vectored(&buffers).await.unwrap();
                left = &left[written..];
            }
            // Two DATA frames and 1024 bytes in them.
            assert_eq!(judged.frames.budget.remaining(at(0)), AT_ONCE - 100 + 2 * PER_DATA_SENT + 1);
            assert_eq!(judged.stream.0, frames);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_by_too_many() {
        let (mut client, server) = tokio::io::duplex(4096);
        let pace = Arc::<Progress>::default();
        let mut judged = Judged::new(server, Arc::clone(&pace));
        let flood = tokio::spawn(async move {
            let updates = frame(WINDOW_UPDATE, 0, 4).repeat(100);
            client.write_all(&[0; PREFACE]).await?;
            // Far more than comes back meanwhile.
            for _ in 0..10_000 {
                client.write_all(&updates).await?;
            }
            io::Result::Ok(())
        });
        let ended = judged.ended();
        assert_eq!(ended.in_place_of("other".into()).to_string(), "other");
        judged.read_to_end(&mut Vec::new()).await.unwrap_err();
        let why = ended.in_place_of("other".into());
        assert_eq!((why.downcast_ref(), pace.is_aborted()), (Some(&GaveUp::Useless), true));
        drop(judged);
        assert!(flood.await.unwrap().is_err());
    }
}
