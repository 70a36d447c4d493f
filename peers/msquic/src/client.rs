//! A client of the server that sends back: sends on several streams and compares what comes.

use crate::options::Connect;
use crate::sending;
use anyhow::{Context, Result, bail, ensure};
use msquic::{
    BufferRef, Configuration, Connection, ConnectionEvent, ConnectionRef, ConnectionShutdownFlags,
    CredentialConfig, CredentialFlags, Registration, SendFlags, Settings, Status, Stream, StreamEvent,
    StreamOpenFlags, StreamRef, StreamStartFlags,
};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// As long as this nothing at all may happen; it is no measure of anything.
const LIMIT: Duration = Duration::from_secs(30);

/// What callbacks tell.
enum Told {
    Connected { alpn: Vec<u8> },
    Received(u64, Vec<u8>),
    StreamOver,
    Failed(Status),
    Over { handshake_completed: bool },
}

pub fn run(options: &Connect) -> Result<()> {
    let registration = Registration::new(&msquic::RegistrationConfig::default())?;
    exchange(&registration, options)?;
    registration.shutdown();
    Ok(())
}

pub fn exchange(registration: &Registration, options: &Connect) -> Result<()> {
    let configuration = configure(registration, options)?;
    let (tell, told) = channel();
    let of_streams = tell.clone();
    let connection = Connection::open(registration, move |_: ConnectionRef, event: ConnectionEvent| {
        on_connection(&tell, &event);
        Ok(())
    })?;
    connection.start(&configuration, &options.address.ip().to_string(), options.address.port())?;
    match next(&told)? {
        Told::Connected { alpn } => ensure!(alpn == options.alpn.as_bytes(), "connected by ALPN {alpn:?}"),
        Told::Failed(status) => bail!("not connected: {status}"),
        _ => bail!("not connected"),
    }
    let payload: Vec<u8> = (0..options.bytes).map(|at| (at * 7 + at / 251) as u8).collect();
    let streams = (0..options.streams)
        .map(|which| open(&connection, u64::from(which), &payload, of_streams.clone()))
        .collect::<Result<Vec<Stream>, Status>>()?;
    compare(&told, &payload, options.streams)?;
    drop(streams);
    connection.shutdown(ConnectionShutdownFlags::NONE, 0);
    loop {
        if let Told::Over { handshake_completed } = next(&told)? {
            ensure!(handshake_completed, "the connection is over without a handshake");
            break;
        }
    }
    println!("ok {} streams of {} bytes", options.streams, options.bytes);
    Ok(())
}

pub fn configure(registration: &Registration, options: &Connect) -> Result<Configuration> {
    let alpn = [BufferRef::from(options.alpn.as_str())];
    let settings = Settings::new().set_IdleTimeoutMs(30_000);
    let configuration = Configuration::open(registration, &alpn, Some(&settings))?;
    let credential = match &options.authority {
        Some(authority) => CredentialConfig::new_client().set_ca_certificate_file(authority.clone()),
        None => {
            CredentialConfig::new_client().set_credential_flags(CredentialFlags::NO_CERTIFICATE_VALIDATION)
        }
    };
    configuration.load_credential(&credential)?;
    Ok(configuration)
}

fn next(told: &Receiver<Told>) -> Result<Told> {
    told.recv_timeout(LIMIT).context("nothing happened for a long time")
}

fn on_connection(tell: &Sender<Told>, event: &ConnectionEvent) {
    let what = match event {
        ConnectionEvent::Connected { negotiated_alpn, .. } => {
            Told::Connected { alpn: negotiated_alpn.to_vec() }
        }
        ConnectionEvent::ShutdownInitiatedByTransport { status, .. } => Told::Failed(status.clone()),
        ConnectionEvent::ShutdownComplete { handshake_completed, .. } => {
            Told::Over { handshake_completed: *handshake_completed }
        }
        _ => return,
    };
    // Who has heard enough is gone.
    let _ = tell.send(what);
}

fn open(connection: &Connection, which: u64, payload: &[u8], tell: Sender<Told>) -> Result<Stream, Status> {
    let stream =
        Stream::open(connection, StreamOpenFlags::NONE, move |stream: StreamRef, event: StreamEvent| {
            match event {
                StreamEvent::StartComplete { id, .. } => assert_eq!(stream.get_stream_id()?, id),
                StreamEvent::SendComplete { client_context, .. } => sending::complete(client_context),
                StreamEvent::Receive { buffers, .. } => {
                    let bytes = buffers.iter().flat_map(|buffer| buffer.as_bytes().to_vec()).collect();
                    let _ = tell.send(Told::Received(which, bytes));
                }
                StreamEvent::ShutdownComplete { .. } => {
                    let _ = tell.send(Told::StreamOver);
                }
                _ => {}
            }
            Ok(())
        })?;
    stream.start(StreamStartFlags::NONE)?;
    sending::send(&stream, payload.to_vec(), SendFlags::FIN)?;
    Ok(stream)
}

/// Waits for the end of every stream, and compares what has come on each with what was sent.
fn compare(told: &Receiver<Told>, payload: &[u8], streams: u16) -> Result<()> {
    let mut received = vec![0_usize; usize::from(streams)];
    let mut over = 0;
    while over < streams {
        match next(told)? {
            Told::Received(which, bytes) => {
                let at = received.get_mut(usize::try_from(which)?).context("a stream that was not opened")?;
                ensure!(
                    payload.get(*at..*at + bytes.len()) == Some(&bytes[..]),
                    "stream {which} has other bytes"
                );
                *at += bytes.len();
            }
            Told::StreamOver => over += 1,
            Told::Failed(status) => bail!("the connection has failed: {status}"),
            Told::Over { .. } => bail!("the connection is over before its streams"),
            Told::Connected { .. } => bail!("connected twice"),
        }
    }
    ensure!(received.iter().all(|length| *length == payload.len()), "streams have ended early: {received:?}");
    Ok(())
}
