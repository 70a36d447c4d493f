//! The server: every file of a folder, until it is to end.

use std::convert::Infallible;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use godwit::{Endpoint, http3};
use http::{Request, Response, StatusCode};
use http_body_util::Full;

use super::case::Case;
use super::task::{Notice, Task};
use super::{files, hq, settings};
use crate::Error;
use godwit_text::plain_error as plain;

/// Serves until it is to end. The connections that are left end in order, so that their traces are
/// whole.
pub(super) async fn run(task: &Task, end: impl Future<Output = ()>) -> Result<(), Error> {
    let endpoint = endpoint(task)?;
    for address in endpoint.local_addrs() {
        (task.watch)(Notice::new(format!("listening {address}")));
    }
    tokio::select! {
        () = serve(task, &endpoint) => {}
        () = end => endpoint.close(0, b""),
    }
    let _ = tokio::time::timeout(super::CLOSING, endpoint.wait_idle()).await;
    Ok(())
}

async fn serve(task: &Task, endpoint: &Endpoint) {
    let root: Arc<Path> = Arc::from(task.www.as_path());
    if task.case == Case::Http3 {
        let service = tower::service_fn(move |request: Request<http3::Body>| {
            let root = Arc::clone(&root);
            async move { Ok::<_, Infallible>(answer(&root, request.uri().path())) }
        });
        http3::Server::new().serve(endpoint, service).await;
        return;
    }
    while let Some(incoming) = endpoint.accept().await {
        let (root, watch) = (Arc::clone(&root), Arc::clone(&task.watch));
        tokio::spawn(async move {
            let connection = match incoming.accept().into_early() {
                Ok(connection) => connection,
                Err(connecting) => match connecting.await {
                    Ok(connection) => connection,
                    Err(error) => return watch(Notice::problem(format!("handshake: {error}"))),
                },
            };
            tokio::join!(super::announce(&watch, &connection), hq::answer_all(connection.clone(), root));
        });
    }
}

fn endpoint(task: &Task) -> Result<Endpoint, Error> {
    let mut builder = Endpoint::builder().server(settings::server(task)?);
    builder = builder.prefer_version_2(task.case == Case::Version2);
    for address in &task.listen {
        builder = builder.bind(*address);
    }
    if let Some(folder) = &task.qlog {
        builder = builder.qlog_dir(folder);
    }
    builder.build().map_err(|error| Error::new(format!("cannot listen: {}", plain(&error))))
}

/// A file as an HTTP response. They are small enough to be read whole.
fn answer(root: &Path, path: &str) -> Response<Full<Bytes>> {
    let mut body = Vec::new();
    let read = files::open(root, path).map(|mut file| file.read_to_end(&mut body));
    let mut response = Response::new(Full::from(body));
    if !matches!(read, Some(Ok(_))) {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}
