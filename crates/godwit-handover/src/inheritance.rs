//! What a process got from an older generation.

use crate::VARIABLE;
use crate::generation::EndpointGeneration;
use crate::older::{OlderGeneration, OlderGenerations};
use crate::protocol::{self, Line};
use crate::relay::RelaySender;
use godwit_base::SocketId;
use godwit_datapath::{Datapath, SocketConfig, adopt};
use godwit_os::descriptors;
use godwit_transport::tls::secrets::ServerSecrets;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// How long reading an offer may take. It was written before this process was started.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// An offer's lines at most.
const MAX_LINES: usize = 1 << 20;

/// What an older generation of this program has left to it: its sockets, its secrets, the ways to the connections
/// that it and still older ones have, and what else it was asked to pass on. Make an endpoint of it, and have that take
/// over when all is in place.
///
/// If it is dropped instead, or the process ends, the older generation goes on as before.
#[derive(Debug)]
pub struct Inheritance {
    name: String,
    generation: u8,
    secrets: Arc<ServerSecrets>,
    sockets: BTreeMap<u8, Vec<(SocketId, UdpSocket)>>,
    /// By generation and shard.
    older: BTreeMap<u8, BTreeMap<u8, OwnedFd>>,
    descriptors: Vec<(String, OwnedFd)>,
    predecessor: UnixStream,
}

impl Inheritance {
    /// What this process was started with; `None` if it was not started by an older generation, or has asked before.
    ///
    /// # Errors
    /// If what the older generation says makes no sense, it has given up waiting, or it hands over several endpoints.
    /// The process should end then.
    pub fn from_env() -> io::Result<Option<Inheritance>> {
        let mut all = Self::all_from_env()?;
        if all.len() > 1 {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "the older process hands over several endpoints",
            ));
        }
        Ok(all.pop())
    }

    /// As [`Inheritance::from_env`], for an older generation that hands over several endpoints
    /// ([`hand_over`](crate::hand_over())): one for each. Those that are of no use any more have to be
    /// [declined](Inheritance::decline).
    ///
    /// # Errors
    /// If what the older generation says makes no sense, or it has given up waiting. The process should end then.
    pub fn all_from_env() -> io::Result<Vec<Inheritance>> {
        let numbers = std::env::var(VARIABLE).unwrap_or_default();
        let mut all = Vec::new();
        for number in numbers.split(',') {
            let stream = number.parse::<RawFd>().map_err(io::Error::other).and_then(descriptors::take_over);
            match stream {
                Ok(stream) => all.push(Self::read(stream.into())?),
                // A variable that was meant for an ancestor of this process names nothing that was passed on to it.
                Err(_) if all.is_empty() => return Ok(all),
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// What the older generation calls the endpoint; empty if it has one alone.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The addresses of the sockets. Those of several shards have the same.
    ///
    /// # Errors
    /// None that a correct system gives.
    pub fn local_addrs(&self) -> io::Result<Vec<SocketAddr>> {
        let first = self.sockets.values().next();
        first.into_iter().flatten().map(|(_, socket)| socket.local_addr()).collect()
    }

    /// The secrets of the older generation, the keys before its last change included: for tickets that it has issued,
    /// or to change the keys.
    pub fn secrets(&self) -> &Arc<ServerSecrets> {
        &self.secrets
    }

    /// Leaves the endpoint to the older generation, which serves the connections that it has to their end and takes no
    /// new ones. Others that were handed over with it are taken over nevertheless.
    ///
    /// # Errors
    /// If the older generation has died.
    pub fn decline(self) -> io::Result<()> {
        (&self.predecessor).write_all(format!("{}\n", protocol::DECLINED).as_bytes())
    }

    /// For saying something to the older generation later.
    ///
    /// # Errors
    /// If the process has too many descriptors.
    pub fn predecessor(&self) -> io::Result<Predecessor> {
        Ok(Predecessor(self.stream()?))
    }

    /// The number of this generation. It is one more than that of the older one, with 0 after 255, unless
    /// that number is still in use.
    pub fn generation(&self) -> u8 {
        self.generation
    }

    /// How many shards the older generation has: this one must have as many.
    pub fn shards(&self) -> usize {
        self.sockets.len()
    }

    /// Takes out the descriptors that were passed on under `name`, in their order.
    pub fn take_descriptors(&mut self, name: &str) -> Vec<OwnedFd> {
        self.descriptors
            .extract_if(.., |(known, _)| known == name)
            .map(|(_, descriptor)| descriptor)
            .collect()
    }

    pub(crate) fn read(predecessor: UnixStream) -> io::Result<Inheritance> {
        predecessor.set_nonblocking(false)?;
        predecessor.set_read_timeout(Some(READ_TIMEOUT))?;
        let lines = lines_of(&predecessor)?;
        let (mut generation, mut secrets, mut previous) = (None, None, None);
        let mut name = String::new();
        let (mut sockets, mut older) = (BTreeMap::<u8, Vec<_>>::new(), BTreeMap::<u8, BTreeMap<_, _>>::new());
        let mut others = Vec::new();
        for line in lines {
            match line {
                Line::Name(given) => name = given,
                Line::PreviousKey(key) => previous = Some(*key),
                Line::Generation(number) => generation = Some(number),
                Line::Secrets(bytes) => secrets = Some(ServerSecrets::from_bytes(&bytes)),
                Line::Socket(shard, id, number) => {
                    let socket = UdpSocket::from(descriptors::take_over(number)?);
                    sockets.entry(shard).or_default().push((SocketId(id), socket));
                }
                Line::OlderShard(generation, shard, number) => {
                    older.entry(generation).or_default().insert(shard, descriptors::take_over(number)?);
                }
                Line::Descriptor(number, name) => others.push((name, descriptors::take_over(number)?)),
                Line::Begun(_) => {}
            }
        }
        let (Some(generation), Some(secrets)) = (generation, secrets) else { return Err(nonsense()) };
        let secrets = Arc::new(secrets.with_previous_token_key(previous));
        Ok(Inheritance { name, generation, secrets, sockets, older, descriptors: others, predecessor })
    }

    fn older(&self) -> io::Result<OlderGenerations> {
        let one = |(generation, ways): (&u8, &BTreeMap<u8, OwnedFd>)| {
            let last = ways.last_key_value().map_or(0, |(shard, _)| *shard);
            let way = |shard| match ways.get(&shard) {
                Some(way) => Ok(Some(RelaySender::new(way.try_clone()?))),
                None => Ok(None),
            };
            let shards = (0..=last).map(way).collect::<io::Result<_>>()?;
            Ok(OlderGeneration { generation: *generation, shards })
        };
        Ok(OlderGenerations::new(self.older.iter().map(one).collect::<io::Result<_>>()?))
    }

    fn stream(&self) -> io::Result<UnixStream> {
        self.predecessor.try_clone()
    }
}

/// The sockets of each shard, made usable as `config` says.
///
/// # Errors
/// If the process has too many descriptors, or a socket's options cannot be set.
pub fn sockets(inheritance: &Inheritance, config: &SocketConfig) -> io::Result<Vec<Vec<Box<dyn Datapath>>>> {
    let one = |(id, socket): &(SocketId, UdpSocket)| Ok(adopt(*id, socket.try_clone()?, config)?);
    inheritance.sockets.values().map(|sockets| sockets.iter().map(one).collect()).collect()
}

/// The place among the generations of an endpoint that is made of `inheritance` and has `secrets`. Its shards have to
/// [join](EndpointGeneration::join) it.
///
/// # Errors
/// If the process has too many descriptors.
pub fn generation(inheritance: &Inheritance, secrets: Arc<ServerSecrets>) -> io::Result<EndpointGeneration> {
    let (older, predecessor) = (inheritance.older()?, inheritance.stream()?);
    Ok(EndpointGeneration::new(secrets, inheritance.generation, older, Some(predecessor)))
}

/// The older generation, as long as it has not handed over.
#[derive(Debug)]
pub struct Predecessor(UnixStream);

impl Predecessor {
    /// Says why this process is not going to take over: the first line of it is in the error that the older one
    /// gets. The process should end then.
    pub fn give_up(&self, why: &str) {
        let line = why.lines().next().unwrap_or_default();
        // One that has died need not know.
        let _ = (&self.0).write_all(format!("{}{line}\n", protocol::SORRY).as_bytes());
    }
}

/// An offer's lines that are understood. Behind its end there is nothing yet, unless the older generation has given up
/// waiting meanwhile.
fn lines_of(stream: &UnixStream) -> io::Result<Vec<Line>> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut lines) = (String::new(), Vec::new());
    for number in 0..MAX_LINES {
        line.clear();
        reader.read_line(&mut line)?;
        match line.trim_end_matches('\n') {
            protocol::GREETING if number == 0 => {}
            _ if number == 0 => return Err(nonsense()),
            protocol::END if reader.buffer().starts_with(protocol::NEVER_MIND) => {
                return Err(protocol::too_late());
            }
            protocol::END => return Ok(lines),
            "" => return Err(ErrorKind::UnexpectedEof.into()),
            line => lines.extend(Line::read(line)),
        }
    }
    Err(nonsense())
}

fn nonsense() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "what the older process says makes no sense")
}
