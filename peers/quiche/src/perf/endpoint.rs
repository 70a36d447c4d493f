//! A socket and the connections over it.

use super::roles::Role;
use crate::session::{ID_LEN, identity};
use anyhow::{Result, bail};
use peer_perf::MTU;
use peer_perf::socket::{ROOM, Received, SEGMENTS, Socket};
use quiche::{Config, Connection, ConnectionId, Header, RecvInfo, Type};
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Calls to receive in a row at most before connections send.
const CALLS: usize = 16;
const PACKET: usize = MTU as usize;

pub struct Endpoint {
    socket: Socket,
    config: Config,
    server: bool,
    sessions: HashMap<u64, Session>,
    /// By the connection ids that peers send to.
    routes: HashMap<Vec<u8>, u64>,
    timers: BTreeSet<(Instant, u64)>,
    /// Who has received something, or whose time has come.
    touched: Vec<u64>,
    next: u64,
    /// Whether nothing was left the last time that the socket was asked.
    dry: bool,
    input: Vec<u8>,
    output: Vec<u8>,
}

pub struct Session {
    pub connection: Connection,
    pub role: Role,
    pub begun: Instant,
    ids: Vec<Vec<u8>>,
    timer: Option<Instant>,
    touched: bool,
}

impl Endpoint {
    pub fn new(socket: Socket, config: Config, server: bool) -> Self {
        Self {
            socket,
            config,
            server,
            sessions: HashMap::new(),
            routes: HashMap::new(),
            timers: BTreeSet::new(),
            touched: Vec::new(),
            next: 0,
            dry: true,
            input: vec![0; ROOM],
            output: vec![0; (SEGMENTS + 1) * PACKET],
        }
    }

    pub fn connect(&mut self, remote: SocketAddr, role: Role) -> Result<u64> {
        let id = identity();
        let (name, local) = (Some("localhost"), self.socket.local());
        let connection =
            quiche::connect(name, &ConnectionId::from_ref(&id), local, remote, &mut self.config)?;
        let number = self.insert(connection, vec![id.to_vec()], role);
        self.touch(number);
        Ok(number)
    }

    pub fn session(&mut self, number: u64) -> Option<&mut Session> {
        self.sessions.get_mut(&number)
    }

    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    fn insert(&mut self, connection: Connection, ids: Vec<Vec<u8>>, role: Role) -> u64 {
        let number = self.next;
        self.next += 1;
        for id in &ids {
            self.routes.insert(id.clone(), number);
        }
        let begun = Instant::now();
        self.sessions.insert(number, Session { connection, role, begun, ids, timer: None, touched: false });
        number
    }

    fn touch(&mut self, number: u64) {
        if let Some(session) = self.sessions.get_mut(&number).filter(|session| !session.touched) {
            session.touched = true;
            self.touched.push(number);
        }
    }

    /// Takes in what has come, or waits for it, at most so long; returns who has something to do.
    pub fn turn(&mut self, most: Option<Duration>) -> Result<Vec<u64>> {
        if !self.dry {
            self.take_in()?;
        }
        self.expire();
        if self.touched.is_empty() {
            let timer = self.timers.first().map(|(at, _)| at.saturating_duration_since(Instant::now()));
            self.socket.wait([timer, most].into_iter().flatten().min())?;
            self.take_in()?;
            self.expire();
        }
        Ok(std::mem::take(&mut self.touched))
    }

    fn take_in(&mut self) -> Result<()> {
        let mut input = std::mem::take(&mut self.input);
        self.dry = false;
        for _ in 0..CALLS {
            let Some(Received { len, segment, from }) = self.socket.receive(&mut input)? else {
                self.dry = true;
                break;
            };
            for datagram in input[..len].chunks_mut(segment.max(1)) {
                self.receive(datagram, from)?;
            }
        }
        self.input = input;
        Ok(())
    }

    fn receive(&mut self, datagram: &mut [u8], from: SocketAddr) -> Result<()> {
        let short = datagram.first().is_some_and(|first| first & 0x80 == 0);
        let known = if short {
            datagram.get(1..=ID_LEN).and_then(|id| self.routes.get(id)).copied()
        } else {
            match Header::from_slice(datagram, ID_LEN) {
                Ok(header) => match self.routes.get(header.dcid.as_ref()) {
                    Some(number) => Some(*number),
                    None => self.accept(&header, from)?,
                },
                Err(_) => None,
            }
        };
        let Some(session) = known.and_then(|number| self.sessions.get_mut(&number)) else { return Ok(()) };
        // Whatever is wrong with it is told by the connection's end.
        let _ = session.connection.recv(datagram, RecvInfo { from, to: self.socket.local() });
        known.into_iter().for_each(|number| self.touch(number));
        Ok(())
    }

    fn accept(&mut self, header: &Header<'_>, from: SocketAddr) -> Result<Option<u64>> {
        if !self.server || header.ty != Type::Initial || !quiche::version_is_supported(header.version) {
            return Ok(None);
        }
        let (id, local) = (identity(), self.socket.local());
        let connection = quiche::accept(&ConnectionId::from_ref(&id), None, local, from, &mut self.config)?;
        let ids = vec![id.to_vec(), header.dcid.to_vec()];
        Ok(Some(self.insert(connection, ids, Role::server())))
    }

    fn expire(&mut self) {
        let now = Instant::now();
        while let Some((_, number)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.pop_first();
            if let Some(session) = self.sessions.get_mut(&number) {
                session.timer = None;
                session.connection.on_timeout();
            }
            self.touch(number);
        }
    }

    /// Sends what a connection has to send, sets its timer, and forgets it if it is over.
    pub fn settle(&mut self, number: u64) -> Result<()> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        session.touched = false;
        flush(&self.socket, &mut session.connection, &mut self.output)?;
        let timer = session.connection.timeout_instant();
        if timer != session.timer {
            if let Some(at) = session.timer {
                self.timers.remove(&(at, number));
            }
            self.timers.extend(timer.map(|at| (at, number)));
            session.timer = timer;
        }
        if session.connection.is_closed() {
            if let Some(at) = session.timer {
                self.timers.remove(&(at, number));
            }
            for id in &session.ids {
                self.routes.remove(id);
            }
            self.sessions.remove(&number);
        }
        Ok(())
    }
}

/// Sends packets of equal size with one call, as many as there are and fit into it.
fn flush(socket: &Socket, connection: &mut Connection, output: &mut [u8]) -> Result<()> {
    // A packet that was written behind others of another size is the first of the next call.
    let (mut len, mut segment, mut to) = (0, 0, None);
    loop {
        let written = match connection.send(&mut output[len..len + PACKET]) {
            Ok((written, info)) => Some((written, info.to)),
            Err(quiche::Error::Done) => None,
            Err(error) => bail!("nothing can be sent: {error}"),
        };
        let Some((written, address)) = written else { break };
        if segment == 0 {
            (segment, to) = (written, Some(address));
        }
        if written > segment {
            to.map_or(Ok(()), |to| socket.send(&output[..len], segment, to))?;
            output.copy_within(len..len + written, 0);
            (len, segment, to) = (0, written, Some(address));
        }
        len += written;
        if written < segment || len + segment > SEGMENTS * PACKET {
            to.map_or(Ok(()), |to| socket.send(&output[..len], segment, to))?;
            (len, segment) = (0, 0);
        }
    }
    match to.filter(|_| len > 0) {
        Some(to) => socket.send(&output[..len], segment, to),
        None => Ok(()),
    }
}
