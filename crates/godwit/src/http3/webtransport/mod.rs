//! WebTransport over HTTP/3 (draft-ietf-webtrans-http3): sessions with streams and datagrams, as browsers have them.
//!
//! A server sets [`Config::max_webtransport_sessions`](super::Config::max_webtransport_sessions), and its service accepts a
//! session in place of an answer:
//!
//! ```no_run
//! use godwit::http3::{Body, webtransport::Session};
//! use http::{Request, Response, StatusCode};
//!
//! async fn serve(request: Request<Body>) -> Result<Response<Body>, std::convert::Infallible> {
//!     let (session, response) = match Session::accept(request) {
//!         Ok(accepted) => accepted,
//!         Err(request) => {
//!             let mut refused = Response::new(Body::from(format!("no session at {}\n", request.uri().path())));
//!             *refused.status_mut() = StatusCode::NOT_FOUND;
//!             return Ok(refused);
//!         }
//!     };
//!     tokio::spawn(async move {
//!         while let Ok((mut send, mut recv)) = session.accept_bi().await {
//!             let Ok(bytes) = recv.read_to_end(1 << 20).await else { continue };
//!             if send.write_all(&bytes).await.is_ok() {
//!                 let _ = send.finish();
//!             }
//!         }
//!     });
//!     Ok(response)
//! }
//! ```
//!
//! A page of another origin may open a session, too: whoever minds looks at the request's `origin` field before.
//!
//! A client asks for one with [`Session::connect`]. What Chromium speaks (drafts 2 and 7) is spoken, and announced together with
//! what newer drafts have for it; flow control by sessions, which those add, is not.

mod end;
mod error;
mod inner;
mod session;
mod streams;
mod waiters;

pub use error::{ConnectError, SessionError, StreamError};
pub use session::Session;
pub use streams::{RecvStream, SendStream};
