//! Any programs on both sides of a modelled link: two network namespaces, joined by a router that has the link's model.
//!
//! The namespaces have no names, and what is started in them by [`Emulation::start`] and [`Emulation::run`] ends with this
//! process: nothing is left, however it ends.

use std::net::Ipv4Addr;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use godwit_link::{DuplexConfig, LinkConfig, Loss, Probability, QueueLimit, Rate, Reorder};
use godwit_relay::RelayCounters;

use crate::{Error, namespaces};

/// A link in figures, the same in both directions. The default is a link without delay, loss and limit.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
#[non_exhaustive]
pub struct Figures {
    /// The rate, of bytes on the wire ([`godwit_link::IpVersion::wire_len`]).
    pub rate: Option<Rate>,
    /// The round-trip time without a queue.
    pub rtt: Duration,
    /// Packets in the queue at most; a bandwidth-delay product of packets of 1500 bytes, and ten at least, if it is not
    /// said.
    pub queue: Option<usize>,
    /// Packets lost at random.
    pub loss: Probability,
    /// Packets held back.
    pub reorder: Probability,
    /// For how long.
    pub delay: Duration,
}

/// Bytes of a packet as queues are counted in.
const PACKET: u64 = 1500;
const SMALLEST_QUEUE: u64 = 10;

impl Figures {
    /// The link.
    #[must_use]
    pub fn link(&self) -> DuplexConfig {
        let mut link = LinkConfig::delayed(self.rtt / 2);
        link.rate = self.rate;
        if let Some(rate) = self.rate {
            let product = (rate.bytes_in(self.rtt) / PACKET).max(SMALLEST_QUEUE);
            link.queue =
                QueueLimit::Packets(self.queue.unwrap_or(usize::try_from(product).unwrap_or(usize::MAX)));
        }
        link.loss = Loss::Independent(self.loss);
        if self.reorder != Probability::NEVER {
            link.reorder = Some(Reorder { probability: self.reorder, extra: self.delay });
        }
        DuplexConfig::symmetric(link)
    }
}

/// A running link with a namespace at either end.
#[derive(Debug)]
pub struct Emulation {
    #[cfg(target_os = "linux")]
    _relay: godwit_relay::tun::TunRelay,
    /// The namespaces of client and server, and the device at the server's end until the router has it.
    #[cfg(target_os = "linux")]
    networks: [godwit_os::namespaces::Network; 2],
    counters: Arc<RelayCounters>,
    server: Option<Child>,
}

impl Emulation {
    /// The client's address.
    pub const CLIENT: Ipv4Addr = namespaces::CLIENT;
    /// The server's address.
    pub const SERVER: Ipv4Addr = namespaces::SERVER;

    /// Moves this thread into a namespace for the server, starts `server` there, if there is one, and moves on into the
    /// client's. Called before there is any other thread: the program does not come back from there.
    ///
    /// # Errors
    /// If the system does not permit it; the error says what is needed and how to get it. If `server` cannot be started.
    #[cfg(target_os = "linux")]
    pub fn start(link: DuplexConfig, seed: u64, server: Option<Command>) -> Result<Emulation, Error> {
        use godwit_os::namespaces::Network;
        use godwit_relay::OneLink;
        use godwit_relay::tun::TunRelay;

        let failed = |error: std::io::Error| {
            Error::new(format!("cannot start the router: {}", godwit_text::plain_error(&error)))
        };
        let purpose = namespaces::Purpose("emulation");
        let server_device = purpose.enter_server()?;
        let server_network = Network::current().map_err(failed)?;
        let server = server.map(spawn).transpose()?;
        let client_device = purpose.enter_client()?;
        let client_network = Network::current().map_err(failed)?;
        let counters = Arc::<RelayCounters>::default();
        let links = OneLink::new(link, seed);
        let relay =
            TunRelay::start(client_device, server_device, links, Arc::clone(&counters)).map_err(failed)?;
        Ok(Emulation { _relay: relay, networks: [client_network, server_network], counters, server })
    }

    /// Elsewhere there are no network namespaces.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(target_os = "linux"))]
    pub fn start(_link: DuplexConfig, _seed: u64, _server: Option<Command>) -> Result<Emulation, Error> {
        Err(Error::new("emulation needs Linux: its link joins two network namespaces; run it there, as root"))
    }

    /// Runs a program in the client's namespace to its end, and returns its exit code.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn run(&self, client: Command) -> Result<u8, Error> {
        let ended = spawn(client)?.wait();
        ended.map(exit_code).map_err(|error| {
            Error::new(format!("cannot wait for the program: {}", godwit_text::plain_error(&error)))
        })
    }

    /// How other programs get into the client's namespace, and the server's: two commands that run `COMMAND` there.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn entrances(&self) -> [String; 2] {
        use std::os::fd::AsRawFd;
        let us = std::process::id();
        let command = |network: &godwit_os::namespaces::Network| {
            format!("nsenter --net=/proc/{us}/fd/{} COMMAND", network.as_raw_fd())
        };
        let [client, server] = &self.networks;
        [command(client), command(server)]
    }

    /// How other programs get there: not at all.
    #[cfg(not(target_os = "linux"))]
    #[must_use]
    pub fn entrances(&self) -> [String; 2] {
        <[String; 2]>::default()
    }

    /// What the link has done, and how exactly.
    #[must_use]
    pub fn report(&self) -> String {
        let of = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        let counters = &self.counters;
        let late = |permille| counters.lateness(permille).as_secs_f64() * 1e3;
        format!(
            "link: {} packets, {} lost or dropped by the queue; late by at most {:.2} ms in half of all deliveries, {:.2} ms \
             in 99 of 100",
            of(&counters.packets),
            of(&counters.dropped),
            late(500),
            late(990)
        )
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// As shells have it: also for programs that a signal ended.
fn exit_code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    let code = status.code().or(signal.map(|signal| signal.saturating_add(128)));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Starts a program that ends with this thread, and knows the addresses from its environment.
fn spawn(mut command: Command) -> Result<Child, Error> {
    command.env("GODWIT_SERVER", Emulation::SERVER.to_string());
    command.env("GODWIT_CLIENT", Emulation::CLIENT.to_string());
    #[cfg(target_os = "linux")]
    godwit_os::children::end_with_this_thread(&mut command);
    command.spawn().map_err(|error| {
        let program = command.get_program().to_string_lossy();
        Error::new(format!("cannot start {program:?}: {}", godwit_text::plain_error(&error)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_same_cell() {
        use crate::wan::Cell;
        let cell = Cell::with_queue_ratio(50, 5, 5.0).map(|cell| cell.with(1000, (10_000, 5)));
        let mut figures = Figures::default();
        (figures.rate, figures.rtt, figures.queue) =
            (Some(Rate::megabits(50)), Duration::from_millis(5), Some(115));
        (figures.loss, figures.reorder) = ("1/1000".parse().unwrap(), "1/10000".parse().unwrap());
        figures.delay = Duration::from_millis(5);
        assert_eq!(Some(figures.link()), cell.map(|cell| cell.link()));
    }

    #[test]
    fn a_queue_that_is_not_said_is_a_product() {
        let mut figures =
            Figures { rate: Some(Rate::megabits(12)), rtt: Duration::from_millis(100), ..Figures::default() };
        assert_eq!(figures.link().up.queue, QueueLimit::Packets(100));
        figures.rtt = Duration::ZERO;
        assert_eq!(figures.link().up.queue, QueueLimit::Packets(10));
    }
}
