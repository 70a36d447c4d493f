//! The server: every file of a folder, until the process is asked to end.

use std::convert::Infallible;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use godwit::{Endpoint, http3};
use http::{Request, Response, StatusCode};
use http_body_util::Full;

use super::arguments::Task;
use super::case::Case;
use super::{files, hq, settings};
use crate::error::{Failure, plain};
use crate::serve::signals::Signals;

/// Serves until the process is asked to end. The connections that are left end in order, so that their traces are
/// whole.
pub(super) async fn run(task: &Task) -> Result<(), Failure> {
    let mut signals = Signals::install()?;
    let endpoint = endpoint(task)?;
    for address in endpoint.local_addrs() {
        println!("listening {address}");
    }
    tokio::select! {
        () = serve(task, &endpoint) => {}
        () = signals.end() => endpoint.close(0, b""),
    }
    let _ = tokio::time::timeout(super::FAREWELL, endpoint.wait_idle()).await;
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
        let root = Arc::clone(&root);
        tokio::spawn(async move {
            let connection = match incoming.accept().into_early() {
                Ok(connection) => connection,
                Err(connecting) => match connecting.await {
                    Ok(connection) => connection,
                    Err(error) => return eprintln!("handshake: {error}"),
                },
            };
            tokio::join!(super::announce(&connection), hq::answer_all(connection.clone(), root));
        });
    }
}

fn endpoint(task: &Task) -> Result<Endpoint, Failure> {
    let mut builder = Endpoint::builder().server(settings::server(task)?);
    builder = builder.prefer_version_2(task.case == Case::Version2);
    for address in &task.listen {
        builder = builder.bind(*address);
    }
    if let Some(folder) = &task.qlog {
        builder = builder.qlog_dir(folder);
    }
    builder.build().map_err(|error| Failure::new(format!("cannot listen: {}", plain(&error))))
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
