//! Ready applications: exchanges of bytes that are all checked, and a bulk transfer and small requests whose bytes are
//! only counted.
//!
//! An [`Exchange`] is one stream opened by the client. It begins with a header that says how much will
//! be sent and how much is wanted back; the bytes in both directions follow a [`crate::Pattern`].
//! Uploads, downloads, two-way transfers and requests with responses are all exchanges.

mod bulk;
mod client;
mod flow;
mod records;
mod requests;
mod server;

pub use bulk::{Beside, BulkClient, BulkProgress, BulkServer, Way};
pub use client::{Completion, ExchangeClient};
pub use requests::{RequestClient, RequestPlan, RequestServer, Round};
pub use server::{ExchangeServer, Policy};

use godwit_transport::Direction;

/// One stream's worth of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// The direction of the stream. A unidirectional one carries no download.
    pub direction: Direction,
    /// Bytes from client to server, after the header.
    pub upload: u64,
    /// Bytes from server to client.
    pub download: u64,
    /// Whether the server answers as soon as it has the header, or only after the last byte.
    pub at_once: bool,
}

impl Exchange {
    /// Sends `bytes`; the server ends the stream when it has them all.
    pub const fn upload(bytes: u64) -> Self {
        Exchange { direction: Direction::Bidirectional, upload: bytes, download: 0, at_once: false }
    }

    /// Fetches `bytes`.
    pub const fn download(bytes: u64) -> Self {
        Exchange { direction: Direction::Bidirectional, upload: 0, download: bytes, at_once: false }
    }

    /// Sends and fetches at the same time.
    pub const fn two_way(upload: u64, download: u64) -> Self {
        Exchange { direction: Direction::Bidirectional, upload, download, at_once: true }
    }

    /// Sends a request, then gets the response.
    pub const fn request(request: u64, response: u64) -> Self {
        Exchange { direction: Direction::Bidirectional, upload: request, download: response, at_once: false }
    }

    /// Sends `bytes` on a unidirectional stream.
    pub const fn one_way(bytes: u64) -> Self {
        Exchange { direction: Direction::Unidirectional, upload: bytes, download: 0, at_once: false }
    }
}

/// The bytes in front of every exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    upload: u64,
    download: u64,
    seed: u64,
    at_once: bool,
}

impl Header {
    const LEN: usize = 25;

    fn encode(&self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        let words = [self.upload, self.download, self.seed].into_iter().flat_map(u64::to_le_bytes);
        let bytes = std::iter::once(u8::from(self.at_once)).chain(words);
        out.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (at_once, words) = bytes.split_first()?;
        let (words, _) = words.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let (upload, download, seed) = (words.next()?, words.next()?, words.next()?);
        Some(Header { upload, download, seed, at_once: *at_once != 0 })
    }
}
