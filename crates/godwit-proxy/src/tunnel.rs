//! Tunnels: what follows an upgrade (RFC 9110 section 7.8) or an extended CONNECT (RFC 8441, RFC 9220).
//!
//! To the upstream a tunnel is always an HTTP/1.1 upgrade. To the client it is whatever `OnUpgrade` in the
//! request's extensions gives, and without that the bodies of the request and the response. Each direction
//! ends by itself; when one breaks, or nothing passes for too long, both do.

use crate::backend::Lease;
use crate::problem::{Problem, ProblemKind};
use crate::{BoxError, RequestBody, lock};
use bytes::{Bytes, BytesMut};
use godwit_body::TunnelMeter;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf, ReadHalf, WriteHalf};
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Bytes read at once.
const CHUNK: usize = 16 << 10;

/// How long a client may say nothing after the upstream has ended.
const LINGER: Duration = Duration::from_secs(30);

/// How the client asked for a tunnel.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// By an upgrade of its HTTP/1.1 connection.
    Upgrade { protocol: HeaderValue, client: Client },
    /// By an extended CONNECT.
    Connect { protocol: HeaderValue, key: Option<HeaderValue>, client: Option<Client> },
}

/// The client's connection once it has changed protocols.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) upgrade: OnUpgrade,
    /// Whoever wants to know what passes.
    pub(crate) meter: Option<TunnelMeter>,
}

impl Wanted {
    /// An extended CONNECT for this protocol.
    ///
    /// # Errors
    /// If it is not one name, or HTTP/2: in a tunnel that would be a way around routes and header rules, as it is by an
    /// upgrade.
    pub(crate) fn connect(protocol: &str, client: Option<Client>) -> Result<Self, Problem> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_one = !protocol.is_empty() && protocol.bytes().all(is_name);
        if !is_one || protocol.to_ascii_lowercase().starts_with("h2") {
            return Err(Problem::new(ProblemKind::BadRequest, "this :protocol is not passed on"));
        }
        let name = HeaderValue::from_str(protocol)
            .map_err(|_| Problem::new(ProblemKind::BadRequest, ":protocol is not a name"))?;
        let key = match protocol.eq_ignore_ascii_case("websocket") {
            true => Some(new_key()?),
            false => None,
        };
        Ok(Wanted::Connect { protocol: name, key, client })
    }

    /// What asks the upstream for it, in addition to what the client said.
    pub(crate) fn ask(&self, headers: &mut HeaderMap) {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        match self {
            Wanted::Upgrade { protocol, .. } => {
                headers.insert(UPGRADE, protocol.clone());
            }
            Wanted::Connect { protocol, key, .. } => {
                headers.insert(UPGRADE, protocol.clone());
                if let Some(key) = key {
                    headers.insert(SEC_WEBSOCKET_KEY, key.clone());
                    headers.entry(SEC_WEBSOCKET_VERSION).or_insert(HeaderValue::from_static("13"));
                }
            }
        }
    }

    /// Whether the upstream's acceptance answers what was asked (RFC 6455 section 4.1).
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let Wanted::Connect { protocol, key, .. } = self else { return Ok(()) };
        let same = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(protocol.as_bytes());
        if !headers.get(UPGRADE).is_some_and(same) {
            return Err(Problem::new(ProblemKind::Broken, "the upstream changed to another protocol"));
        }
        if let Some(key) = key
            && headers.get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes) != Some(accept(key).as_bytes())
        {
            return Err(Problem::new(ProblemKind::Broken, "the upstream's Sec-WebSocket-Accept is wrong"));
        }
        Ok(())
    }
}

fn new_key() -> Result<HeaderValue, Problem> {
    let mut nonce = [0_u8; 16];
    let none = |_| Problem::new(ProblemKind::Broken, "there are no random numbers");
    godwit_tls::fill_random(&mut nonce).map_err(none)?;
    HeaderValue::try_from(base64(&nonce))
        .map_err(|_| Problem::new(ProblemKind::Broken, "a key that is not a value"))
}

/// What Sec-WebSocket-Accept must say for a key (RFC 6455 section 4.2.2).
fn accept(key: &HeaderValue) -> String {
    let text = [key.as_bytes(), b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"].concat();
    base64(&godwit_tls::sha1(&text))
}

/// RFC 4648 section 4.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4_u32 {
            let six = (bits >> (18 - 6 * at)) & 63;
            let padding = at as usize > group.len();
            text.push(if padding {
                '='
            } else {
                ALPHABET.get(six as usize).map_or('=', |byte| (*byte).into())
            });
        }
    }
    text
}

/// When something last passed through a tunnel.
#[derive(Debug)]
struct Activity {
    state: Mutex<Used>,
    changed: Notify,
}

#[derive(Debug)]
struct Used {
    last: Instant,
    limit: Option<Duration>,
}

impl Activity {
    fn new(limit: Option<Duration>) -> Arc<Self> {
        let state = Mutex::new(Used { last: Instant::now(), limit });
        Arc::new(Activity { state, changed: Notify::new() })
    }

    fn note(&self) {
        lock(&self.state).last = Instant::now();
    }

    /// The upstream has ended: what the client may still say is not waited for very long.
    fn on_upstream_ended(&self) {
        let mut used = lock(&self.state);
        used.limit = Some(used.limit.map_or(LINGER, |limit| limit.min(LINGER)));
        drop(used);
        self.changed.notify_waiters();
    }

    /// Ready once nothing has passed for too long.
    async fn ended(self: Arc<Self>) {
        loop {
            let mut changed = pin!(self.changed.notified());
            // From now on, nothing is missed.
            changed.as_mut().enable();
            let due = {
                let used = lock(&self.state);
                used.limit.map(|limit| used.last + limit)
            };
            let Some(due) = due else {
                changed.await;
                continue;
            };
            if due <= Instant::now() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                () = changed => {}
            }
        }
    }
}

/// Connects the bytes of both sides once both have changed protocols.
pub(crate) fn join(client: Client, upstream: OnUpgrade, lease: Lease, limit: Option<Duration>) {
    let Client { upgrade, meter } = client;
    tokio::spawn(async move {
        let _lease = lease;
        let (client, upstream) = match tokio::try_join!(upgrade, upstream) {
            Ok(both) => both,
            Err(error) => return tracing::debug!(%error, "a tunnel did not begin"),
        };
        let activity = Activity::new(limit);
        let (mut from_client, mut to_client) = tokio::io::split(TokioIo::new(client));
        let (mut from_upstream, mut to_upstream) = tokio::io::split(TokioIo::new(upstream));
        let count = |add: fn(&TunnelMeter, usize)| {
            let meter = meter.as_ref();
            move |bytes| meter.into_iter().for_each(|meter| add(meter, bytes))
        };
        let (sent, received) = (count(TunnelMeter::on_from_client), count(TunnelMeter::on_to_client));
        let both = async {
            tokio::try_join!(copy(&mut from_client, &mut to_upstream, &activity, sent), async {
                let result = copy(&mut from_upstream, &mut to_client, &activity, received).await;
                activity.on_upstream_ended();
                result
            },)
        };
        tokio::select! {
            result = both => if let Err(error) = result {
                tracing::debug!(%error, "a tunnel broke");
            },
            () = Arc::clone(&activity).ended() => tracing::debug!("a tunnel was not used and is closed"),
        }
    });
}

async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    activity: &Activity,
    count: impl Fn(usize),
) -> io::Result<()> {
    let mut buffer = BytesMut::with_capacity(CHUNK);
    loop {
        buffer.clear();
        if from.read_buf(&mut buffer).await? == 0 {
            return to.shutdown().await;
        }
        activity.note();
        to.write_all(&buffer).await?;
        to.flush().await?;
        count(buffer.len());
        activity.note();
    }
}

/// What comes from the upstream through a tunnel whose other end is the bodies of an exchange. What the client
/// sends is passed on by a task of its own.
pub(crate) struct Stream {
    from: ReadHalf<TokioIo<Upgraded>>,
    buffer: BytesMut,
    activity: Arc<Activity>,
    idle: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The other direction broke.
    broken: Option<oneshot::Receiver<BoxError>>,
    /// The task of the other direction, as long as it depends on this one.
    task: Option<AbortHandle>,
    ended: bool,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.task.iter().for_each(AbortHandle::abort);
    }
}

impl Stream {
    /// A tunnel to `upstream`; `body` is what the client sends.
    pub(crate) fn new(upstream: Upgraded, body: RequestBody, lease: Lease, limit: Option<Duration>) -> Self {
        let activity = Activity::new(limit);
        let (from, to) = tokio::io::split(TokioIo::new(upstream));
        let (broke, broken) = oneshot::channel();
        let task = tokio::spawn({
            let activity = Arc::clone(&activity);
            async move {
                let _lease = lease;
                let result = tokio::select! {
                    result = send(body, to, &activity) => result,
                    () = Arc::clone(&activity).ended() => Err("the tunnel was not used".into()),
                };
                if let Err(error) = result {
                    tracing::debug!(error, "a tunnel broke");
                    let _ = broke.send(error);
                }
            }
        });
        Stream {
            from,
            buffer: BytesMut::new(),
            idle: Box::pin(Arc::clone(&activity).ended()),
            activity,
            broken: Some(broken),
            task: Some(task.abort_handle()),
            ended: false,
        }
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        match self.poll_bytes(cx) {
            Poll::Ready(Ok(bytes)) if bytes.is_empty() => {
                self.ended = true;
                // The other direction ends by itself.
                self.task = None;
                self.activity.on_upstream_ended();
                Poll::Ready(None)
            }
            Poll::Ready(Ok(bytes)) => {
                self.activity.note();
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Poll::Ready(Err(error)) => {
                self.ended = true;
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Pending => {
                let error = ready!(self.poll_broken(cx));
                self.ended = true;
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        self.buffer.resize(CHUNK, 0);
        let mut buffer = ReadBuf::new(&mut self.buffer);
        ready!(Pin::new(&mut self.from).poll_read(cx, &mut buffer))?;
        let len = buffer.filled().len();
        Poll::Ready(Ok(self.buffer.split_to(len).freeze()))
    }

    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<BoxError> {
        if let Some(broken) = &mut self.broken
            && let Poll::Ready(result) = Pin::new(broken).poll(cx)
        {
            self.broken = None;
            if let Ok(error) = result {
                return Poll::Ready(error);
            }
        }
        self.idle.as_mut().poll(cx).map(|()| "the tunnel was not used".into())
    }
}

async fn send(
    body: RequestBody,
    mut to: WriteHalf<TokioIo<Upgraded>>,
    activity: &Activity,
) -> Result<(), BoxError> {
    let mut body = pin!(body);
    while let Some(frame) = body.frame().await.transpose()? {
        activity.note();
        if let Ok(data) = frame.into_data() {
            to.write_all(&data).await?;
            to.flush().await?;
            activity.note();
        }
    }
    Ok(to.shutdown().await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_its_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn the_key_of_the_rfc_is_accepted() {
        let key = HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(accept(&key), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(new_key().unwrap().len(), 24);
        assert_ne!(new_key().unwrap(), new_key().unwrap());
    }
}
