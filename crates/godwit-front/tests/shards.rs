//! A server with several shards: where connections go, and what they have to do with one another.

mod support;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use bytes::Bytes;
use godwit_front::settings::{CertificateFiles, Handler, LogTarget, Settings, Site, SiteTls};
use godwit_front::{BoxBody, RouteService, Running, Server};
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use support::{certificate, request, tls};

/// Shut until somebody opens it.
#[derive(Debug, Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }

    /// Blocks the thread.
    fn pass(&self) {
        drop(self.1.wait_while(self.0.lock().unwrap(), |open| !*open).unwrap());
    }
}

/// Answers with the name of the thread. At `/gate` the whole thread waits.
async fn start(folder: &Path, shards: u8, gate: Arc<Gate>) -> Running {
    let service = tower::service_fn(move |request: Request<BoxBody>| {
        let gate = Arc::clone(&gate);
        async move {
            if request.uri().path() == "/gate" {
                gate.pass();
            }
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(name))))
        }
    });
    let (chain, key) = certificate(folder);
    let mut settings = Settings::default();
    settings.certificates = vec![CertificateFiles::new(chain, key)];
    settings.sites = vec![Site::catch_all(Handler::Service(RouteService::new(service)))];
    settings.sites[0].tls = SiteTls::Files;
    settings.access_log.target = LogTarget::None;
    settings.shards = NonZeroU8::new(shards).unwrap();
    let server = Server::builder().settings(settings).listen("127.0.0.1:0".parse().unwrap());
    server.bind().unwrap().start().await.unwrap()
}

type Client = SendRequest<Empty<Bytes>>;

async fn connect(folder: &Path, address: SocketAddr) -> Client {
    let stream = TokioIo::new(tls(folder, address, b"h2").await);
    let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn ask(client: &mut Client, path: &str) -> String {
    let response = client.send_request(request("GET", path, true, Empty::new())).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn a_connection_stays_on_the_shard_with_the_fewest() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = start(folder.path(), 4, Arc::default()).await;
    let (mut clients, mut threads) = (Vec::new(), Vec::new());
    for _ in 0..64 {
        let mut client = connect(folder.path(), running.addresses()[0]).await;
        let thread = ask(&mut client, "/").await;
        for _ in 0..3 {
            assert_eq!(ask(&mut client, "/").await, thread);
        }
        threads.push(thread);
        clients.push(client);
    }
    for number in 0..4 {
        let name = format!("shard-{number}");
        assert_eq!(threads.iter().filter(|thread| **thread == name).count(), 16, "{threads:?}");
    }
    running.shutdown(Duration::from_secs(60)).await;
}

#[tokio::test]
async fn one_shard_answers_on_the_runtime_that_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = start(folder.path(), 1, Arc::default()).await;
    let mut client = connect(folder.path(), running.addresses()[0]).await;
    assert_eq!(ask(&mut client, "/").await, std::thread::current().name().unwrap());
    running.shutdown(Duration::from_secs(60)).await;
}

#[tokio::test]
async fn a_shard_that_is_blocked_holds_up_no_other() {
    let (folder, gate) = (tempfile::tempdir().unwrap(), Arc::new(Gate::default()));
    let mut running = start(folder.path(), 2, Arc::clone(&gate)).await;
    let address = running.addresses()[0];
    let mut one = connect(folder.path(), address).await;
    let thread = ask(&mut one, "/").await;
    let mut other = loop {
        let mut other = connect(folder.path(), address).await;
        if ask(&mut other, "/").await != thread {
            break other;
        }
    };
    let blocked = tokio::spawn(async move { ask(&mut one, "/gate").await });
    let own = ask(&mut other, "/").await;
    for _ in 0..100 {
        assert_eq!(ask(&mut other, "/").await, own);
    }
    assert!(!blocked.is_finished());
    // Of those who come now, somebody is served: at the latest when it is seen that the blocked one does not begin.
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let folder_path = folder.path().to_owned();
    let coming = tokio::spawn(async move {
        loop {
            let (folder, tell) = (folder_path.clone(), tell.clone());
            tokio::spawn(async move {
                let mut client = connect(&folder, address).await;
                let _ = tell.send(ask(&mut client, "/").await);
            });
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    for _ in 0..3 {
        assert_eq!(told.recv().await.unwrap(), own);
    }
    coming.abort();
    gate.open();
    assert_eq!(blocked.await.unwrap(), thread);
    running.shutdown(Duration::from_secs(60)).await;
}
