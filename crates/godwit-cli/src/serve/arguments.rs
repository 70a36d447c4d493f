//! The command line of `godwit serve`.

use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::path::PathBuf;

use godwit_front::config::upstream_url;
use godwit_front::parse_address;
use godwit_front::settings::{Datapath, Spin};

use crate::error::Failure;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_value_name = "INSTEAD")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(super) instead: Option<Instead>,

    /// Folder to serve [default: the example site inside the program]
    ///
    /// Names that begin with a dot are not served (except .well-known), nor are links that lead out of the folder.
    #[arg(value_name = "DIR", conflicts_with = "proxy")]
    pub(super) directory: Option<PathBuf>,

    /// Serve what this HTTP server has (http://, https:// or h2c:// for HTTP/2 without TLS); repeated, they
    /// take turns
    #[arg(long, value_name = "URL", value_parser = upstream_url)]
    pub(super) proxy: Vec<String>,

    /// Read sites, certificates and everything else from this TOML file
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// Only say whether all is well; no port is opened
    #[arg(long)]
    pub(super) check: bool,

    /// Address and port, both for UDP and TCP; may be repeated. A port alone means every address,
    /// port 0 any free port [default: `[::]:4433`, which is IPv4 as well]
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_address)]
    pub(super) listen: Vec<SocketAddr>,

    /// Certificate chain (PEM) [default: made for this machine by an authority of your own]
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(super) cert: Option<PathBuf>,

    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(super) key: Option<PathBuf>,

    /// Write a JSON line for each request into this file (`-`: to the standard output)
    #[arg(long, value_name = "FILE")]
    pub(super) access_log: Option<PathBuf>,

    /// Serve /metrics for Prometheus, /healthz and /readyz here, as plain HTTP
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_address)]
    pub(super) metrics: Option<SocketAddr>,

    /// Open the site in Chromium or Chrome, with a fresh profile that trusts this server
    #[arg(long)]
    pub(super) open: bool,

    /// Threads that answer requests, over every protocol, each with connections of its own [default: one for each core
    /// that it may use]
    #[arg(long, value_name = "N", value_parser = cores)]
    pub(super) shards: Option<NonZeroU8>,

    /// Look for datagrams before going to sleep, which saves being woken and costs a core: off, auto (while it is likely that
    /// they come soon), or always, for 1 ms after the last datagram or as said, such as always:200us [default: off]
    #[arg(long, value_name = "WHEN")]
    pub(super) spin: Option<Spin>,

    /// How UDP is sent and received: auto, the best this system has; linux, in batches with segmentation offload; or
    /// portable, as on any system
    #[arg(long, value_name = "KIND", default_value = "auto")]
    pub(super) datapath: Datapath,

    /// Write a trace of every HTTP/3 connection into this folder (qlog, one file each)
    #[arg(long, value_name = "DIR")]
    pub(super) qlog: Option<PathBuf>,

    /// No line for each request
    #[arg(long, short)]
    pub(super) quiet: bool,

    /// End at once when the standard input ends: whoever started the server has ended.
    #[arg(long, hide = true)]
    pub(super) until_end_of_input: bool,
}

/// What can be done in place of serving.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Instead {
    PrintDns(super::dns::Arguments),
}

impl Arguments {
    /// # Errors
    /// If there is a flag for something that the configuration file says.
    pub(super) fn check_conflicts(&self) -> Result<(), Failure> {
        let Some(file) = &self.config else { return Ok(()) };
        let given = [
            ("DIR", "files", self.directory.is_some()),
            ("--proxy", "proxy", !self.proxy.is_empty()),
            ("--listen", "listen", !self.listen.is_empty()),
            ("--cert and --key", "[[certificate]]", self.cert.is_some()),
            ("--access-log", "[access_log]", self.access_log.is_some()),
            ("--metrics", "metrics", self.metrics.is_some()),
            ("--shards", "shards", self.shards.is_some()),
            ("--spin", "spin", self.spin.is_some()),
            ("--qlog", "qlog", self.qlog.is_some()),
        ];
        match given.iter().find(|(_, _, given)| *given) {
            None => Ok(()),
            Some((flag, key, _)) => Err(Failure::new(format!(
                "{flag} cannot be given with --config; write `{key}` into {} instead",
                file.display()
            ))),
        }
    }
}

fn cores(text: &str) -> Result<NonZeroU8, String> {
    text.parse().map_err(|_| "expected a number from 1 to 255".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn check(words: &str) -> Result<(), String> {
        let words = std::iter::once("serve").chain(words.split_whitespace());
        let program = Program::try_parse_from(words).map_err(|error| error.to_string())?;
        program.arguments.check_conflicts().map_err(|failure| failure.to_string())
    }

    #[test]
    fn what_the_file_says_is_not_said_twice() {
        assert_eq!(check("--config a.toml --check --quiet --open --datapath portable"), Ok(()));
        for (words, expected) in [
            ("DIR", "DIR cannot be given with --config; write `files` into a.toml instead"),
            ("--proxy http://a", "--proxy cannot"),
            ("--listen 80", "write `listen` into"),
            ("--cert a --key b", "write `[[certificate]]` into"),
            ("--access-log -", "write `[access_log]` into"),
            ("--metrics 9090", "write `metrics` into"),
            ("--shards 2", "write `shards` into"),
            ("--spin auto", "write `spin` into"),
            ("--qlog .", "write `qlog` into"),
        ] {
            let problem = check(&format!("--config a.toml {words}")).unwrap_err();
            assert!(problem.contains(expected), "{words}: {problem}");
        }
    }

    #[test]
    fn a_folder_or_a_proxy() {
        assert_eq!(check("--proxy http://a --proxy http://b"), Ok(()));
        assert!(check("DIR --proxy http://a").unwrap_err().contains("cannot be used with"));
    }
}
