//! Datagrams (RFC 9221).

use super::connection::Connection;
use super::transport::USUAL_LIMIT;
use crate::abi;
use crate::border::call;
use crate::failure::Failure;
use crate::given;
use crate::handles;
use crate::intake::Intake;
use godwit::{DatagramOutcome, SendDatagramError};
use std::ffi::c_void;

/// Tells of datagrams that come, as the application makes room: the transport drops the oldest that wait.
pub(super) async fn receive(connection: &Connection, inner: &godwit::Connection) {
    let intake = Intake::new(connection.limits.receive, USUAL_LIMIT);
    while let Ok(mut bytes) = inner.read_datagram().await {
        let permit = tokio::select! {
            permit = intake.admit(&mut bytes) => permit,
            // Nobody waits for the application when all is over.
            _ = inner.closed() => None,
        };
        let event = connection.subject.event(abi::EVENT_DATAGRAM);
        connection.subject.tell(event.with_bytes(bytes, permit));
    }
}

/// Tells what became of those that were sent, as far as somebody wants to know.
pub(super) async fn tell_outcomes(connection: &Connection, inner: &godwit::Connection) {
    while let Ok(outcome) = inner.datagram_outcome().await {
        let code = match outcome {
            DatagramOutcome::Sent { .. } => abi::DATAGRAM_SENT,
            DatagramOutcome::Acknowledged { .. } => abi::DATAGRAM_ACKNOWLEDGED,
            DatagramOutcome::SuspectedLost { .. } => abi::DATAGRAM_LOST,
            DatagramOutcome::Spurious { .. } => abi::DATAGRAM_ACKNOWLEDGED_LATE,
            DatagramOutcome::Cancelled { .. } => abi::DATAGRAM_DROPPED,
            _ => continue,
        };
        let event = connection.subject.event(abi::EVENT_DATAGRAM_OUTCOME);
        connection.subject.tell(event.with_code(code).with_tag(outcome.tag()));
    }
}

fn failure(error: &SendDatagramError) -> Failure {
    let (status, what) = match error {
        SendDatagramError::Closed => (abi::ERROR_CLOSED, ""),
        SendDatagramError::Full => (abi::ERROR_FULL, "; wait, or send less"),
        SendDatagramError::TooLarge { .. } => (abi::ERROR_ARGUMENT, "; send less, or use a stream"),
        _ => (abi::ERROR_UNSUPPORTED, "; use a stream"),
    };
    Failure::new(status, format!("{error}{what}"))
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_connection_send_datagram(
    connection: u64,
    data: *const c_void,
    length: u64,
    flags: u32,
    tag: u64,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let inner = handles::get::<Connection>(connection)?.inner()?;
        given::flags(flags, abi::SEND_REPORT, "godwit_connection_send_datagram")?;
        // SAFETY: the caller's promise.
        let bytes = unsafe { given::bytes(data, length, "data") }?;
        let sent = if flags & abi::SEND_REPORT == 0 {
            inner.send_datagram(bytes)
        } else {
            inner.send_datagram_tagged(bytes, tag)
        };
        sent.map_err(|error| failure(&error))
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}
