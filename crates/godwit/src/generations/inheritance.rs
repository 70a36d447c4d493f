//! What a process got from an older generation.

use super::VARIABLE;
use super::letter::{self, Line};
use crate::builder::Groups;
use godwit_base::SocketId;
use godwit_datapath::relay::RelaySender;
use godwit_datapath::{BindError, SocketConfig, adopt, descriptors};
use godwit_engine::{Elder, Elders};
use godwit_transport::secrets::ServerSecrets;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::net::UdpSocket;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// How long a letter may take. It was written before this process was started.
const PATIENCE: Duration = Duration::from_secs(10);
/// A letter's lines at most.
const MAX_LINES: usize = 1 << 20;

/// What an older generation of this program has left to it: its sockets, its secrets, the ways to the connections
/// that it and still older ones have, and what else it was asked to pass on. Give it to
/// [`EndpointBuilder::inherit`](crate::EndpointBuilder::inherit), and call
/// [`Endpoint::take_over`](crate::Endpoint::take_over) when all is in place.
///
/// If it is dropped instead, or the process ends, the older generation goes on as before.
#[derive(Debug)]
pub struct Inheritance {
    pub(crate) generation: u8,
    pub(crate) secrets: Arc<ServerSecrets>,
    sockets: BTreeMap<u8, Vec<(SocketId, UdpSocket)>>,
    /// By generation and shard.
    elders: BTreeMap<u8, BTreeMap<u8, OwnedFd>>,
    descriptors: Vec<(String, OwnedFd)>,
    predecessor: UnixStream,
}

impl Inheritance {
    /// What this process was started with; `None` if it was not started by an older generation, or has asked before.
    ///
    /// # Errors
    /// If what the older generation says makes no sense, or it has given up waiting. The process should end then.
    pub fn from_env() -> io::Result<Option<Inheritance>> {
        let Some(number) = std::env::var_os(VARIABLE) else { return Ok(None) };
        let number: Option<RawFd> = number.to_str().and_then(|number| number.parse().ok());
        // A variable that was meant for an ancestor of this process names nothing that was passed on to it.
        let Some(Ok(stream)) = number.map(descriptors::take_over) else { return Ok(None) };
        Self::read(stream.into()).map(Some)
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

    pub(super) fn read(predecessor: UnixStream) -> io::Result<Inheritance> {
        predecessor.set_nonblocking(false)?;
        predecessor.set_read_timeout(Some(PATIENCE))?;
        let lines = lines_of(&predecessor)?;
        let (mut generation, mut secrets) = (None, None);
        let (mut sockets, mut elders) =
            (BTreeMap::<u8, Vec<_>>::new(), BTreeMap::<u8, BTreeMap<_, _>>::new());
        let mut others = Vec::new();
        for line in lines {
            match line {
                Line::Generation(number) => generation = Some(number),
                Line::Secrets(bytes) => secrets = Some(Arc::new(ServerSecrets::from_bytes(&bytes))),
                Line::Socket(shard, id, number) => {
                    let socket = UdpSocket::from(descriptors::take_over(number)?);
                    sockets.entry(shard).or_default().push((SocketId(id), socket));
                }
                Line::Elder(generation, shard, number) => {
                    elders.entry(generation).or_default().insert(shard, descriptors::take_over(number)?);
                }
                Line::Descriptor(number, name) => others.push((name, descriptors::take_over(number)?)),
                Line::Begun(_) => {}
            }
        }
        let (Some(generation), Some(secrets)) = (generation, secrets) else { return Err(nonsense()) };
        Ok(Inheritance { generation, secrets, sockets, elders, descriptors: others, predecessor })
    }

    /// The sockets of each shard.
    pub(crate) fn sockets(
        &self,
        config: &SocketConfig,
        failed: impl Fn(BindError) -> io::Error,
    ) -> io::Result<Groups> {
        let one =
            |(id, socket): &(SocketId, UdpSocket)| adopt(*id, socket.try_clone()?, config).map_err(&failed);
        self.sockets.values().map(|sockets| sockets.iter().map(one).collect()).collect()
    }

    pub(crate) fn elders(&self) -> io::Result<Elders> {
        let elder = |(generation, ways): (&u8, &BTreeMap<u8, OwnedFd>)| {
            let last = ways.last_key_value().map_or(0, |(shard, _)| *shard);
            let way = |shard| match ways.get(&shard) {
                Some(way) => Ok(Some(RelaySender::new(way.try_clone()?))),
                None => Ok(None),
            };
            let shards = (0..=last).map(way).collect::<io::Result<_>>()?;
            Ok(Elder { generation: *generation, shards })
        };
        Ok(Elders::new(self.elders.iter().map(elder).collect::<io::Result<_>>()?))
    }

    pub(crate) fn predecessor(&self) -> io::Result<UnixStream> {
        self.predecessor.try_clone()
    }
}

/// A letter's lines that are understood. Behind its end there is nothing yet, unless the older generation has given up
/// waiting meanwhile.
fn lines_of(stream: &UnixStream) -> io::Result<Vec<Line>> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut lines) = (String::new(), Vec::new());
    for number in 0..MAX_LINES {
        line.clear();
        reader.read_line(&mut line)?;
        match line.trim_end_matches('\n') {
            letter::GREETING if number == 0 => {}
            _ if number == 0 => return Err(nonsense()),
            letter::END if reader.buffer().starts_with(letter::NEVER_MIND) => return Err(letter::too_late()),
            letter::END => return Ok(lines),
            "" => return Err(ErrorKind::UnexpectedEof.into()),
            line => lines.extend(Line::read(line)),
        }
    }
    Err(nonsense())
}

fn nonsense() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "what the older process says makes no sense")
}
