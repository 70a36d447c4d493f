//! Requests on the streams of a QUIC connection.

use super::failure::{broken, stopped_by_the_server};
use crate::Error;
use crate::perf::pattern::Checker;
use crate::perf::protocol;
use crate::perf::protocol::{Request, UNTIL_STOPPED, header};
use crate::perf::window::{Meter, Window};
use godwit::Connection;

/// One request, and how many bytes were the answer.
pub(super) async fn exchange(connection: &Connection, request: &Request) -> Result<u64, Error> {
    let (mut send, mut recv) = connection.open_bi().await.map_err(broken)?;
    for piece in request.pieces() {
        send.write_chunk(piece).await.map_err(broken)?;
    }
    send.finish().map_err(broken)?;
    let mut received = 0;
    while let Some(data) = recv.read_chunk(usize::MAX).await.map_err(broken)? {
        received += data.len() as u64;
    }
    Ok(received)
}

/// Receives until it is given up, and checks what comes if that is wanted. Dropping the stream stops it.
pub(super) async fn download(
    connection: &Connection,
    meter: &Meter,
    mut checker: Option<Checker>,
) -> Result<(), Error> {
    let (mut send, mut recv) = connection.open_bi().await.map_err(broken)?;
    send.write_chunk(header(UNTIL_STOPPED)).await.map_err(broken)?;
    send.finish().map_err(broken)?;
    while let Some(data) = recv.read_chunk(usize::MAX).await.map_err(broken)? {
        if let Some(checker) = &mut checker {
            checker.check(&data)?;
        }
        meter.add_bytes(data.len() as u64);
    }
    Err(stopped_by_the_server())
}

/// Sends until the time is over, and waits until the server has read everything.
pub(super) async fn upload(connection: &Connection, window: &Window) -> Result<(), Error> {
    let (mut send, mut recv) = connection.open_bi().await.map_err(broken)?;
    send.write_chunk(header(0)).await.map_err(broken)?;
    loop {
        let piece = protocol::upload(UNTIL_STOPPED);
        let len = piece.len() as u64;
        send.write_chunk(piece).await.map_err(broken)?;
        window.meter.add_bytes(len);
        if window.is_over() {
            break;
        }
    }
    send.finish().map_err(broken)?;
    // The server answers, with nothing, when it has read everything.
    while recv.read_chunk(usize::MAX).await.map_err(broken)?.is_some() {}
    Ok(())
}
