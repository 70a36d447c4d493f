//! The two sides of a hand-over.

use super::letter::{self, Line};
use super::lineage::Lineage;
use super::{Successor, VARIABLE};
use crate::handler::Api;
use godwit_datapath::descriptors;
use godwit_datapath::relay::{self, RelayReceiver};
use godwit_engine::ShardHandle;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::process::Child;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// How long a program that has given up is waited for, so that it can be said why.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// See [`crate::Endpoint::hand_over`].
pub(crate) async fn hand_over(shards: &[ShardHandle<Api>], successor: Successor) -> io::Result<Child> {
    let lineage = Lineage::of(shards)?;
    let _one = lineage.begin()?;
    if !shards.iter().all(ShardHandle::is_receiving) {
        return Err(io::Error::other("another generation receives from these sockets"));
    }
    let Successor { mut command, descriptors: others, patience } = successor;
    let (mut ours, theirs) = StdStream::pair()?;
    ours.set_nonblocking(true)?;
    let estate = Estate::of(shards, &lineage, others)?;
    ours.write_all(estate.letter.as_bytes())?;
    command.env(VARIABLE, theirs.as_raw_fd().to_string());
    let mut passed = estate.descriptors;
    passed.push(theirs.into());
    descriptors::pass_to(&mut command, passed);
    let stream = BufReader::new(UnixStream::from_std(ours)?);
    // The command goes, and with it what only the program is to have. Whoever does not wait for this any more does not
    // want the program either.
    let started = tokio::task::spawn_blocking(move || command.spawn().map(Started::new)).await;
    let mut attempt = Attempt { shards, stream, child: started.map_err(io::Error::other)?? };
    match tokio::time::timeout(patience, attempt.talk(estate.receivers)).await {
        Ok(Ok(())) => attempt.succeed(),
        Ok(Err(error)) => Err(attempt.why(error).await),
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the successor was not ready in time")),
    }
}

/// What a generation leaves.
struct Estate {
    letter: String,
    descriptors: Vec<OwnedFd>,
    /// This generation's ends of its own relays.
    receivers: Vec<RelayReceiver>,
}

impl Estate {
    fn of(
        shards: &[ShardHandle<Api>],
        lineage: &Lineage,
        others: Vec<(String, OwnedFd)>,
    ) -> io::Result<Self> {
        let greeting = format!("{}\n", letter::GREETING);
        let mut estate = Estate { letter: greeting, descriptors: Vec::new(), receivers: Vec::new() };
        Line::Generation(lineage.next_generation()).write(&mut estate.letter);
        Line::Secrets(Box::new(lineage.secrets.to_bytes())).write(&mut estate.letter);
        for (number, shard) in (0..=u8::MAX).zip(shards) {
            for (id, socket) in shard.clone_sockets()? {
                estate.leave(socket.into(), |descriptor| Line::Socket(number, id.0, descriptor));
            }
            let (give, take) = relay::pair()?;
            estate.leave(give, |descriptor| Line::Elder(lineage.generation, number, descriptor));
            estate.receivers.push(take);
        }
        for elder in lineage.living() {
            for (number, way) in (0..=u8::MAX).zip(&elder.shards) {
                let Some(way) = way.as_ref().filter(|way| way.is_open()) else { continue };
                let way = way.as_fd().try_clone_to_owned()?;
                estate.leave(way, |descriptor| Line::Elder(elder.generation, number, descriptor));
            }
        }
        for (name, descriptor) in others {
            if name.contains('\n') {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "a name of more than one line"));
            }
            estate.leave(descriptor, |descriptor| Line::Descriptor(descriptor, name));
        }
        estate.letter.push_str(letter::END);
        estate.letter.push('\n');
        Ok(estate)
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

/// A hand-over that may fail: if it is dropped before it has succeeded, all is as before, and the program is gone.
struct Attempt<'a> {
    shards: &'a [ShardHandle<Api>],
    stream: BufReader<UnixStream>,
    child: Started,
}

impl Attempt<'_> {
    async fn talk(&mut self, receivers: Vec<RelayReceiver>) -> io::Result<()> {
        let stream = &mut self.stream;
        expect(stream, letter::READY).await?;
        let mut answer = String::new();
        for (shard, receiver) in self.shards.iter().zip(receivers) {
            for begun in shard.stop_receiving(receiver) {
                Line::Begun(begun).write(&mut answer);
            }
        }
        answer.push_str(letter::GO);
        answer.push('\n');
        stream.write_all(answer.as_bytes()).await?;
        expect(stream, letter::SERVING).await
    }

    fn succeed(mut self) -> io::Result<Child> {
        for shard in self.shards {
            shard.with(|cx, api| api.drain(cx));
        }
        self.child.0.take().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// What became of the program, if it has ended.
    async fn why(&mut self, error: io::Error) -> io::Error {
        let Some(child) = &mut self.child.0 else { return error };
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
        let _ = self.stream.get_ref().try_write(letter::NEVER_MIND);
        self.child.end();
        self.shards.iter().filter(|shard| !shard.is_receiving()).for_each(|shard| shard.begin_receiving(&[]));
    }
}

async fn expect(stream: &mut BufReader<UnixStream>, word: &str) -> io::Result<()> {
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the successor did not take over"));
        }
        if line.trim_end() == word {
            return Ok(());
        }
    }
}

/// See [`crate::Endpoint::take_over`].
pub(crate) async fn take_over(shards: &[ShardHandle<Api>]) -> io::Result<()> {
    let Some(predecessor) = Lineage::of(shards)?.take_predecessor() else { return Ok(()) };
    predecessor.set_nonblocking(true)?;
    let mut predecessor = BufReader::new(UnixStream::from_std(predecessor)?);
    // If the older one has died meanwhile, nobody receives, and there is nothing to wait for but its last words.
    let _ = say(&mut predecessor, letter::READY).await;
    let begun = handshakes(&mut predecessor).await?;
    let begun: Vec<_> = begun
        .into_iter()
        .filter_map(|line| if let Line::Begun(begun) = line { Some(begun) } else { None })
        .collect();
    shards.iter().for_each(|shard| shard.begin_receiving(&begun));
    let _ = say(&mut predecessor, letter::SERVING).await;
    Ok(())
}

async fn say(stream: &mut BufReader<UnixStream>, word: &str) -> io::Result<()> {
    stream.write_all(format!("{word}\n").as_bytes()).await
}

/// What the older generation says before `go`, or before it dies. An error if it has given up waiting.
async fn handshakes(stream: &mut BufReader<UnixStream>) -> io::Result<Vec<Line>> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    loop {
        line.clear();
        match stream.read_line(&mut line).await {
            Err(_) | Ok(0) => return Ok(lines),
            Ok(_) if line.as_bytes() == letter::NEVER_MIND => return Err(letter::too_late()),
            Ok(_) if line.trim_end() == letter::GO => return Ok(lines),
            Ok(_) => lines.extend(Line::read(line.trim_end())),
        }
    }
}
