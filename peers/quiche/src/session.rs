//! A connection and what goes over it.

use crate::requests::Work;
use anyhow::Result;
use quiche::{Connection, ConnectionId, RecvInfo};
use std::fs::OpenOptions;
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Instant;

/// Datagrams sent in a row at most: whoever wants to send more does not find an end.
const MOST: usize = 10_000;
/// Bytes of our connection ids.
pub const ID_LEN: usize = 16;

pub struct Session {
    pub connection: Connection,
    pub work: Work,
    /// The connection id that the client made up for the server.
    first: Option<Vec<u8>>,
    out: Vec<u8>,
    waiting: Option<(Vec<u8>, quiche::SendInfo)>,
}

/// Random bytes, as good as a peer on the loopback needs them.
pub fn identity() -> [u8; ID_LEN] {
    let random = || RandomState::new().hash_one(0_u8).to_be_bytes();
    let mut id = [0; ID_LEN];
    id[..8].copy_from_slice(&random());
    id[8..].copy_from_slice(&random());
    id
}

impl Session {
    pub fn new(mut connection: Connection, first: Option<Vec<u8>>, work: Work) -> Result<Self> {
        if let Some(name) = std::env::var_os("SSLKEYLOGFILE") {
            connection.set_keylog(Box::new(OpenOptions::new().append(true).create(true).open(name)?));
        }
        Ok(Self { connection, work, first, out: vec![0; 1500], waiting: None })
    }

    /// Whether packets with this id belong here.
    pub fn owns(&self, id: &ConnectionId<'_>) -> bool {
        self.first.as_deref() == Some(id.as_ref()) || self.connection.source_ids().any(|ours| ours == id)
    }

    pub fn deadline(&self) -> Option<Instant> {
        let waiting = self.waiting.as_ref().map(|(_, info)| info.at);
        [self.connection.timeout_instant(), waiting].into_iter().flatten().min()
    }

    pub fn receive(&mut self, datagram: &mut [u8], info: RecvInfo) {
        // Whatever is wrong with it is told by the connection's end.
        let _ = self.connection.recv(datagram, info);
    }

    /// Does what is due, reads, writes and sends.
    pub fn work(&mut self, socket: &UdpSocket) -> Result<()> {
        if self.connection.timeout_instant().is_some_and(|at| at <= Instant::now()) {
            self.connection.on_timeout();
        }
        if self.connection.is_established() {
            while self.connection.scids_left() > 0 {
                let token = u128::from_be_bytes(identity());
                self.connection.new_scid(&ConnectionId::from_ref(&identity()), token, false)?;
            }
        }
        // Other addresses of the peer's are taken as they come.
        while self.connection.path_event_next().is_some() {}
        if self.connection.is_established() || self.connection.is_in_early_data() {
            self.work.go_on(&mut self.connection)?;
        }
        self.send(socket)
    }

    /// Sends everything that may leave now.
    fn send(&mut self, socket: &UdpSocket) -> Result<()> {
        for _ in 0..MOST {
            if self.waiting.is_none() {
                match self.connection.send(&mut self.out) {
                    Ok((len, info)) => self.waiting = Some((self.out[..len].to_vec(), info)),
                    Err(_) => return Ok(()),
                }
            }
            let Some((datagram, info)) = self.waiting.take_if(|(_, info)| info.at <= Instant::now()) else {
                return Ok(());
            };
            let sent = match socket.peer_addr() {
                Ok(_) => socket.send(&datagram),
                Err(_) => socket.send_to(&datagram, info.to),
            };
            match sent {
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => {}
                sent => drop(sent?),
            }
        }
        anyhow::bail!("quiche has sent {MOST} datagrams in a row, and wants to send more")
    }
}
