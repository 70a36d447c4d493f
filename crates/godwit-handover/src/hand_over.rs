//! The older generation's side of a hand-over.

use crate::generation::EndpointGeneration;
use crate::older::OtherGenerations;
use crate::protocol::{self, Line};
use crate::relay::{self, RelayReceiver};
use crate::{Part, Successor, VARIABLE};
use godwit_engine::{Handler, ShardHandle};
use godwit_os::descriptors;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::process::Child;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// How long a program that has given up is waited for, so that it can be said why.
const EXIT_WAIT: Duration = Duration::from_secs(1);

/// Starts `successor`, and has it take over the sockets of `parts` and all clients that come from now on. Those parts
/// that it declines stay here. On success the caller has to see to it that no new connections are taken by any of
/// them.
///
/// What is returned is the successor's process, which outlives this one. If the future is dropped before it is ready,
/// the successor is killed, and all is as before.
///
/// # Errors
/// If the successor cannot be started, ends, is not ready in time, or declines everything; if it is this process's turn
/// to receive no more, or not yet; if a name has more than one line. All is as before then.
pub async fn hand_over<H: Handler>(parts: &[Part<'_, H>], successor: Successor) -> io::Result<Child> {
    let _one: Vec<_> = parts.iter().map(|part| part.generation.begin()).collect::<io::Result<_>>()?;
    if !parts.iter().flat_map(|part| part.shards).all(ShardHandle::is_receiving) {
        return Err(io::Error::other("another generation receives from these sockets"));
    }
    let Successor { mut command, descriptors: mut others, timeout } = successor;
    let (mut passed, mut numbers, mut conversations) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        let offer = Offer::of(part, std::mem::take(&mut others))?;
        let (mut ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        ours.write_all(offer.text.as_bytes())?;
        numbers.push(theirs.as_raw_fd().to_string());
        passed.extend(offer.descriptors);
        passed.push(theirs.into());
        let stream = BufReader::new(UnixStream::from_std(ours)?);
        conversations.push(Conversation { part, stream, receivers: offer.receivers });
    }
    command.env(VARIABLE, numbers.join(","));
    descriptors::pass_to(&mut command, passed);
    // The command goes, and with it what only the program is to have. Whoever does not wait for this any more does not
    // want the program either.
    let started = tokio::task::spawn_blocking(move || command.spawn().map(Started::new)).await;
    let mut attempt = Attempt { parts, conversations, child: started.map_err(io::Error::other)?? };
    match tokio::time::timeout(timeout, attempt.talk()).await {
        Ok(Ok(())) => attempt.succeed(),
        Ok(Err(error)) => Err(attempt.why(error).await),
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the successor was not ready in time")),
    }
}

/// What a generation tells and passes on of an endpoint.
struct Offer {
    text: String,
    descriptors: Vec<OwnedFd>,
    /// This generation's ends of its own relays.
    receivers: Vec<RelayReceiver>,
}

impl Offer {
    fn of<H: Handler>(part: &Part<'_, H>, others: Vec<(String, OwnedFd)>) -> io::Result<Self> {
        let Part { name, shards, generation } = part;
        let generation: &EndpointGeneration = generation;
        if name.contains('\n') || others.iter().any(|(name, _)| name.contains('\n')) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a name of more than one line"));
        }
        let greeting = format!("{}\n", protocol::GREETING);
        let mut offer = Offer { text: greeting, descriptors: Vec::new(), receivers: Vec::new() };
        Line::Name(name.clone()).write(&mut offer.text);
        Line::Generation(generation.next_number()).write(&mut offer.text);
        Line::Secrets(Box::new(generation.secrets.to_bytes())).write(&mut offer.text);
        if let Some(key) = generation.secrets.previous_token_key() {
            Line::PreviousKey(Box::new(key)).write(&mut offer.text);
        }
        for (number, shard) in (0..=u8::MAX).zip(*shards) {
            for (id, socket) in shard.clone_sockets()? {
                offer.pass(socket.into(), |descriptor| Line::Socket(number, id.0, descriptor));
            }
            let (give, take) = relay::pair()?;
            offer.pass(give, |descriptor| Line::OlderShard(generation.number, number, descriptor));
            offer.receivers.push(take);
        }
        for older in generation.living() {
            for (number, way) in (0..=u8::MAX).zip(&older.shards) {
                let Some(way) = way.as_ref().filter(|way| way.is_open()) else { continue };
                let way = way.as_fd().try_clone_to_owned()?;
                offer.pass(way, |descriptor| Line::OlderShard(older.generation, number, descriptor));
            }
        }
        for (name, descriptor) in others {
            offer.pass(descriptor, |descriptor| Line::Descriptor(descriptor, name));
        }
        offer.text.push_str(protocol::END);
        offer.text.push('\n');
        Ok(offer)
    }

    fn pass(&mut self, descriptor: OwnedFd, line: impl FnOnce(i32) -> Line) {
        line(descriptor.as_raw_fd()).write(&mut self.text);
        self.descriptors.push(descriptor);
    }
}

/// A program that has been started, and does not outlive this unless it is taken out.
struct Started(Option<Child>);

impl Started {
    fn new(child: Child) -> Self {
        Started(Some(child))
    }

    fn end(&mut self) {
        let Some(mut child) = self.0.take() else { return };
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.end();
    }
}

/// What is said about an endpoint.
struct Conversation<'a, H: Handler> {
    part: &'a Part<'a, H>,
    stream: BufReader<UnixStream>,
    receivers: Vec<RelayReceiver>,
}

impl<H: Handler> Conversation<'_, H> {
    /// Stops receiving, and says which handshakes were begun.
    async fn stop_receiving(&mut self) -> io::Result<()> {
        let mut answer = String::new();
        for (shard, receiver) in self.part.shards.iter().zip(std::mem::take(&mut self.receivers)) {
            let older = self.part.generation.older.clone();
            for begun in shard.stop_receiving(OtherGenerations::with_newer(older, receiver)) {
                Line::Begun(begun).write(&mut answer);
            }
        }
        answer.push_str(protocol::GO);
        answer.push('\n');
        self.stream.write_all(answer.as_bytes()).await
    }

    /// Waits for one of these words. What is not known is skipped.
    async fn expect_one_of(&mut self, words: &[&'static str]) -> io::Result<&'static str> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.stream.read_line(&mut line).await? == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the successor did not take over"));
            }
            let line = line.trim_end();
            if let Some(reason) = line.strip_prefix(protocol::SORRY) {
                return Err(io::Error::other(format!("the successor gave up: {reason}")));
            }
            if let Some(word) = words.iter().find(|word| **word == line) {
                return Ok(word);
            }
        }
    }
}

/// A hand-over that may fail: if it is dropped before it has succeeded, all is as before, and the program is gone.
struct Attempt<'a, H: Handler> {
    parts: &'a [Part<'a, H>],
    conversations: Vec<Conversation<'a, H>>,
    child: Started,
}

impl<H: Handler> Attempt<'_, H> {
    /// All endpoints that are taken over change hands together, when the successor is ready for each of them.
    async fn talk(&mut self) -> io::Result<()> {
        let mut taken = Vec::new();
        for conversation in &mut self.conversations {
            if conversation.expect_one_of(&[protocol::READY, protocol::DECLINED]).await? == protocol::READY {
                taken.push(conversation);
            }
        }
        if taken.is_empty() {
            return Err(io::Error::other("the successor takes nothing over"));
        }
        for conversation in &mut taken {
            conversation.stop_receiving().await?;
        }
        for conversation in &mut taken {
            conversation.expect_one_of(&[protocol::SERVING]).await?;
        }
        Ok(())
    }

    fn shards(&self) -> impl Iterator<Item = &ShardHandle<H>> {
        self.parts.iter().flat_map(|part| part.shards)
    }

    fn succeed(mut self) -> io::Result<Child> {
        self.child.0.take().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// What became of the program, if it has ended without a word.
    async fn why(&mut self, error: io::Error) -> io::Error {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        let Some(child) = &mut self.child.0 else { return error };
        if !matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof) {
            return error;
        }
        let ended = async {
            loop {
                match child.try_wait() {
                    Ok(None) => tokio::time::sleep(Duration::from_millis(10)).await,
                    Ok(Some(status)) => return Some(status),
                    Err(_) => return None,
                }
            }
        };
        match tokio::time::timeout(EXIT_WAIT, ended).await {
            Ok(Some(status)) => {
                io::Error::other(format!("the successor ended before it had taken over: {status}"))
            }
            _ => error,
        }
    }
}

impl<H: Handler> Drop for Attempt<'_, H> {
    fn drop(&mut self) {
        if self.child.0.is_none() {
            return;
        }
        // Only one generation may receive, and this one is going to. The program may have been started by what was
        // started here, and live on: it is told.
        for conversation in &self.conversations {
            let _ = conversation.stream.get_ref().try_write(protocol::NEVER_MIND);
        }
        self.child.end();
        self.shards().filter(|shard| !shard.is_receiving()).for_each(|shard| shard.begin_receiving(&[]));
    }
}
