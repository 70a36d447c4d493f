//! Two network namespaces with a TUN device in each: the kernel's TCP on both sides of a link that this program
//! makes.
//!
//! The calling thread leaves its namespaces for good, so this is done before there is any other thread. What it starts
//! between the two steps is on the server's side, what it starts afterwards on the client's. Namespaces have no names and
//! devices vanish with their descriptors, so that nothing is left of them when the process ends, however it does.

use std::io;
use std::net::Ipv4Addr;

use godwit_os::tun::{self, TunDevice};
use godwit_os::{namespaces, user};
use godwit_text::plain_error as plain;

use crate::Error;

pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub(crate) const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const PREFIX: u8 = 24;
/// The largest IP packet that passes, in bytes: that of an Ethernet.
pub(crate) const MTU: usize = 1500;
/// What the devices are called.
const DEVICES: [&str; 2] = ["godwit-server", "godwit-client"];
/// What is compared with where nothing else is said: the congestion control of most of the kernels in use. Not every kernel
/// permits it in a new namespace.
const WANTED: &str = "cubic";

/// How to get namespaces, and devices.
const PERMIT: &str = "run it as root, or permit user namespaces (sysctl -w kernel.unprivileged_userns_clone=1 or \
                      kernel.apparmor_restrict_unprivileged_userns=0)";
const PROVIDE: &str = "run it as root and load the driver (modprobe tun); in a container, start that with \
                       --cap-add NET_ADMIN --device /dev/net/tun";

/// Whose namespaces they are to be, for what is said if they cannot be had: "the demonstration".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purpose(pub(crate) &'static str);

impl Purpose {
    /// What is missing, and how to get it, in one line.
    fn lacks(self, what: &str, problem: &str, remedy: &str) -> Error {
        let Purpose(who) = self;
        Error::new(format!(
            "{who} needs network namespaces and /dev/net/tun for its link, but {what} ({problem}); {remedy}"
        ))
    }

    /// Moves into a namespace for the server and makes its device. The error says what is not permitted.
    pub(crate) fn enter_server(self) -> Result<TunDevice, Error> {
        if !user::is_root() || namespaces::enter_network().is_err() {
            self.enter_user_namespace()?;
        }
        self.furnish(SERVER)
    }

    /// Moves on into another one for clients. What was started before stays with the server.
    pub(crate) fn enter_client(self) -> Result<TunDevice, Error> {
        namespaces::enter_network()
            .map_err(|error| self.lacks("there is no second network namespace", &plain(&error), PERMIT))?;
        self.furnish(CLIENT)
    }

    /// A namespace in which an ordinary user may have network namespaces.
    fn enter_user_namespace(self) -> Result<(), Error> {
        let identity = namespaces::enter_user_and_network()
            .map_err(|error| self.lacks("user namespaces are not permitted", &plain(&error), PERMIT))?;
        identity
            .keep()
            .map_err(|error| self.lacks("user namespaces cannot be set up", &plain(&error), PERMIT))
    }

    fn furnish(self, address: Ipv4Addr) -> Result<TunDevice, Error> {
        tune();
        // Programs without it would fail in many ways; that it cannot be had shows with the device.
        let _ = tun::raise_loopback();
        let mtu = u16::try_from(MTU).unwrap_or(u16::MAX);
        let [server, client] = DEVICES;
        let name = if address == SERVER { server } else { client };
        let opened = TunDevice::open(name, address, PREFIX, mtu);
        opened.map_err(|error| self.lacks("there is no TUN device", &plain(&error), PROVIDE))
    }
}

/// Every visit is a stranger's: nothing that TCP learnt from one is used for the next. Its windows may be as large as those of
/// QUIC, so that they are not what is compared. Where the system does not permit it, [`congestion_control`] tells at least
/// what is used.
fn tune() {
    let set = |name: &str, value: &str| {
        let _ = std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value);
    };
    set("tcp_no_metrics_save", "1");
    set("tcp_rmem", "4096 131072 134217728");
    set("tcp_wmem", "4096 16384 134217728");
    set("tcp_congestion_control", WANTED);
}

/// Lets TCP connections made in this thread's namespace use another congestion control.
pub(crate) fn use_congestion_control(name: &str) -> Result<(), Error> {
    std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", name).map_err(|error| {
        let there = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        let there = there.map_or_else(|_| "none".to_owned(), |names| names.trim().replace(' ', ", "));
        let problem = plain(&error);
        Error::new(format!(
            "the kernel's TCP does not use {name} in a namespace ({problem}); it has {there}: load the module \
             (modprobe tcp_{name}) and permit it (sysctl -w net.ipv4.tcp_allowed_congestion_control=\"reno {name}\")"
        ))
    })
}

/// The congestion control of TCP connections made here.
pub(crate) fn congestion_control() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_what_to_do_in_one_line() {
        for remedy in [PERMIT, PROVIDE] {
            let text = Purpose("the demonstration")
                .lacks("there is none", "operation not permitted", remedy)
                .to_string();
            assert!(text.contains("as root") && !text.contains('\n') && !text.contains("  "), "{text}");
        }
    }
}
