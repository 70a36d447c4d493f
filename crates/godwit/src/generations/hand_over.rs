//! The two sides of a hand-over.

use super::letter::{self, Line};
use super::lineage::Lineage;
use super::{Successor, VARIABLE};
use crate::handler::Api;
use godwit_datapath::relay::{self, RelayReceiver};
use godwit_engine::ShardHandle;
use godwit_os::descriptors;
use godwit_transport::endpoint::Begun;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::process::Child;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// How long a program that has given up is waited for, so that it can be said why.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// An endpoint: what this generation calls it, and its shards.
pub(crate) type Part<'a> = (String, &'a [ShardHandle<Api>]);

/// See [`crate::Generation::hand_over`].
pub(crate) async fn hand_over(parts: &[Part<'_>], successor: Successor) -> io::Result<Child> {
    let lineages: Vec<_> = parts.iter().map(|(_, shards)| Lineage::of(shards)).collect::<io::Result<_>>()?;
    let _one: Vec<_> = lineages.iter().map(|lineage| lineage.begin()).collect::<io::Result<_>>()?;
    if !parts.iter().flat_map(|(_, shards)| *shards).all(ShardHandle::is_receiving) {
        return Err(io::Error::other("another generation receives from these sockets"));
    }
    let Successor { mut command, descriptors: mut others, patience } = successor;
    let (mut passed, mut numbers, mut conversations) = (Vec::new(), Vec::new(), Vec::new());
    for ((name, shards), lineage) in parts.iter().zip(&lineages) {
        let will = Will::of(name, shards, lineage, std::mem::take(&mut others))?;
        let (mut ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        ours.write_all(will.letter.as_bytes())?;
        numbers.push(theirs.as_raw_fd().to_string());
        passed.extend(will.descriptors);
        passed.push(theirs.into());
        let stream = BufReader::new(UnixStream::from_std(ours)?);
        conversations.push(Conversation { shards, stream, receivers: will.receivers });
    }
    command.env(VARIABLE, numbers.join(","));
    descriptors::pass_to(&mut command, passed);
    // The command goes, and with it what only the program is to have. Whoever does not wait for this any more does not
    // want the program either.
    let started = tokio::task::spawn_blocking(move || command.spawn().map(Started::new)).await;
    let mut attempt = Attempt { parts, conversations, child: started.map_err(io::Error::other)?? };
    match tokio::time::timeout(patience, attempt.talk()).await {
        Ok(Ok(())) => attempt.succeed(),
        Ok(Err(error)) => Err(attempt.why(error).await),
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the successor was not ready in time")),
    }
}

/// What a generation leaves of an endpoint.
struct Will {
    letter: String,
    descriptors: Vec<OwnedFd>,
    /// This generation's ends of its own relays.
    receivers: Vec<RelayReceiver>,
}

impl Will {
    fn of(
        name: &str,
        shards: &[ShardHandle<Api>],
        lineage: &Lineage,
        others: Vec<(String, OwnedFd)>,
    ) -> io::Result<Self> {
        if name.contains('\n') || others.iter().any(|(name, _)| name.contains('\n')) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a name of more than one line"));
        }
        let greeting = format!("{}\n", letter::GREETING);
        let mut will = Will { letter: greeting, descriptors: Vec::new(), receivers: Vec::new() };
        Line::Name(name.to_owned()).write(&mut will.letter);
        Line::Generation(lineage.next_generation()).write(&mut will.letter);
        Line::Secrets(Box::new(lineage.secrets.to_bytes())).write(&mut will.letter);
        if let Some(key) = lineage.secrets.previous_token_key() {
            Line::PreviousKey(Box::new(key)).write(&mut will.letter);
        }
        for (number, shard) in (0..=u8::MAX).zip(shards) {
            for (id, socket) in shard.clone_sockets()? {
                will.leave(socket.into(), |descriptor| Line::Socket(number, id.0, descriptor));
            }
            let (give, take) = relay::pair()?;
            will.leave(give, |descriptor| Line::Elder(lineage.generation, number, descriptor));
            will.receivers.push(take);
        }
        for elder in lineage.living() {
            for (number, way) in (0..=u8::MAX).zip(&elder.shards) {
                let Some(way) = way.as_ref().filter(|way| way.is_open()) else { continue };
                let way = way.as_fd().try_clone_to_owned()?;
                will.leave(way, |descriptor| Line::Elder(elder.generation, number, descriptor));
            }
        }
        for (name, descriptor) in others {
            will.leave(descriptor, |descriptor| Line::Descriptor(descriptor, name));
        }
        will.letter.push_str(letter::END);
        will.letter.push('\n');
        Ok(will)
    }

    fn leave(&mut self, descriptor: OwnedFd, line: impl FnOnce(i32) -> Line) {
        line(descriptor.as_raw_fd()).write(&mut self.letter);
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
struct Conversation<'a> {
    shards: &'a [ShardHandle<Api>],
    stream: BufReader<UnixStream>,
    receivers: Vec<RelayReceiver>,
}

impl Conversation<'_> {
    /// Stops receiving, and says which handshakes were begun.
    async fn let_go(&mut self) -> io::Result<()> {
        let mut answer = String::new();
        for (shard, receiver) in self.shards.iter().zip(std::mem::take(&mut self.receivers)) {
            for begun in shard.stop_receiving(receiver) {
                Line::Begun(begun).write(&mut answer);
            }
        }
        answer.push_str(letter::GO);
        answer.push('\n');
        self.stream.write_all(answer.as_bytes()).await
    }

    /// Waits for one of these words. What is not known is skipped.
    async fn hear(&mut self, words: &[&'static str]) -> io::Result<&'static str> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.stream.read_line(&mut line).await? == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the successor did not take over"));
            }
            let line = line.trim_end();
            if let Some(reason) = line.strip_prefix(letter::SORRY) {
                return Err(io::Error::other(format!("the successor gave up: {reason}")));
            }
            if let Some(word) = words.iter().find(|word| **word == line) {
                return Ok(word);
            }
        }
    }
}

/// A hand-over that may fail: if it is dropped before it has succeeded, all is as before, and the program is gone.
struct Attempt<'a> {
    parts: &'a [Part<'a>],
    conversations: Vec<Conversation<'a>>,
    child: Started,
}

impl Attempt<'_> {
    /// All endpoints that are taken over change hands together, when the successor is ready for each of them.
    async fn talk(&mut self) -> io::Result<()> {
        let mut taken = Vec::new();
        for conversation in &mut self.conversations {
            if conversation.hear(&[letter::READY, letter::DECLINED]).await? == letter::READY {
                taken.push(conversation);
            }
        }
        if taken.is_empty() {
            return Err(io::Error::other("the successor takes nothing over"));
        }
        for conversation in &mut taken {
            conversation.let_go().await?;
        }
        for conversation in &mut taken {
            conversation.hear(&[letter::SERVING]).await?;
        }
        Ok(())
    }

    fn shards(&self) -> impl Iterator<Item = &ShardHandle<Api>> {
        self.parts.iter().flat_map(|(_, shards)| *shards)
    }

    fn succeed(mut self) -> io::Result<Child> {
        for shard in self.shards() {
            shard.with(|cx, api| api.drain(cx));
        }
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
        match tokio::time::timeout(LAST_WORDS, ended).await {
            Ok(Some(status)) => {
                io::Error::other(format!("the successor ended before it had taken over: {status}"))
            }
            _ => error,
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.child.0.is_none() {
            return;
        }
        // Only one generation may receive, and this one is going to. The program may have been started by what was
        // started here, and live on: it is told.
        for conversation in &self.conversations {
            let _ = conversation.stream.get_ref().try_write(letter::NEVER_MIND);
        }
        self.child.end();
        self.shards().filter(|shard| !shard.is_receiving()).for_each(|shard| shard.begin_receiving(&[]));
    }
}

/// See [`crate::Generation::take_over`].
pub(crate) async fn take_over(parts: &[Part<'_>]) -> io::Result<()> {
    let mut taking = Vec::new();
    for (_, shards) in parts {
        let Some(predecessor) = Lineage::of(shards)?.take_predecessor() else { continue };
        predecessor.set_nonblocking(true)?;
        taking.push((shards, BufReader::new(UnixStream::from_std(predecessor)?), Vec::new()));
    }
    // If the older one dies meanwhile, nobody receives, and there is nothing to wait for but its last words.
    for (_, predecessor, _) in &mut taking {
        let _ = say(predecessor, letter::READY).await;
    }
    for (_, predecessor, begun) in &mut taking {
        *begun = handshakes(predecessor).await?;
    }
    for (shards, _, begun) in &taking {
        shards.iter().for_each(|shard| shard.begin_receiving(begun));
    }
    for (_, predecessor, _) in &mut taking {
        let _ = say(predecessor, letter::SERVING).await;
    }
    Ok(())
}

async fn say(stream: &mut BufReader<UnixStream>, word: &str) -> io::Result<()> {
    stream.write_all(format!("{word}\n").as_bytes()).await
}

/// What the older generation says before `go`, or before it dies. An error if it has given up waiting.
async fn handshakes(stream: &mut BufReader<UnixStream>) -> io::Result<Vec<Begun>> {
    let (mut handshakes, mut line) = (Vec::new(), String::new());
    loop {
        line.clear();
        match stream.read_line(&mut line).await {
            Err(_) | Ok(0) => return Ok(handshakes),
            Ok(_) if line.as_bytes() == letter::NEVER_MIND => return Err(letter::too_late()),
            Ok(_) if line.trim_end() == letter::GO => return Ok(handshakes),
            Ok(_) => handshakes.extend(match Line::read(line.trim_end()) {
                Some(Line::Begun(begun)) => Some(begun),
                _ => None,
            }),
        }
    }
}
