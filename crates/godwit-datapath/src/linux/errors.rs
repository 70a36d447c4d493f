//! What the network says of datagrams that did not arrive: the socket's error queue.
//!
//! With `IP_RECVERR` the kernel queues what ICMP says and fails the next call on the socket with it, whatever that call
//! was about. So whoever gets an error looks here first, and tries again if it was somebody else's.

use super::cmsg::Control;
use super::sockaddr::Name;
use super::sys;
use crate::{Quote, Unreachable, address};
use std::collections::VecDeque;
use std::io;
use std::net::UdpSocket;

/// Reports kept until they are asked for.
const MOST: usize = 32;
/// Entries read at once at most.
const MOST_AT_ONCE: usize = 64;
/// `SO_EE_ORIGIN_ICMP` and `SO_EE_ORIGIN_ICMP6`.
const FROM_NETWORK: [u8; 2] = [2, 3];

/// The error queue of a socket.
#[derive(Debug, Default)]
pub(super) struct ErrorQueue {
    on: bool,
    reports: VecDeque<Unreachable>,
}

impl ErrorQueue {
    /// Has the kernel queue errors of a socket of this family.
    pub(super) fn switch_on(socket: &UdpSocket, v6: bool, only_v6: bool) -> io::Result<Self> {
        if v6 {
            sys::set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)?;
        }
        if !only_v6 {
            sys::set_option(socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1)?;
        }
        Ok(ErrorQueue { on: true, reports: VecDeque::new() })
    }

    /// That of a socket that was made elsewhere, whose errors may be queued already: they are in the way of everything
    /// else if nobody reads them.
    pub(super) fn found_on(socket: &UdpSocket, v6: bool) -> Self {
        let queued = |level, name| sys::option(socket, level, name).is_ok_and(|value| value != 0);
        let on = queued(libc::IPPROTO_IP, libc::IP_RECVERR)
            || v6 && queued(libc::IPPROTO_IPV6, libc::IPV6_RECVERR);
        ErrorQueue { on, reports: VecDeque::new() }
    }

    pub(super) const fn is_on(&self) -> bool {
        self.on
    }

    /// Empties the kernel's queue. True if anything in it came from the network.
    pub(super) fn read(&mut self, socket: &UdpSocket) -> bool {
        let mut any = false;
        if !self.on {
            return any;
        }
        let (mut name, mut control, mut quote) = (Name::default(), Control::default(), Quote::default());
        for _ in 0..MOST_AT_ONCE {
            if sys::receive_error(socket, &mut name, &mut control, &mut quote).is_err() {
                break;
            }
            let Some((errno, origin)) = control.read_error() else { continue };
            let network = FROM_NETWORK.contains(&origin);
            any |= network;
            // What is too large for a route is told otherwise.
            let told = network && errno != libc::EMSGSIZE;
            let remote = name.addr().map(address::normalise).filter(|_| told);
            if self.reports.len() < MOST {
                let kind = io::Error::from_raw_os_error(errno).kind();
                self.reports.push_back(Unreachable { remote, kind, quote });
            }
        }
        any
    }

    pub(super) fn next(&mut self) -> Option<Unreachable> {
        self.reports.pop_front()
    }
}
