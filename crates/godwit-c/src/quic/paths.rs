//! Paths of a connection, and moving from one to another.

use super::connection::Connection;
use super::socket_address;
use crate::abi::{self, Plain};
use crate::border::call;
use crate::failure::Failure;
use crate::given::{self, Places};
use crate::handles;
use crate::words::{address, nanoseconds};
use godwit::{MigrateError, PathState, PathStats};
use std::ffi::c_char;
use std::sync::Arc;
use tokio::sync::Semaphore;

fn state(state: PathState) -> u32 {
    match state {
        PathState::Validated => abi::PATH_VALIDATED,
        PathState::Active => abi::PATH_ACTIVE,
        PathState::Abandoned => abi::PATH_ABANDONED,
        _ => abi::PATH_PROBING,
    }
}

/// So many events about paths can wait for the application, or be lent to it: a peer whose address changes with each packet
/// makes no more. Of what happens meanwhile the connection keeps the last.
pub(crate) const MOST_PATH_EVENTS: usize = 32;

/// Tells what happens to paths.
pub(super) async fn tell(connection: &Connection, inner: &godwit::Connection) {
    let places = Arc::new(Semaphore::new(MOST_PATH_EVENTS));
    loop {
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place.ok(),
            // Nobody waits for the application when all is over.
            _ = inner.closed() => None,
        };
        let Ok(news) = inner.path_event().await else { return };
        let path = abi::Path {
            path: news.path,
            state: state(news.state),
            local_address: address(Some(news.local)),
            remote_address: address(Some(news.remote)),
            ..abi::Path::zeroed()
        };
        let event = connection.subject.event(abi::EVENT_PATH);
        let event = event.lending(|lent| (lent.path, lent.permit) = (Some(Box::new(path)), place));
        connection.subject.tell(event);
    }
}

fn path(stats: &PathStats) -> abi::Path {
    let state = match (stats.active, stats.validated) {
        (true, _) => abi::PATH_ACTIVE,
        (false, true) => abi::PATH_VALIDATED,
        (false, false) => abi::PATH_PROBING,
    };
    abi::Path {
        path: stats.path,
        state,
        rtt_ns: nanoseconds(stats.rtt),
        min_rtt_ns: nanoseconds(stats.min_rtt),
        window: stats.window,
        bytes_in_flight: stats.bytes_in_flight,
        packets_sent: stats.packets_sent,
        packets_lost: stats.packets_lost,
        mtu: stats.mtu.into(),
        local_address: address(Some(stats.local)),
        remote_address: address(Some(stats.remote)),
        ..abi::Path::zeroed()
    }
}

fn failure(error: MigrateError) -> Failure {
    let status = match error {
        MigrateError::Closed => abi::ERROR_CLOSED,
        MigrateError::NoSocket => abi::ERROR_SYSTEM,
        _ => abi::ERROR_UNSUPPORTED,
    };
    Failure::new(status, error.to_string())
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_connection_migrate(
    connection: u64,
    local_address: *const c_char,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let inner = handles::get::<Connection>(connection)?.inner()?;
        // SAFETY: the caller's promise.
        let local = socket_address(unsafe { given::text(local_address, "the local address") }?)?;
        inner.migrate(local).map_err(failure)
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_connection_paths(
    connection: u64,
    paths: *mut abi::Path,
    capacity: u64,
    count: *mut u64,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let all = handles::get::<Connection>(connection)?.inner()?.paths();
        // SAFETY: the caller's promise.
        let places = unsafe { Places::of(paths, capacity) }?;
        all.iter().enumerate().for_each(|(number, stats)| places.put(number, &path(stats)));
        // SAFETY: the caller's promise.
        unsafe { given::put(count, all.len() as u64, "the place for the number of paths") }
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}
