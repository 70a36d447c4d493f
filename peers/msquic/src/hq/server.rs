//! Serves a folder.

use crate::options::HqServe;
use crate::{sending, server};
use anyhow::Result;
use msquic::{
    ConnectionEvent, Registration, SendFlags, Status, Stream, StreamEvent, StreamRef, StreamShutdownFlags,
};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The stream code for a file that does not exist.
const NOT_FOUND: u64 = 404;
/// A request is no longer than this.
const LONGEST_REQUEST: usize = 4096;

/// Serves until the process is ended.
pub fn serve(options: &HqServe) -> Result<()> {
    let registration = Registration::new(&msquic::RegistrationConfig::default())?;
    let root: Arc<Path> = Arc::from(PathBuf::from(&options.root));
    let listener =
        server::start_with(&registration, &options.listen, move |_, event| on_connection(&root, event))?;
    println!("listening {}", server::address_of(&listener)?);
    loop {
        std::thread::park();
    }
}

fn on_connection(root: &Arc<Path>, event: ConnectionEvent) -> Result<(), Status> {
    if let ConnectionEvent::PeerStreamStarted { stream, .. } = event {
        let (root, asked) = (root.clone(), Mutex::new(Vec::new()));
        stream.set_callback_handler(move |stream: StreamRef, event: StreamEvent| {
            on_stream(&root, &asked, &stream, event)
        });
    }
    Ok(())
}

fn on_stream(
    root: &Path,
    asked: &Mutex<Vec<u8>>,
    stream: &StreamRef,
    event: StreamEvent,
) -> Result<(), Status> {
    match event {
        StreamEvent::Receive { buffers, .. } => {
            let mut asked = asked.lock().expect("nothing panics with it");
            asked.extend(buffers.iter().flat_map(|buffer| buffer.as_bytes().to_vec()));
            if asked.len() > LONGEST_REQUEST {
                stream.shutdown(StreamShutdownFlags::ABORT, NOT_FOUND)?;
            }
        }
        StreamEvent::PeerSendShutdown => match answer(root, &asked.lock().expect("nothing panics with it")) {
            Some(file) => sending::send(stream, file, SendFlags::FIN)?,
            None => stream.shutdown(StreamShutdownFlags::ABORT_SEND, NOT_FOUND)?,
        },
        StreamEvent::SendComplete { client_context, .. } => sending::complete(client_context),
        StreamEvent::ShutdownComplete { .. } => {
            // SAFETY: nobody else owns the handle of a stream that has come.
            drop(unsafe { Stream::from_raw(stream.as_raw()) });
        }
        _ => {}
    }
    Ok(())
}

/// The file that is asked for; none outside of `root`.
fn answer(root: &Path, request: &[u8]) -> Option<Vec<u8>> {
    let path = std::str::from_utf8(request).ok()?.trim_end().strip_prefix("GET /")?;
    let relative = Path::new(path);
    let inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
    inside.then(|| std::fs::read(root.join(relative)).ok()).flatten()
}
