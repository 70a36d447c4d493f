//! Traces of connections in files, one each, as qlog in JSON-SEQ.

use godwit_transport::observe::{Observer, ObserverFactory, ObserverInfo};
use godwit_transport::qlog::{Qlog, Sink};
use godwit_transport::{ConnectionId, Side};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Observers that write each connection's trace to a file in `folder`, named after the connection's first
/// id and the end that is watched, as other QUIC programs do.
pub(crate) fn into_folder(folder: PathBuf) -> ObserverFactory {
    ObserverFactory::new(move |info| match create(&folder, info) {
        Ok(sink) => Some(Box::new(Qlog::new(info, sink)) as Box<dyn Observer + Send>),
        Err(error) => {
            tracing::warn!(folder = %folder.display(), %error, "a connection is not traced");
            None
        }
    })
}

fn create(folder: &Path, info: &ObserverInfo) -> std::io::Result<Sink> {
    let mut file = BufWriter::new(File::create(folder.join(name(info.original_dcid, info.side)))?);
    let mut failed = false;
    Ok(Box::new(move |record| {
        // A full disk ends the trace, not the connection.
        failed = failed || file.write_all(record).is_err();
    }))
}

fn name(original_dcid: ConnectionId, side: Side) -> String {
    let side = match side {
        Side::Client => "client",
        Side::Server => "server",
    };
    format!("{original_dcid}_{side}.sqlog")
}
