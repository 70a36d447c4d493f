//! gRPC over HTTP/3, for any gRPC library that stands on `tower` and `http`, such as tonic.
//!
//! Generated clients take Godwit's clients as their channel, and generated services are services for Godwit's servers, as
//! they are: bodies stream both ways at once, and trailers pass. What is here is what gRPC asks of whoever carries its
//! calls besides:
//!
//! - [`Channel`]: a client for calls to one server. It completes URLs, keeps the deadline of each call, and answers for
//!   exchanges that broke with what that means in gRPC.
//! - [`DeadlineLayer`]: keeps the deadlines that clients name, at a server.
//! - [`Code`]: those of gRPC's codes that follow from what happens to an exchange.
//!
//! ```
//! # #[cfg(feature = "client")]
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = godwit_client::Client::builder().build()?;
//! let channel = godwit_grpc::Channel::new(client).origin("https://localhost:4433".parse()?);
//! // With tonic: `GreeterClient::new(channel).say_hello(request).await?`
//! # let _ = channel;
//! # Ok(())
//! # }
//! ```
//!
//! # Inside
//! Both are one thing, a call under way (`call`, `body`): the response, or a failure told as a response, until the deadline.
//! Whatever ends a call early drops what is under it: over HTTP/3 that resets the request with H3_REQUEST_CANCELLED and
//! stops the response, as gRPC over HTTP/3 wants it (gRFC G2); an exchange that is complete is left alone. `timeout` reads
//! `grpc-timeout`, `code` translates errors, `status` writes them down.
//!
//! # Order of the modules
//!
//! From the bottom: `code`, `status`, `timeout`, `body`, `call`, `channel`, `deadlines`. Each may use those before it.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

mod body;
mod call;
mod channel;
mod code;
mod deadlines;
mod status;
mod timeout;

pub use body::CallBody;
pub use call::CallFuture;
pub use channel::Channel;
pub use code::Code;
pub use deadlines::{Deadline, DeadlineLayer};

#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../README.md")]
struct Readme;
