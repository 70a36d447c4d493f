//! What `godwit get` takes.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use godwit_client::Target;
use godwit_client::download::Data;
use godwit_text::typed;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What to fetch: https:// URLs over HTTP/3, HTTP/2 or HTTP/1.1, http:// URLs over HTTP/1.1
    #[arg(value_name = "URL", required_unless_present = "url_file")]
    pub(super) urls: Vec<String>,

    /// Fetch the URLs in FILE too, one a line (`-`: standard input; empty lines and lines with # are skipped)
    #[arg(long, value_name = "FILE")]
    pub(super) url_file: Option<PathBuf>,

    #[command(flatten)]
    pub(super) output: OutputArguments,

    #[command(flatten)]
    pub(super) request: RequestArguments,

    #[command(flatten)]
    pub(super) protocol: ProtocolArguments,

    #[command(flatten)]
    pub(super) network: NetworkArguments,

    #[command(flatten)]
    pub(super) repeat: RepeatArguments,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArguments {
    /// Write the body to FILE (`-`: standard output)
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["remote_name", "output_dir"])]
    pub(super) output: Option<PathBuf>,

    /// Write each body to a file named as at the end of its URL
    #[arg(short = 'O', long)]
    pub(super) remote_name: bool,

    /// Like -O, into the folder DIR
    #[arg(long, value_name = "DIR")]
    pub(super) output_dir: Option<PathBuf>,

    /// Print the status and headers of responses to the standard output
    #[arg(short, long)]
    pub(super) include: bool,

    /// Tell on the standard error how long each URL took: DNS, handshake, first byte, total
    #[arg(long)]
    pub(super) timing: bool,

    /// Continue a file that an earlier run with -C could not finish, if it is still the same at the server
    #[arg(short = 'C', long = "continue", conflicts_with_all = ["data", "head"])]
    pub(super) continued: bool,

    /// Tell on the standard error which protocol was used for each URL, and why
    #[arg(short, long, conflicts_with = "quiet")]
    pub(super) verbose: bool,

    /// No progress, no summary, no remarks: only errors
    #[arg(short, long)]
    pub(super) quiet: bool,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Request")]
pub(super) struct RequestArguments {
    /// Send a header; may be given several times
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(super) headers: Vec<String>,

    /// The method, instead of GET (or POST with --data)
    #[arg(short = 'X', long = "request", value_name = "METHOD")]
    pub(super) method: Option<String>,

    /// Send STRING, the file after @, or the standard input (`@-`) as the request's body
    #[arg(short, long, value_name = "STRING|@FILE|@-")]
    pub(super) data: Option<Data>,

    /// Ask for the status and headers only, and print them
    #[arg(short = 'I', long, conflicts_with_all = ["data", "method", "output", "remote_name", "output_dir"])]
    pub(super) head: bool,

    /// Ask for a compressed response (gzip, deflate, br, zstd), and keep it as it is meant
    #[arg(long, conflicts_with = "continued")]
    pub(super) compressed: bool,

    /// Follow redirects
    #[arg(short = 'L', long)]
    pub(super) location: bool,

    /// Follow at most N redirects for one URL
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(super) max_redirs: u8,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Protocol")]
pub(super) struct ProtocolArguments {
    /// HTTP/3 where the server has offered it and UDP works, HTTP/2 or HTTP/1.1 otherwise (the default)
    #[arg(long)]
    pub(super) auto: bool,

    /// Only HTTP/3
    #[arg(long)]
    pub(super) http3: bool,

    /// Only HTTP/2
    #[arg(long)]
    pub(super) http2: bool,

    /// Only HTTP/1.1
    #[arg(long = "http1.1")]
    pub(super) http1: bool,

    /// Remember in FILE which servers offer HTTP/3 and where UDP works, instead of in the user's cache
    #[arg(long, value_name = "FILE")]
    pub(super) alt_svc: Option<PathBuf>,

    /// Remember nothing of this run, and use nothing of earlier ones
    #[arg(long, conflicts_with = "alt_svc")]
    pub(super) no_alt_svc: bool,

    /// Keep in FILE what HTTP/3 connections of later runs begin faster with; whoever can read FILE can read those
    #[arg(long, value_name = "FILE")]
    pub(super) sessions: Option<PathBuf>,

    /// Where FILE has a session that permits it, send GET and HEAD requests before the handshake (0-RTT), which is to
    /// the first address of the server; somebody on the way may send them again
    #[arg(long, requires_all = ["sessions", "http3"])]
    pub(super) early_data: bool,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Measuring")]
pub(super) struct RepeatArguments {
    /// Fetch each URL N times, keep nothing, and print percentiles by protocol; with several protocols
    /// (such as --http2 --http3) in turn
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    #[arg(conflicts_with_all = ["output", "remote_name", "output_dir", "include", "head", "continued"])]
    pub(super) repeat: Option<u32>,

    /// Make a new connection for each request
    #[arg(long, requires = "repeat")]
    pub(super) fresh: bool,
}

/// Where a host is, as it is said on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pin {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) address: IpAddr,
}

impl FromStr for Pin {
    type Err = String;

    fn from_str(text: &str) -> Result<Pin, String> {
        let expected = || "expected HOST:PORT:ADDRESS, such as example.com:443:192.0.2.1".to_owned();
        let (host, rest) = text.split_once(':').ok_or_else(expected)?;
        let (port, address) = rest.split_once(':').ok_or_else(expected)?;
        let target = Target::parse(&format!("https://{host}:{port}/")).map_err(|_| expected())?;
        let inner = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
        let address = inner.parse().map_err(|_| {
            format!("expected an IP address after HOST:PORT:, got {}", address.escape_debug())
        })?;
        Ok(Pin { host: target.origin().host.clone(), port: target.origin().port, address })
    }
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(super) struct NetworkArguments {
    /// Trust the certificate authority in FILE (PEM) besides the system's; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(super) cacert: Vec<PathBuf>,

    /// Accept any certificate: anybody on the way can then read and change everything
    #[arg(short = 'k', long, conflicts_with = "cacert")]
    pub(super) insecure: bool,

    /// Give up connecting after SECONDS
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = typed::seconds)]
    pub(super) connect_timeout: std::time::Duration,

    /// Give up a URL after SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = typed::seconds)]
    pub(super) max_time: Option<std::time::Duration>,

    /// Fetch at most N URLs at a time (default: 100; 1 with --repeat)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(super) parallel: Option<u16>,

    /// Send all requests through this HTTP proxy, http://USER:PASSWORD@HOST:PORT (HTTP/3 does not go through one)
    #[arg(long, value_name = "URL", conflicts_with = "http3")]
    pub(super) proxy: Option<String>,

    /// Use the proxies that HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY name
    #[arg(long, conflicts_with_all = ["proxy", "http3"])]
    pub(super) env_proxy: bool,

    /// Reach HOST at ADDRESS where a URL names PORT, without asking DNS; may be given several times
    #[arg(long, value_name = "HOST:PORT:ADDRESS")]
    pub(super) resolve: Vec<Pin>,

    /// Ask for names by DNS over HTTPS at URL (https://HOST/dns-query); its own host may be given by --resolve
    #[arg(long, value_name = "URL", conflicts_with = "dns")]
    pub(super) doh_url: Option<String>,

    /// Ask this name server rather than the system's
    #[arg(long, value_name = "ADDR:PORT")]
    pub(super) dns: Option<SocketAddr>,

    /// Do not ask DNS for HTTPS records, by which the first visit can go over HTTP/3
    #[arg(long)]
    pub(super) no_https_records: bool,

    /// Do not encrypt the name of the server in the handshake (ECH), also where its HTTPS record says how
    #[arg(long)]
    pub(super) no_ech: bool,

    /// Use IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub(super) ipv4: bool,

    /// Use IPv6 only
    #[arg(short = '6', long)]
    pub(super) ipv6: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_pinned_to_addresses() {
        let pin =
            |text: &str| text.parse::<Pin>().map(|pin| format!("{} {} {}", pin.host, pin.port, pin.address));
        assert_eq!(pin("Example.com:443:192.0.2.1").unwrap(), "example.com 443 192.0.2.1");
        assert_eq!(pin("a:8443:2001:db8::1").unwrap(), "a 8443 2001:db8::1");
        assert_eq!(pin("a:8443:[2001:db8::1]").unwrap(), "a 8443 2001:db8::1");
        for wrong in ["", "a", "a:443", "a:0:192.0.2.1", "a:x:192.0.2.1", ":443:192.0.2.1"] {
            assert!(pin(wrong).unwrap_err().contains("HOST:PORT:ADDRESS"), "{wrong}");
        }
        assert!(pin("a:443:b").unwrap_err().ends_with("after HOST:PORT:, got b"));
    }
}
