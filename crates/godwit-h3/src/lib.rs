//! Programs on the [`h3`] crate run on Godwit: what that crate wants of QUIC, over [`godwit`]'s connections.
//!
//! [`Connection::new`] takes a [`godwit::Connection`] and goes where `h3` wants a connection:
//!
//! ```
//! # async fn page(connection: godwit::Connection) -> Result<(), Box<dyn std::error::Error>> {
//! let (mut driver, mut requests) = h3::client::new(godwit_h3::Connection::new(connection)).await?;
//! tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });
//! let request = http::Request::get("https://localhost/").body(())?;
//! let mut stream = requests.send_request(request).await?;
//! stream.finish().await?;
//! println!("{}", stream.recv_response().await?.status());
//! # Ok(())
//! # }
//! ```
//!
//! Whoever has no program on `h3` yet finds HTTP/3 in `godwit::http3`: with bodies and `tower` services, the limits that
//! a server needs among strangers, and fewer copies.
//!
//! # How it behaves
//!
//! - What arrives is not copied; what is sent is copied once, together with the head of its frame, when there is room
//!   for it: [`SendStream`] says more.
//! - Nothing is kept in boxes or tasks: each function polls the connection itself, and what is dropped waits no longer.
//! - A stream that is dropped before `finish` is finished then, on which programs on `h3` rely, unless something is
//!   left of what was to be sent, or the thread is panicking: then it is reset.
//! - A stream of the peer's that is dropped before its end is stopped with the code that HTTP/3 has for it.
//! - Requests leave early (0-RTT) on a connection from [`godwit::Connecting::into_early`], and are sent again by
//!   themselves if the server does not accept that. `h3` 0.0.8 cannot say which requests came early: a server that
//!   awaits [`godwit::Incoming`] sees them when nobody can have repeated them.
//!
//! # Features
//!
//! - `datagram`: the traits of `h3-datagram` (RFC 9297), which `h3-webtransport` wants as well.
//! - `aws-lc-rs` (default) or `ring`: the library of cryptography, as in [`godwit`].
//!
//! # Order of the modules
//!
//! From the bottom: `error`, `send`, `receive`, `bidirectional`, `connection`, `datagram`.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

mod bidirectional;
mod connection;
#[cfg(feature = "datagram")]
mod datagram;
mod error;
mod receive;
mod send;

pub use bidirectional::BidiStream;
pub use connection::{Connection, OpenStreams};
#[cfg(feature = "datagram")]
pub use datagram::{ReceiveDatagrams, SendDatagrams};
pub use receive::RecvStream;
pub use send::SendStream;

/// The QUIC below.
pub use godwit;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
