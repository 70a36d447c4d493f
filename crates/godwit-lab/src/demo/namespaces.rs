//! Two network namespaces with a TUN device in each: the kernel's TCP on both sides of a link that this program
//! makes.
//!
//! The calling thread leaves its namespaces for good, so this is done before there is any other thread. What is made
//! here vanishes with the process.

use std::io;
use std::net::Ipv4Addr;

use godwit_os::tun::TunDevice;
use godwit_os::{namespaces, user};
use godwit_text::plain_error as plain;

use super::preset::MTU;
use crate::Error;

pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub(super) const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const PREFIX: u8 = 24;
/// What the demonstration compares with: the congestion control of most of the kernels in use.
const WANTED: &str = "cubic";

/// How to get namespaces, and devices.
const PERMIT: &str = "run it as root, or permit user namespaces (sysctl -w kernel.unprivileged_userns_clone=1 or \
                      kernel.apparmor_restrict_unprivileged_userns=0)";
const PROVIDE: &str = "run it as root and load the driver (modprobe tun); in a container, start that with \
                       --cap-add NET_ADMIN --device /dev/net/tun";

/// What is missing, and how to get it, in one line.
fn lacking(what: &str, problem: &str, remedy: &str) -> Error {
    Error::new(format!(
        "the demonstration needs network namespaces and /dev/net/tun for its link, but {what} ({problem}); {remedy}"
    ))
}

/// Moves into a namespace for the server and makes its device. The error says what is not permitted.
pub(super) fn enter_server() -> Result<TunDevice, Error> {
    if !user::is_root() || namespaces::enter_network().is_err() {
        enter_user_namespace()?;
    }
    tune();
    device(SERVER)
}

/// Moves on into another one for the visitors. What was started before stays with the server.
pub(super) fn enter_client() -> Result<TunDevice, Error> {
    namespaces::enter_network()
        .map_err(|error| lacking("there is no second network namespace", &plain(&error), PERMIT))?;
    tune();
    device(CLIENT)
}

/// A namespace in which an ordinary user may have network namespaces.
fn enter_user_namespace() -> Result<(), Error> {
    let identity = namespaces::enter_user_and_network()
        .map_err(|error| lacking("user namespaces are not permitted", &plain(&error), PERMIT))?;
    identity.keep().map_err(|error| lacking("user namespaces cannot be set up", &plain(&error), PERMIT))
}

fn device(address: Ipv4Addr) -> Result<TunDevice, Error> {
    let mtu = u16::try_from(MTU).unwrap_or(u16::MAX);
    let opened = TunDevice::open("godwit0", address, PREFIX, mtu);
    opened.map_err(|error| lacking("there is no TUN device", &plain(&error), PROVIDE))
}

/// Every visit is a stranger's: nothing that TCP learnt from one is used for the next. Where the system does not
/// permit it, [`congestion_control`] tells at least what is used.
fn tune() {
    let _ = std::fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1");
    let _ = std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", WANTED);
}

/// The congestion control of TCP connections made here.
pub(super) fn congestion_control() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_what_to_do_in_one_line() {
        for remedy in [PERMIT, PROVIDE] {
            let text = lacking("there is none", "operation not permitted", remedy).to_string();
            assert!(text.contains("as root") && !text.contains('\n') && !text.contains("  "), "{text}");
        }
    }
}
