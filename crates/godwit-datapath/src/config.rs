//! Settings of a socket.

use std::net::UdpSocket;
use std::str::FromStr;
use std::time::Duration;

/// Which implementation drives the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Backend {
    /// The best there is for the system.
    #[default]
    Native,
    /// The portable one, on every system.
    Portable,
}

/// Whether the kernel is to hold packets back until they are to leave (`SO_TXTIME`), instead of the program's waking for
/// every few of them. Only the queueing discipline `fq` does so, and others say nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DepartureTimes {
    /// No.
    #[default]
    Off,
    /// If `fq` is the queueing discipline of [`SocketConfig::interface`], or of all interfaces that are up but the
    /// loopback, when the socket is made.
    Auto,
    /// Yes: whoever says so knows that packets leave by an interface that has `fq`. Elsewhere they leave in bunches, and
    /// round-trip times are found too short.
    On,
}

impl FromStr for DepartureTimes {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "off" => Ok(DepartureTimes::Off),
            "auto" => Ok(DepartureTimes::Auto),
            "on" => Ok(DepartureTimes::On),
            _ => Err("expected one of off, auto, on"),
        }
    }
}

/// Settings of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketConfig {
    /// Bytes of receive buffer asked for; the system may grant less. 0 leaves it alone. Default 4 MiB.
    pub recv_buffer: usize,
    /// Bytes of send buffer asked for; the system may grant less. 0 leaves it alone. Default 4 MiB.
    pub send_buffer: usize,
    /// Whether several sockets may share the address (`SO_REUSEPORT`). Default false.
    pub reuse_port: bool,
    /// Whether the address need not be one of this machine's yet (`IP_FREEBIND`, Linux only): nothing comes until it is.
    /// Default false.
    pub free_bind: bool,
    /// Whether an IPv6 socket refuses IPv4. Default false.
    pub only_v6: bool,
    /// Whether segmentation offload may be used for sending. Default true.
    pub gso: bool,
    /// Whether received datagrams may be merged. Default true.
    pub gro: bool,
    /// The network interface through which to send and receive, by name. On Linux before 5.7 without privilege, and
    /// for inherited sockets that are bound to an interface already, it is chosen for sending only. Linux only:
    /// elsewhere binding fails. Default any.
    pub interface: Option<String>,
    /// Whether to ask what the network says of datagrams that did not arrive (ICMP). Linux, native implementation only;
    /// elsewhere without effect. Default false.
    pub report_unreachable: bool,
    /// Whether the kernel is to hold packets back until they are to leave. Linux, native implementation only; elsewhere
    /// without effect. Default off: what it is worth has been found in simulations only, for want of a machine with `fq`,
    /// and where the times are not kept after all, less is carried than without.
    pub departure_times: DepartureTimes,
    /// For how long the kernel looks at the network interface itself when it is asked for datagrams and has none
    /// (`SO_BUSY_POLL`, with `SO_PREFER_BUSY_POLL` where it has that), in whole microseconds. It is of use with network cards
    /// whose drivers have it, to whoever asks again and again; loopback and most virtual cards have nothing to look at. Needs
    /// privilege (`CAP_NET_ADMIN`), unless the system's own value (`net.core.busy_read`) is as long; what the kernel refuses is
    /// left out. Linux, native implementation only; elsewhere without effect. Default zero, which leaves it as the system has it.
    pub busy_poll: Duration,
    /// Which implementation to use. Default native.
    pub backend: Backend,
}

impl Default for SocketConfig {
    fn default() -> Self {
        SocketConfig {
            recv_buffer: 4 << 20,
            send_buffer: 4 << 20,
            reuse_port: false,
            free_bind: false,
            only_v6: false,
            gso: true,
            gro: true,
            interface: None,
            report_unreachable: false,
            departure_times: DepartureTimes::Off,
            busy_poll: Duration::ZERO,
            backend: Backend::Native,
        }
    }
}

/// The buffers granted, for receiving and for sending. Linux counts its own bookkeeping twice.
pub(crate) fn granted_buffers(socket: &UdpSocket) -> (usize, usize) {
    let socket = socket2::SockRef::from(socket);
    let share = if cfg!(target_os = "linux") { 2 } else { 1 };
    (socket.recv_buffer_size().unwrap_or(0) / share, socket.send_buffer_size().unwrap_or(0) / share)
}
