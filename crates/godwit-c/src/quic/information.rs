//! What is known of a connection.

use super::connection::Connection;
use crate::abi::{self, Plain};
use crate::border::call;
use crate::given;
use crate::handles;
use crate::words::{address, fixed};
use godwit::{EarlyDataStatus, Side};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// What is known of it now.
pub(super) fn of(connection: &godwit::Connection) -> abi::ConnectionInfo {
    let mut flags = 0;
    let mut set = |condition: bool, flag: u32| flags |= if condition { flag } else { 0 };
    set(connection.side() == Side::Server, abi::CONNECTION_SERVER);
    set(connection.is_resumed(), abi::CONNECTION_RESUMED);
    let early = connection.early_data_status();
    set(early == EarlyDataStatus::Accepted, abi::CONNECTION_EARLY_DATA_ACCEPTED);
    set(early == EarlyDataStatus::Rejected, abi::CONNECTION_EARLY_DATA_REFUSED);
    set(is_established(connection), abi::CONNECTION_ESTABLISHED);
    let (mut alpn, agreed) = ([0; 256], connection.alpn().unwrap_or_default());
    for (to, from) in alpn.iter_mut().zip(&agreed) {
        *to = *from;
    }
    abi::ConnectionInfo {
        flags,
        quic_version: connection.version(),
        alpn_length: agreed.len() as u32,
        max_datagram_length: connection.max_datagram_len().unwrap_or_default() as u64,
        id: connection.id(),
        alpn,
        server_name: fixed(&connection.server_name().unwrap_or_default()).0,
        remote_address: address(Some(connection.remote_address())),
        local_address: address(connection.local_address()),
        ..abi::ConnectionInfo::zeroed()
    }
}

/// Whether the handshake is complete: then there is nothing to wait for.
fn is_established(connection: &godwit::Connection) -> bool {
    let connected = pin!(connection.connected());
    matches!(connected.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(_)))
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_connection_information(
    connection: u64,
    info: *mut abi::ConnectionInfo,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let known = of(&handles::get::<Connection>(connection)?.inner()?);
        // SAFETY: the caller's promise.
        unsafe { given::give(info, &known) }
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}
