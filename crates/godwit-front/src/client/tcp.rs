//! A TCP stream that counts what it is given, and tells when the peer has acknowledged it.
//!
//! HTTP and TLS buffer what they write, so a response whose body is over need not be in the kernel yet. What lies
//! between is told by flushing: the stream is flushed only once everything above it has been written out. At that
//! point the count of bytes written is what the peer has to acknowledge; from then on a task asks the kernel
//! (`TCP_INFO`) until it has. There is a task only while something is under way, one for a connection, and none at
//! all when nobody wants to know.
//!
//! Of a peer that acknowledges nothing, or does not even take what TLS has for it, no more than [`MOST_UNDER_WAY`] responses
//! are remembered.
//!
//! The error is small: looks are a fraction of the round-trip time apart, and the kernel tells when the last
//! acknowledgement came. A last piece that HTTP/2's flow control holds back after its body has ended is taken for
//! flushed too early.

use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use godwit_os::tcp::{TcpInfo, tcp_info};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::delivery::Undelivered;
use godwit_text::instant_now;

/// How long an acknowledgement is waited for.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);
/// Responses of one connection that are waited for. Of more, the oldest is over without an acknowledgement.
const MOST_UNDER_WAY: usize = 256;
/// Time between two looks.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(250);

/// The stream. Dropped, it is closed.
#[derive(Debug)]
pub(crate) struct Metered {
    stream: Arc<TcpStream>,
    meter: Arc<Meter>,
}

/// What is known of a stream, for whoever asks. It does not keep the stream open.
pub(crate) struct Meter {
    stream: Weak<TcpStream>,
    /// Bytes acknowledged before any was written here.
    before: u64,
    written: AtomicU64,
    begun: Instant,
    /// Nanoseconds from then to when something was read last.
    read: AtomicU64,
    /// There are responses that are not flushed yet.
    unflushed: AtomicBool,
    under_way: Mutex<UnderWay>,
}

/// Responses whose body is over.
#[derive(Default)]
struct UnderWay {
    unflushed: VecDeque<Box<dyn Undelivered>>,
    /// In the order of their ends.
    flushed: VecDeque<Flushed>,
    /// A task looks after them, and last did so then.
    looked: Option<Instant>,
    /// The stream is gone.
    closed: bool,
}

struct Flushed {
    /// Bytes written up to the response's end.
    end: u64,
    at: Instant,
    undelivered: Box<dyn Undelivered>,
}

impl UnderWay {
    fn held(&self) -> usize {
        self.unflushed.len().saturating_add(self.flushed.len())
    }

    /// The oldest, if there are too many.
    fn take_surplus(&mut self) -> Option<Box<dyn Undelivered>> {
        if self.held() <= MOST_UNDER_WAY {
            return None;
        }
        let oldest = self.flushed.pop_front().map(|flushed| flushed.undelivered);
        oldest.or_else(|| self.unflushed.pop_front())
    }
}

impl Metered {
    pub(crate) fn new(stream: TcpStream) -> Metered {
        let stream = Arc::new(stream);
        let before = tcp_info(&*stream).map_or(0, |info| info.bytes_acked);
        let meter = Meter {
            stream: Arc::downgrade(&stream),
            before,
            written: AtomicU64::new(0),
            begun: instant_now(),
            read: AtomicU64::new(0),
            unflushed: AtomicBool::new(false),
            under_way: Mutex::default(),
        };
        Metered { stream, meter: Arc::new(meter) }
    }

    /// For asking about the stream as long as it is there, and later in vain.
    pub(crate) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    fn count(&self, written: io::Result<usize>) -> Poll<io::Result<usize>> {
        if let Ok(written) = written {
            self.meter.written.fetch_add(written as u64, Ordering::Relaxed);
        }
        Poll::Ready(written)
    }
}

impl Deref for Metered {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.stream
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        self.meter.close();
    }
}

impl Meter {
    fn on_read(&self) {
        let nanos = instant_now().saturating_duration_since(self.begun).as_nanos();
        self.read.store(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// When something was read last: whatever has come and is not yet dealt with had come by then.
    pub(crate) fn last_read(&self) -> Instant {
        self.begun + Duration::from_nanos(self.read.load(Ordering::Relaxed))
    }

    /// Ends the connection under whoever has it: nothing more can be read, and nothing written.
    pub(crate) fn shut_down(&self) {
        if let Some(stream) = self.stream.upgrade() {
            let _ = SockRef::from(&*stream).shutdown(Shutdown::Both);
        }
    }

    /// What the kernel knows of the connection; `None` once the stream is gone.
    pub(crate) fn info(&self) -> Option<TcpInfo> {
        tcp_info(&*self.stream.upgrade()?)
    }

    /// Bytes written so far.
    #[cfg(test)]
    fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Responses whose delivery is waited for.
    #[cfg(test)]
    fn held(&self) -> usize {
        self.lock().held()
    }

    /// Has `undelivered` told when what has been given to the layers above so far is delivered.
    pub(crate) fn track(&self, undelivered: Box<dyn Undelivered>) {
        let mut under_way = self.lock();
        if under_way.closed {
            // Whoever drops it writes to logs.
            drop(under_way);
            return drop(undelivered);
        }
        under_way.unflushed.push_back(undelivered);
        self.unflushed.store(true, Ordering::Release);
        let surplus = under_way.take_surplus();
        drop(under_way);
        if let Some(oldest) = surplus {
            oldest.over(None);
        }
    }

    /// Everything that was written above has arrived here.
    fn on_flush(self: &Arc<Self>) {
        if !self.unflushed.swap(false, Ordering::AcqRel) {
            return;
        }
        let (end, at) = (self.written.load(Ordering::Relaxed), instant_now());
        let mut under_way = self.lock();
        let UnderWay { unflushed, flushed, looked, .. } = &mut *under_way;
        flushed.extend(unflushed.drain(..).map(|mut undelivered| {
            undelivered.on_flushed(at);
            Flushed { end, at, undelivered }
        }));
        if looked.is_none()
            && !flushed.is_empty()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            *looked = Some(at);
            runtime.spawn(watch(Arc::clone(self)));
        }
    }

    /// Looks what has been acknowledged. Returns after how long to look again, if there is a reason to.
    fn look(&self) -> Option<Duration> {
        let (info, now) = (self.info(), instant_now());
        let mut under_way = self.lock();
        let Some(info) = info else {
            under_way.looked = None;
            let lost = std::mem::take(&mut under_way.flushed);
            drop(under_way);
            lost.into_iter().for_each(|flushed| flushed.undelivered.over(None));
            return None;
        };
        let acknowledged = info.bytes_acked.saturating_sub(self.before);
        let last = now.checked_sub(info.last_ack_received).unwrap_or(now);
        let arrived = under_way.looked.map_or(last, |looked| last.max(looked));
        let mut over = Vec::new();
        while let Some(flushed) = under_way.flushed.front() {
            let delivered = flushed.end <= acknowledged;
            if !delivered && now.saturating_duration_since(flushed.at) < DELIVERY_TIMEOUT {
                break;
            }
            let delivered = delivered.then(|| arrived.max(flushed.at));
            over.extend(under_way.flushed.pop_front().map(|flushed| (flushed.undelivered, delivered)));
        }
        let wait = under_way.flushed.front().map(|flushed| {
            let shortest = (info.min_rtt / 16).max(SHORTEST);
            (now.saturating_duration_since(flushed.at) / 8).max(shortest).min(LONGEST)
        });
        under_way.looked = wait.map(|_| now);
        drop(under_way);
        over.into_iter().for_each(|(undelivered, delivered)| undelivered.over(delivered));
        wait
    }

    /// The stream is about to be closed: what has been acknowledged until now counts.
    fn close(&self) {
        self.look();
        let mut under_way = self.lock();
        under_way.closed = true;
        let left = (std::mem::take(&mut under_way.unflushed), std::mem::take(&mut under_way.flushed));
        // Whoever drops them writes to logs.
        drop(under_way);
        drop(left);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, UnderWay> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Meter").field("written", &self.written).finish_non_exhaustive()
    }
}

/// Looks until everything under way has been acknowledged.
async fn watch(meter: Arc<Meter>) {
    let mut wait = SHORTEST;
    loop {
        tokio::time::sleep(wait).await;
        match meter.look() {
            Some(next) => wait = next,
            None => return,
        }
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read(buffer.initialize_unfilled()) {
                Ok(read) => {
                    buffer.advance(read);
                    self.meter.on_read();
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Metered {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(cx))?;
            match self.stream.try_write(data) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return self.count(written),
            }
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(cx))?;
            match self.stream.try_write_vectored(pieces) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return self.count(written),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.meter.on_flush();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.meter.on_flush();
        Poll::Ready(SockRef::from(&*self.stream).shutdown(Shutdown::Write))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    struct Told(Sender<(&'static str, bool)>);

    impl Undelivered for Told {
        fn on_flushed(&mut self, _: Instant) {
            let _ = self.0.send(("flushed", true));
        }

        fn over(self: Box<Self>, delivered: Option<Instant>) {
            let _ = self.0.send(("over", delivered.is_some()));
        }
    }

    impl Drop for Told {
        fn drop(&mut self) {
            let _ = self.0.send(("dropped", true));
        }
    }

    fn told() -> (Box<Told>, Receiver<(&'static str, bool)>) {
        let (tell, told) = channel();
        (Box::new(Told(tell)), told)
    }

    #[expect(clippy::unwrap_used, reason = "a test on loopback")]
    async fn pair() -> (Metered, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Metered::new(listener.accept().await.unwrap().0), client)
    }

    /// Lets the watching task work until it has told something.
    async fn next<T>(told: &Receiver<T>) -> T {
        loop {
            match told.try_recv() {
                Ok(event) => return event,
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    }

    #[tokio::test]
    async fn delivered_is_what_the_peer_has_acknowledged() {
        let (mut stream, mut client) = pair().await;
        let (undelivered, told) = told();
        stream.write_all(&[7; 10_000]).await.unwrap();
        stream.meter().track(undelivered);
        assert!(told.try_recv().is_err(), "TLS may still hold something");
        stream.flush().await.unwrap();
        assert_eq!(told.try_recv(), Ok(("flushed", true)));
        assert_eq!(stream.meter().written(), 10_000);
        let reader = tokio::spawn(async move {
            client.read_exact(&mut [0; 10_000]).await.unwrap();
            client
        });
        assert_eq!(next(&told).await, ("over", true));
        drop(reader.await);
    }

    #[tokio::test]
    async fn nothing_is_delivered_that_the_peer_cannot_take() {
        let (mut stream, client) = pair().await;
        let (undelivered, told) = told();
        // More than both kernels' buffers hold for somebody who does not read.
        let written =
            tokio::time::timeout(Duration::from_millis(200), stream.write_all(&[7; 64 << 20])).await;
        assert!(written.is_err());
        stream.meter().track(undelivered);
        stream.flush().await.unwrap();
        assert_eq!(told.try_recv(), Ok(("flushed", true)));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(told.try_recv().is_err(), "it cannot be known yet");
        drop((stream, client));
        assert_eq!(next(&told).await.0, "dropped");
    }

    #[tokio::test]
    async fn of_responses_that_the_peer_does_not_take_the_oldest_are_given_up() {
        let (stream, _client) = pair().await;
        let meter = stream.meter();
        // More than will ever be acknowledged.
        meter.written.store(u64::MAX, Ordering::Relaxed);
        let (tell, told) = channel();
        for number in 0..10_000 {
            meter.track(Box::new(Told(tell.clone())));
            // Later on nothing is taken any more, not even what TLS holds.
            if number < 5000 {
                meter.on_flush();
            }
            assert!(meter.held() <= 256, "{}", meter.held());
        }
        assert_eq!(meter.held(), 256);
        let given_up = told.try_iter().filter(|event| *event == ("over", false)).count();
        assert_eq!(given_up, 10_000 - 256, "and each of them is logged");
    }

    #[tokio::test]
    async fn the_end_reaches_the_peer() {
        let (mut stream, mut client) = pair().await;
        let pieces = [io::IoSlice::new(b"a"), io::IoSlice::new(b"b")];
        assert_eq!(stream.write_vectored(&pieces).await.unwrap(), 2);
        stream.shutdown().await.unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "ab");
        client.write_all(b"c").await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), b'c');
    }
}
