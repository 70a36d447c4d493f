//! Fetches files, all on one connection.

use super::ALPN;
use crate::options::{Connect, HqFetch};
use crate::{client, sending};
use anyhow::{Context, Result, bail, ensure};
use msquic::{
    Connection, ConnectionEvent, ConnectionRef, ConnectionShutdownFlags, Registration, SendFlags, Status,
    Stream, StreamEvent, StreamOpenFlags, StreamRef, StreamStartFlags,
};
use sha2::{Digest, Sha256};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// As long as this nothing at all may happen; it is no measure of anything.
const LIMIT: Duration = Duration::from_secs(30);
/// Files under way at a time.
const PARALLEL: usize = 50;

/// What callbacks tell. Streams are numbered as their paths are.
enum Told {
    Connected,
    Failed(Status),
    Over,
    Aborted(usize, u64),
    /// The whole of a file, or what there was of it.
    Ended(usize, Answer),
}

/// What has come on a stream so far.
#[derive(Default, Clone)]
struct Answer {
    size: u64,
    hash: Sha256,
}

pub fn fetch(options: &HqFetch) -> Result<()> {
    let registration = Registration::new(&msquic::RegistrationConfig::default())?;
    let connect = Connect {
        address: ([127, 0, 0, 1], options.port).into(),
        authority: options.authority.clone(),
        alpn: ALPN.to_owned(),
        streams: 0,
        bytes: 0,
    };
    let configuration = client::configure(&registration, &connect)?;
    let (tell, told) = channel();
    let of_streams = tell.clone();
    let connection = Connection::open(&registration, move |_: ConnectionRef, event: ConnectionEvent| {
        let what = match event {
            ConnectionEvent::Connected { .. } => Told::Connected,
            ConnectionEvent::ShutdownInitiatedByTransport { status, .. } => Told::Failed(status),
            ConnectionEvent::ShutdownComplete { .. } => Told::Over,
            _ => return Ok(()),
        };
        // Who has heard enough is gone.
        let _ = tell.send(what);
        Ok(())
    })?;
    connection.start(&configuration, &options.host, options.port)?;
    match next(&told)? {
        Told::Connected => {}
        Told::Failed(status) => bail!("not connected: {status}"),
        _ => bail!("not connected"),
    }
    let answers = fetch_all(&connection, &options.paths, &told, &of_streams)?;
    for (answer, path) in answers.into_iter().zip(&options.paths) {
        let hash: String = answer.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        println!("- {} {hash} - {path}", answer.size);
    }
    connection.shutdown(ConnectionShutdownFlags::NONE, 0);
    while !matches!(next(&told)?, Told::Over) {}
    drop(connection);
    registration.shutdown();
    Ok(())
}

fn next(told: &Receiver<Told>) -> Result<Told> {
    told.recv_timeout(LIMIT).context("nothing happened for a long time")
}

fn fetch_all(
    connection: &Connection,
    paths: &[String],
    told: &Receiver<Told>,
    tell: &Sender<Told>,
) -> Result<Vec<Answer>> {
    let mut answers = vec![None; paths.len()];
    let mut streams: Vec<Option<Stream>> = Vec::new();
    let mut ended = 0;
    while ended < paths.len() {
        while streams.len() < paths.len() && streams.len() - ended < PARALLEL {
            let which = streams.len();
            streams.push(Some(ask(connection, which, &paths[which], tell.clone())?));
        }
        match next(told)? {
            Told::Ended(which, answer) => {
                answers[which] = Some(answer);
                streams[which] = None;
                ended += 1;
            }
            Told::Aborted(which, code) => {
                bail!("{}: the server has reset the stream with {code}", paths[which])
            }
            Told::Failed(status) => bail!("the connection has failed: {status}"),
            Told::Over => bail!("the connection is over before its streams"),
            Told::Connected => bail!("connected twice"),
        }
    }
    let answers: Option<Vec<Answer>> = answers.into_iter().collect();
    ensure!(answers.is_some(), "a stream has ended twice");
    Ok(answers.unwrap_or_default())
}

fn ask(connection: &Connection, which: usize, path: &str, tell: Sender<Told>) -> Result<Stream, Status> {
    let mut answer = Answer::default();
    let stream = Stream::open(connection, StreamOpenFlags::NONE, move |_: StreamRef, event: StreamEvent| {
        match event {
            StreamEvent::Receive { buffers, .. } => {
                for bytes in buffers.iter().map(|buffer| buffer.as_bytes()) {
                    answer.size += bytes.len() as u64;
                    answer.hash.update(bytes);
                }
            }
            StreamEvent::SendComplete { client_context, .. } => sending::complete(client_context),
            StreamEvent::PeerSendAborted { error_code } => {
                let _ = tell.send(Told::Aborted(which, error_code));
            }
            StreamEvent::ShutdownComplete { .. } => {
                let _ = tell.send(Told::Ended(which, answer.clone()));
            }
            _ => {}
        }
        Ok(())
    })?;
    stream.start(StreamStartFlags::NONE)?;
    sending::send(&stream, format!("GET {path}\r\n").into_bytes(), SendFlags::FIN)?;
    Ok(stream)
}
