//! quinn, with h3 on top of it, as a peer to test and to measure against.
//!
//! The command line is the same as that of every other peer program; `peers/README.md` describes it.

mod certificates;
mod endpoint;
mod fetch;
mod files;
mod h3_roles;
mod hq_roles;
mod interop;
mod perf;
mod site;
mod trust_all;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Make a certificate authority, a leaf and its pin in a folder
    MakeCerts { folder: PathBuf },
    /// Make cert.pem, a chain of some length, and priv.key in a folder, as the interop runner does
    MakeChain {
        folder: PathBuf,
        /// Certificates in the chain
        #[arg(long, default_value_t = 1)]
        length: usize,
    },
    /// Make files to serve in a folder, and their SHA-256
    MakeSite(site::Options),
    /// Serve a folder over HTTP/3
    H3Server(ServeFolder),
    /// Fetch over HTTP/3, every URL on the same connection
    H3Client(Fetch),
    /// Serve a folder over HTTP/0.9 on QUIC streams
    HqServer(ServeFolder),
    /// Fetch over HTTP/0.9 on QUIC streams, every URL on the same connection
    HqClient(Fetch),
    /// Be an endpoint of the interop runner
    Interop(interop::Options),
    /// Answer the "perf" protocol
    #[command(disable_help_flag = true)]
    PerfServer(Words),
    /// Measure with the "perf" protocol
    #[command(disable_help_flag = true)]
    PerfClient(Words),
}

/// What another reads.
#[derive(Args)]
struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// How a server is started.
#[derive(Args)]
struct Serve {
    #[arg(long)]
    listen: SocketAddr,
    /// The certificate chain, PEM
    #[arg(long)]
    cert: PathBuf,
    /// The private key, PEM
    #[arg(long)]
    key: PathBuf,
}

impl Serve {
    fn plain(self) -> peer_perf::Serve {
        let Serve { listen, cert, key } = self;
        peer_perf::Serve { listen, cert, key, cipher: peer_perf::Cipher::Aes128 }
    }
}

#[derive(Args)]
struct ServeFolder {
    #[command(flatten)]
    serve: Serve,
    /// The folder to serve
    #[arg(long)]
    root: PathBuf,
}

/// Whom a client trusts.
#[derive(Args)]
pub struct Trust {
    /// The certificate authority to trust, PEM
    #[arg(long)]
    ca: Option<PathBuf>,
    /// Trust every certificate
    #[arg(long)]
    insecure: bool,
}

/// What a client fetches.
#[derive(Args)]
pub struct Fetch {
    #[command(flatten)]
    trust: Trust,
    /// Keep the bodies in this folder, under the last part of their path
    #[arg(long)]
    out: Option<PathBuf>,
    /// The method (HTTP/3 only)
    #[arg(long, default_value = "GET")]
    method: String,
    /// The value of a Range header (HTTP/3 only)
    #[arg(long)]
    range: Option<String>,
    /// Requests under way at a time
    #[arg(long, default_value_t = 100)]
    parallel: usize,
    #[arg(required = true)]
    urls: Vec<http::Uri>,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match cli.role {
            Role::MakeCerts { folder } => certificates::make(&folder),
            Role::MakeChain { folder, length } => certificates::make_chain(&folder, length),
            Role::MakeSite(options) => site::make(&options),
            Role::H3Server(options) => h3_roles::serve(options.serve.plain(), options.root).await,
            Role::H3Client(options) => h3_roles::fetch(options).await,
            Role::HqServer(options) => hq_roles::serve(options.serve.plain(), options.root).await,
            Role::HqClient(options) => hq_roles::fetch(options).await,
            Role::Interop(options) => interop::run(options).await,
            Role::PerfServer(options) => perf::server::run(&peer_perf::Serve::parse(options.words)?).await,
            Role::PerfClient(options) => perf::client::run(&peer_perf::Measure::parse(options.words)?).await,
        }
    })
}
