//! Whether the kernel really segments and merges: found out by doing it once over loopback.
//!
//! Asking is not enough. Some kernels and sandboxes accept the options and then do nothing, or refuse the
//! send; so a few segments are sent to oneself, and what arrives is counted.

use super::cmsg::Control;
use super::sockaddr::Name;
use super::sys::{self, Incoming, Outgoing};
use godwit_base::SendBatch;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::OnceLock;

/// What works here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offload {
    /// The most segments that one send carries; 1 if none can be sent together.
    pub(super) gso_segments: usize,
    /// Whether datagrams arrive merged.
    pub(super) gro: bool,
}

impl Offload {
    const NONE: Offload = Offload { gso_segments: 1, gro: false };
}

/// Measured once in the life of the process.
pub(super) fn offload() -> Offload {
    static MEASURED: OnceLock<Offload> = OnceLock::new();
    *MEASURED.get_or_init(|| {
        let offload = measure(SendBatch::MAX_SEGMENTS).unwrap_or(Offload::NONE);
        tracing::debug!(gso_segments = offload.gso_segments, gro = offload.gro, "UDP offload measured");
        offload
    })
}

fn measure(segments: usize) -> io::Result<Offload> {
    const SEGMENT: usize = 100;
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    let gro_set = sys::set_option(&socket, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok();
    let (mut name, mut control) = (Name::default(), Control::default());
    name.set(socket.local_addr()?);
    control.write(true, 0, None, Some(SEGMENT as u16));
    let payload = vec![0x40; segments * SEGMENT];
    if sys::send_messages(&socket, &[Outgoing { name: &name, control: &control, payload: &payload }]).is_err()
    {
        return Ok(Offload { gro: gro_set, ..Offload::NONE });
    }
    // Loopback delivers inside the send. What is not there now does not come.
    let (mut bytes, mut largest, mut merged) = (0, 0, false);
    let mut slots = [vec![0; payload.len()].into_boxed_slice()];
    let mut incoming = [Incoming::default()];
    while sys::receive_messages(&socket, &mut slots, &mut incoming, sys::Patience::None).is_ok() {
        let [one] = &incoming;
        let stride = one.control.read().stride;
        merged |= stride.is_some_and(|stride| stride < one.len);
        bytes += one.len;
        largest = largest.max(stride.unwrap_or(one.len));
    }
    let segmented = bytes == payload.len() && largest == SEGMENT;
    Ok(Offload { gso_segments: if segmented { segments } else { 1 }, gro: gro_set && merged })
}
