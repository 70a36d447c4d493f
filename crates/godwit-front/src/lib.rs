//! A server for sites, as a library: what `godwit serve` does, for programs of your own.
//!
//! One `tower` service stands behind HTTP/3, HTTP/2 and HTTP/1.1 on one port. It finds a request's site and route, and
//! answers with files, another server's response, a redirect, a fixed answer or a service of yours.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use godwit_front::{FolderSettings, Server};
//!
//! let hello = tower::service_fn(async |_| {
//!     Ok::<_, std::convert::Infallible>(http::Response::new(http_body_util::Full::from("hello")))
//! });
//! let server = Server::builder()
//!     .listen("[::]:443".parse()?)
//!     .certificate("chain.pem", "key.pem")
//!     .service("/hello", hello)
//!     .files("/", FolderSettings::new("site"))
//!     .bind()?;
//! println!("listening at {:?}", server.addresses());
//! let mut running = server.start().await?;
//! tokio::signal::ctrl_c().await?;
//! running.shutdown(std::time::Duration::from_secs(5)).await;
//! # Ok(())
//! # }
//! ```
//!
//! # Inside
//! From below to above: [`settings`] are plain values; `metrics` count, `client` is what is known of who asks,
//! `advertise` decides who hears of HTTP/3, `access` writes a line for each request; `sites` is the service;
//! `tcp` (HTTP/1.1 and HTTP/2), `h3` and `redirect_http` bring requests to it; `server` composes all of it.
//! [`config`] reads settings from a file. All of it runs on `shards`, over which `spread` has TCP connections go.
//!
//! - `connection_limits`, [`godwit_body::Progress`], `useless_frames` and `response_memory` are against clients that are too
//!   many, too slow, too busy with nothing, or ask for more than they take;
//!   `tcp_stream`, `goaway` and `stop_listening` lose nothing at the end of a connection and of the server.
//! - [`Inherited`], `successor` and [`supervisor`] are for the processes before and after this one, and for the service
//!   manager; [`Operation`] is for the person who sends signals.
//! - [`Banner`], [`SiteAddress`] and [`Browser`] are for who sits at the machine: where the server is, and a browser that
//!   trusts it.
//!
//! Nothing here prints or ends the process: what an operator should know goes to [`Notices`].
//!
//! # Order of the modules
//!
//! From the bottom: `address`, `site_address`, `browser`, `cut`, `error`, `shards`, `spread`, `signals`, `memory`, `metrics`, `service`,
//! `sessions`, `stop_listening`, `supervisor`, `interim`, `client`, `connection_limits`, `inherited`, `path`, `settings`, `advertise`,
//! `certificates`, `config`, `goaway`, `tcp_stream`, `access`, `useless_frames`, `sites`, `tcp_connection`, `response_memory`,
//! `connection_service`, `redirect_http`, `h3`, `listen`, `successor`, `tcp`, `server`, `builder`, `banner`, `operation`. Each
//! may use those before it.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

mod access;
mod address;
mod advertise;
mod banner;
mod browser;
mod builder;
mod certificates;
mod client;
pub mod config;
mod connection_limits;
mod connection_service;
mod cut;
mod error;
mod goaway;
mod h3;
mod inherited;
mod interim;
mod listen;
mod memory;
mod metrics;
mod operation;
mod path;
mod redirect_http;
mod response_memory;
mod server;
mod service;
mod sessions;
pub mod settings;
mod shards;
mod signals;
mod site_address;
mod sites;
mod spread;
mod stop_listening;
mod successor;
pub mod supervisor;
mod tcp;
mod tcp_connection;
mod tcp_stream;
mod useless_frames;

pub use address::parse_address;
pub use advertise::dns;
pub use banner::Banner;
pub use browser::{Browser, NoBrowser, Window};
pub use builder::Builder;
pub use cut::Cut;
pub use error::FrontError;
pub use godwit_body::BoxBody;
pub use godwit_certificates::Notices;
pub use godwit_layers::files::FolderSettings;
pub use h3::Granted;
pub use inherited::{Before, Inherited};
pub use operation::{Operation, OperationEnd, OperationSettings};
pub use server::{Running, Server};
pub use service::RouteService;
pub use settings::{Settings, Site};
pub use signals::Signals;
pub use site_address::SiteAddress;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
