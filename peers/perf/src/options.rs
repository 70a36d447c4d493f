//! The command lines of `perf-server` and `perf-client`.

use anyhow::{Context, Result, bail};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Which cipher a server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cipher {
    /// AES-128-GCM, which clients offer first.
    #[default]
    Aes128,
    /// AES-256-GCM, and no other.
    Aes256,
}

impl Cipher {
    /// For stacks that do not let one choose.
    pub fn only_aes128(self, stack: &str) -> Result<()> {
        match self {
            Cipher::Aes128 => Ok(()),
            Cipher::Aes256 => bail!("{stack} does not let one choose among the ciphers of TLS 1.3"),
        }
    }
}

impl FromStr for Cipher {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> Result<Self> {
        match word {
            "aes128" => Ok(Cipher::Aes128),
            "aes256" => Ok(Cipher::Aes256),
            _ => bail!("{word:?}: --cipher is aes128 or aes256"),
        }
    }
}

/// How a server is started.
#[derive(Debug, Clone)]
pub struct Serve {
    pub listen: SocketAddr,
    /// The certificate chain, PEM.
    pub cert: PathBuf,
    /// The private key, PEM.
    pub key: PathBuf,
    pub cipher: Cipher,
}

impl Serve {
    /// Reads what follows the command.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Self> {
        let (mut listen, mut cert, mut key) = (None, None, None);
        let (mut cipher, mut words) = (Cipher::default(), words.into_iter());
        while let Some(name) = words.next() {
            let value = words.next().with_context(|| format!("{name} has no value"))?;
            match name.as_str() {
                "--listen" => listen = Some(value.parse()?),
                "--cert" => cert = Some(value.into()),
                "--key" => key = Some(value.into()),
                "--cipher" => cipher = value.parse()?,
                _ => bail!("unknown option {name}"),
            }
        }
        let listen = listen.context("--listen ADDR:PORT is wanted")?;
        // Programs that only move datagrams need neither.
        Ok(Self { listen, cert: cert.unwrap_or_default(), key: key.unwrap_or_default(), cipher })
    }
}

/// Requests and what they ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requests {
    /// Bytes of a request after its first eight.
    pub request: usize,
    /// Bytes of a response.
    pub response: u64,
    /// Under way at a time.
    pub streams: usize,
    pub time: Duration,
}

impl Requests {
    /// What is sent.
    pub fn message(&self) -> Vec<u8> {
        let mut message = self.response.to_be_bytes().to_vec();
        message.resize(8 + self.request, 0);
        message
    }
}

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Receives for so long.
    Download(Duration),
    /// Sends for so long, and waits for the server's word that it has everything.
    Upload(Duration),
    Requests(Requests),
    /// Makes connections and closes them.
    Handshakes {
        at_once: usize,
        time: Duration,
    },
    /// Has so many connections open.
    Idle(usize),
}

/// How a client is started.
#[derive(Debug, Clone)]
pub struct Measure {
    pub remote: SocketAddr,
    /// The certificate authority to trust, PEM; without it every certificate is trusted.
    pub ca: Option<PathBuf>,
    pub work: Work,
}

impl Measure {
    /// Reads what follows the command.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut words = words.into_iter();
        let remote = words.next().context("the address of the server is wanted")?.parse()?;
        let (mut ca, mut insecure) = (None, false);
        let (mut download, mut upload, mut idle, mut rps, mut hps) = (None, None, None, false, false);
        let (mut request, mut response, mut streams, mut duration) = (512, 8192, 1, 2.0);
        while let Some(name) = words.next() {
            let mut value = || words.next().with_context(|| format!("{name} has no value"));
            match name.as_str() {
                "--ca" => ca = Some(value()?.into()),
                "--insecure" => insecure = true,
                "--json" => {}
                "--download" => download = Some(value()?.parse()?),
                "--upload" => upload = Some(value()?.parse()?),
                "--idle" => idle = Some(value()?.parse()?),
                "--rps" => rps = true,
                "--hps" => hps = true,
                "--request" => request = value()?.parse()?,
                "--response" => response = value()?.parse()?,
                "--streams" => streams = value()?.parse()?,
                "--duration" => duration = value()?.parse()?,
                _ => bail!("unknown option {name}"),
            }
        }
        if ca.is_none() && !insecure {
            bail!("--ca FILE or --insecure is wanted");
        }
        let time = Duration::try_from_secs_f64(duration)?;
        let work = match (download, upload, idle, rps, hps) {
            (Some(seconds), None, None, false, false) => {
                Work::Download(Duration::try_from_secs_f64(seconds)?)
            }
            (None, Some(seconds), None, false, false) => Work::Upload(Duration::try_from_secs_f64(seconds)?),
            (None, None, Some(connections), false, false) => Work::Idle(connections),
            (None, None, None, true, false) => Work::Requests(Requests { request, response, streams, time }),
            (None, None, None, false, true) => Work::Handshakes { at_once: streams, time },
            _ => bail!("one of --download, --upload, --rps, --hps and --idle is wanted"),
        };
        Ok(Self { remote, ca, work })
    }
}
