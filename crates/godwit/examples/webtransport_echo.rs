//! WebTransport sessions: `webtransport_echo CERTIFICATE.pem KEY.pem ADDRESS:PORT`
//!
//! At /echo whatever comes is sent back: what came on a stream of both directions on the same, on any other on a stream of our
//! own, datagrams as datagrams. At /reset each stream is reset with code 7, and at /close the session is closed with code 42
//! after a word on a stream of our own. Other paths have none.
use godwit::http3::webtransport::{RecvStream, SendStream, Session, SessionError, StreamError};
use godwit::http3::{self, Body, Config};
use godwit::{Endpoint, ServerConfig};
use http::{Request, Response, StatusCode};
use std::convert::Infallible;

/// The most that is sent back of a stream, in bytes.
const LIMIT: usize = 16 << 20;

async fn answer(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let known = ["/echo", "/reset", "/close"].contains(&&*path);
    let Some((session, response)) = known.then(|| Session::accept(request).ok()).flatten() else {
        let mut refused = Response::new(Body::from(format!("no session at {path}\n")));
        *refused.status_mut() = StatusCode::NOT_FOUND;
        return Ok(refused);
    };
    tokio::spawn(async move {
        let end = match &*path {
            "/echo" => echo(session).await,
            "/reset" => reset(session).await,
            _ => close(session).await,
        };
        if let Err(end) = end {
            println!("{path}: {end}");
        }
    });
    Ok(response)
}

async fn echo(session: Session) -> Result<(), SessionError> {
    loop {
        tokio::select! {
            stream = session.accept_bi() => {
                let (send, recv) = stream?;
                tokio::spawn(send_back(send, recv));
            }
            stream = session.accept_uni() => {
                let (recv, session) = (stream?, session.clone());
                tokio::spawn(async move {
                    if let Ok(send) = session.open_uni().await {
                        let _ = send_back(send, recv).await;
                    }
                });
            }
            datagram = session.receive_datagram() => {
                // If too many wait, this is one of those that get lost.
                let _ = session.send_datagram(&datagram?);
            }
        }
    }
}

async fn send_back(mut send: SendStream, mut recv: RecvStream) -> Result<(), StreamError> {
    let bytes = recv.read_to_end(LIMIT).await?;
    send.write_all(&bytes).await?;
    send.finish()
}

async fn reset(session: Session) -> Result<(), SessionError> {
    loop {
        let (mut send, mut recv) = session.accept_bi().await?;
        // Not read to its end, the client would be told to stop.
        let _ = recv.read_to_end(LIMIT).await;
        send.reset(7);
    }
}

async fn close(session: Session) -> Result<(), SessionError> {
    let (mut send, mut recv) = session.open_bi().await?;
    if send.write_all(b"goodbye").await.is_ok() && send.finish().is_ok() {
        // The end of a session is the end of its streams, and of what lies in them unread: the client ends its half when it has
        // read this.
        let _ = recv.read_to_end(LIMIT).await;
    }
    session.close(42, "that was all");
    Err(session.closed().await)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut arg = || args.next().ok_or("usage: webtransport_echo CERTIFICATE.pem KEY.pem ADDRESS:PORT");
    let config = ServerConfig::from_pem_files(arg()?, arg()?).alpn([http3::ALPN]).build()?;
    let endpoint = Endpoint::server(config, arg()?.parse()?)?;
    println!("listening on {}", endpoint.local_addr()?);
    let mut config = Config::default();
    config.max_webtransport_sessions = 16;
    http3::Server::new().config(config).serve(&endpoint, tower::service_fn(answer)).await;
    Ok(())
}
