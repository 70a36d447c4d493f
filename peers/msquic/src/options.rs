//! The command line.

use anyhow::{Context, Result, bail};
use std::net::SocketAddr;

/// What a server is given.
pub struct Listen {
    pub address: SocketAddr,
    pub certificate: String,
    pub key: String,
    /// The authority that the client in the same process trusts; it trusts everybody without.
    pub authority: Option<String>,
    pub alpn: String,
}

/// What a client is given.
pub struct Connect {
    pub address: SocketAddr,
    pub authority: Option<String>,
    pub alpn: String,
    pub streams: u16,
    pub bytes: usize,
}

/// What a server of files is given.
pub struct HqServe {
    pub listen: Listen,
    pub root: String,
}

/// What a client of one is given. All paths are of one server.
pub struct HqFetch {
    pub authority: Option<String>,
    pub host: String,
    pub port: u16,
    /// Each begins with a slash.
    pub paths: Vec<String>,
}

const ALPN: &str = "echo";

impl Listen {
    pub fn parse(words: impl Iterator<Item = String>) -> Result<Self> {
        let mut parsed = Self {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            certificate: String::new(),
            key: String::new(),
            authority: None,
            alpn: ALPN.to_owned(),
        };
        for_each_option(words, |name, value| {
            match name {
                "--listen" => parsed.address = value.parse().context("--listen ADDR:PORT")?,
                "--cert" => parsed.certificate = value,
                "--key" => parsed.key = value,
                "--ca" => parsed.authority = Some(value),
                "--alpn" => parsed.alpn = value,
                _ => bail!("a server has no option {name}"),
            }
            Ok(())
        })?;
        if parsed.certificate.is_empty() || parsed.key.is_empty() {
            bail!("--cert PEM and --key PEM are needed");
        }
        Ok(parsed)
    }
}

impl Connect {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let address = words.next().context("the server's ADDR:PORT comes first")?;
        let mut parsed = Self {
            address: address.parse().context("the server's ADDR:PORT comes first")?,
            authority: None,
            alpn: ALPN.to_owned(),
            streams: 1,
            bytes: 1 << 20,
        };
        for_each_option(words, |name, value| {
            match name {
                "--ca" => parsed.authority = Some(value),
                "--alpn" => parsed.alpn = value,
                "--streams" => parsed.streams = value.parse().context("--streams N")?,
                "--bytes" => parsed.bytes = value.parse().context("--bytes N")?,
                _ => bail!("a client has no option {name}"),
            }
            Ok(())
        })?;
        Ok(parsed)
    }
}

impl HqServe {
    pub fn parse(words: impl Iterator<Item = String>) -> Result<Self> {
        let words: Vec<String> = words.collect();
        let at = words.iter().position(|word| word == "--root").context("--root DIR is needed")?;
        let root = words.get(at + 1).context("--root needs a value")?.clone();
        let others = words[..at].iter().chain(&words[at + 2..]).cloned();
        let alpn = crate::hq::ALPN.to_owned();
        Ok(Self { listen: Listen { alpn, ..Listen::parse(others)? }, root })
    }
}

impl HqFetch {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut parsed = Self { authority: None, host: String::new(), port: 0, paths: Vec::new() };
        while let Some(word) = words.next() {
            if word == "--ca" {
                parsed.authority = Some(words.next().context("--ca needs a value")?);
                continue;
            }
            let rest = word.strip_prefix("https://").context("URLs are https://HOST:PORT/PATH")?;
            let (server, path) = rest.split_once('/').context("URLs are https://HOST:PORT/PATH")?;
            let (host, port) = server.rsplit_once(':').context("URLs are https://HOST:PORT/PATH")?;
            (parsed.host, parsed.port) = (host.to_owned(), port.parse().context("a URL's port")?);
            parsed.paths.push(format!("/{path}"));
        }
        Ok(parsed)
    }
}

fn for_each_option(
    mut words: impl Iterator<Item = String>,
    mut take: impl FnMut(&str, String) -> Result<()>,
) -> Result<()> {
    while let Some(name) = words.next() {
        let value = words.next().with_context(|| format!("{name} needs a value"))?;
        take(&name, value)?;
    }
    Ok(())
}
