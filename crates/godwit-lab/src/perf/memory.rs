//! The memory that connections take, of this process and of a server's.

use crate::Error;
use godwit_os::heap;
use godwit_os::memory::Resident;
use serde::Serialize;

/// How much a process has grown while connections were made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Growth {
    /// Bytes of pages in memory (RSS).
    pub rss_bytes: i64,
    /// Bytes with the process's part only of pages that it shares (PSS), where the system tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pss_bytes: Option<i64>,
    /// For each connection: of what is the process's part if that is known, of all otherwise.
    pub bytes_per_connection: f64,
}

/// What this process and the other had before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Baseline {
    own: Option<Resident>,
    /// Another process, and what it had.
    other: Option<(u32, Resident)>,
    connections: u32,
}

impl Baseline {
    /// As of now, of this process and of another, which must be there; so many connections are about to be made.
    pub(super) fn now(other: Option<u32>, connections: u32) -> Result<Baseline, Error> {
        let of = |process| {
            let resident = Resident::of(process).ok_or_else(|| {
                Error::new(format!("the memory of process {process} is not known: is it alive?"))
            })?;
            Ok::<_, Error>((process, resident))
        };
        // As at the end: what the first connection has left is not what there is.
        heap::give_back();
        Ok(Baseline { own: Resident::now(), other: other.map(of).transpose()?, connections })
    }

    /// How much this process has grown since, and how much the other.
    pub(super) fn growth(&self) -> (Option<Growth>, Option<Growth>) {
        let own = self.own.zip(Resident::now());
        // A server that has ended since does not take the figures with it.
        let other = self.other.and_then(|(process, before)| Some((before, Resident::of(process)?)));
        let growth = |(before, after)| Growth::between(before, after, self.connections);
        (own.map(growth), other.map(growth))
    }
}

impl Growth {
    fn between(before: Resident, after: Resident, connections: u32) -> Growth {
        let rss_bytes = after.rss.cast_signed().saturating_sub(before.rss.cast_signed());
        let pss = before.pss.zip(after.pss);
        let pss_bytes = pss.map(|(before, after)| after.cast_signed().saturating_sub(before.cast_signed()));
        let each = pss_bytes.unwrap_or(rss_bytes) as f64 / f64::from(connections.max(1));
        Growth { rss_bytes, pss_bytes, bytes_per_connection: each.round() }
    }
}
