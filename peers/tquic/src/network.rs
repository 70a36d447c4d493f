//! The loop around TQUIC: many datagrams are received, and sent, with one call.

use anyhow::{Context, Result};
use peer_perf::socket::{ROOM, Received, SEGMENTS, Socket};
use std::io::IoSlice;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tquic::{Endpoint, PacketInfo, PacketSendHandler};

/// Calls to receive in a row at most before connections send.
const CALLS: usize = 16;

pub struct Network {
    socket: Rc<Socket>,
    input: Vec<u8>,
    /// Whether the last turn brought something.
    busy: bool,
}

impl Network {
    pub fn new(socket: Rc<Socket>) -> Self {
        Self { socket, input: vec![0; ROOM], busy: true }
    }

    /// Lets the connections work, and takes in what comes, for which it waits so long at most.
    pub fn turn(&mut self, endpoint: &mut Endpoint, most: Option<Duration>) -> Result<()> {
        endpoint.process_connections()?;
        if !self.busy {
            self.socket.wait([endpoint.timeout(), most].into_iter().flatten().min())?;
        }
        self.busy = false;
        for _ in 0..CALLS {
            let Some(Received { len, segment, from }) = self.socket.receive(&mut self.input)? else { break };
            self.busy = true;
            let info = PacketInfo { src: from, dst: self.socket.local(), time: Instant::now() };
            for datagram in self.input[..len].chunks_mut(segment.max(1)) {
                // Whatever is wrong with it is told by the connection's end.
                let _ = endpoint.recv(datagram, &info);
            }
        }
        endpoint.on_timeout(Instant::now());
        Ok(())
    }
}

/// What TQUIC hands packets to.
pub struct Sender(pub Rc<Socket>);

impl PacketSendHandler for Sender {
    fn on_packets_send(&self, packets: &[(Vec<u8>, PacketInfo)]) -> tquic::Result<usize> {
        let sent = self.send(packets);
        sent.map_err(|error| tquic::Error::IoError(format!("{error:#}")))?;
        Ok(packets.len())
    }
}

impl Sender {
    /// Those of equal size in a row go together.
    fn send(&self, mut packets: &[(Vec<u8>, PacketInfo)]) -> Result<()> {
        while let Some((first, info)) = packets.first() {
            let (size, to) = (first.len(), info.dst);
            let count = together(packets, size, to);
            let slices: Vec<_> = packets.iter().take(count).map(|(packet, _)| IoSlice::new(packet)).collect();
            self.0.send_slices(&slices, size, to).context("sending")?;
            packets = &packets[count..];
        }
        Ok(())
    }
}

/// How many packets a call takes: the last of them may be shorter than the others.
fn together(packets: &[(Vec<u8>, PacketInfo)], size: usize, to: SocketAddr) -> usize {
    let mut count = 0;
    for (packet, info) in packets.iter().take(SEGMENTS) {
        if packet.len() > size || info.dst != to {
            break;
        }
        count += 1;
        if packet.len() < size {
            break;
        }
    }
    count
}
