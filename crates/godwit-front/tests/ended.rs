//! What a server leaves behind when it has ended: nothing. Its ports are free, and its descriptors closed.

#![cfg(target_os = "linux")]

#[expect(dead_code, reason = "nobody connects here")]
mod support;

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use godwit_front::{BoxBody, Running, Server};
use http::{Request, Response};
use http_body_util::Empty;
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

/// Descriptors are those of the process: there is one test at a time, with its runtime.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs a test while no other has descriptors, those of a runtime included.
fn alone(test: impl Future<Output = ()>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

/// Nobody waits as long; it only keeps a broken test from hanging.
const LONG: Duration = Duration::from_secs(60);

async fn start(folder: &Path, address: SocketAddr) -> Running {
    let service = tower::service_fn(async |_: Request<BoxBody>| {
        Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
    });
    let server = Server::builder()
        .listen(address)
        .certificate(folder.join("chain.pem"), folder.join("key.pem"))
        .service("/", service)
        .bind()
        .unwrap();
    server.start().await.unwrap()
}

/// Waits until it is so: what was dropped ends in tasks of its own.
async fn until(mut it_is_so: impl FnMut() -> bool) {
    let waited = async {
        while !it_is_so() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(LONG, waited).await.expect("it does not come about");
}

fn is_free(address: SocketAddr) -> bool {
    UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_port_is_free_after_the_end() {
    alone(async {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        support::certificate(folder);
        let mut running = start(folder, "127.0.0.1:0".parse().unwrap()).await;
        let address = running.addresses()[0];
        assert!(!is_free(address));
        // Shut down, it is free although the server is still there.
        running.shutdown(Duration::ZERO).await;
        until(|| is_free(address)).await;
        let again = start(folder, address).await;
        assert_eq!(again.addresses(), [address]);
        // Dropped without a word as well.
        drop(again);
        until(|| is_free(address)).await;
        drop(start(folder, address).await);
    });
}

#[test]
fn servers_that_have_ended_have_no_descriptors() {
    alone(async {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        support::certificate(folder);
        let any = "127.0.0.1:0".parse().unwrap();
        let before = descriptors();
        for _ in 0..3 {
            let mut running = start(folder, any).await;
            assert!(descriptors() > before);
            running.shutdown(Duration::ZERO).await;
            drop(running);
            drop(start(folder, any).await);
        }
        until(|| descriptors() <= before).await;
    });
}
