//! The server of exchanges.

use super::Header;
use super::flow::{Chunk, Inflow, Outflow, next_chunk};
use crate::app::{Application, Context};
use crate::pattern::Pattern;
use bytes::Bytes;
use godwit_base::Time;
use godwit_transport::IncomingKey;
use godwit_transport::{ConnKey, Connection, ConnectionError, Direction, Event, StreamId};
use std::collections::BTreeMap;

/// What a server does with those who want to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// Lets them.
    #[default]
    Accept,
    /// Asks those whose address is not proved for a token first.
    Retry,
    /// Says no.
    Refuse,
    /// Says nothing.
    Ignore,
}

#[derive(Debug)]
enum Serving {
    /// The header is not complete.
    Head(Vec<u8>),
    Body {
        header: Header,
        upload: Inflow,
        download: Option<Outflow>,
    },
}

/// Serves exchanges on any number of connections.
#[derive(Debug, Default)]
pub struct ExchangeServer {
    streams: BTreeMap<(ConnKey, StreamId), Serving>,
    /// What is done with those who want to connect.
    pub policy: Policy,
    /// Connections accepted, in order.
    pub accepted: Vec<ConnKey>,
    /// Connections that were confirmed, with the time.
    pub confirmed: Vec<(ConnKey, Time)>,
    /// Connections that are over, with the time and the reason.
    pub closed: Vec<(ConnKey, Time, ConnectionError)>,
    /// Bytes received and found right.
    pub verified: u64,
    /// Exchanges received to their end.
    pub received: u64,
    /// What went wrong, by connection.
    pub failures: Vec<(ConnKey, String)>,
    /// Validated changes of path.
    pub path_changes: u32,
    /// Those asked for a token.
    pub retried: u32,
}

impl ExchangeServer {
    /// A server with this policy.
    pub fn new(policy: Policy) -> Self {
        ExchangeServer { policy, ..ExchangeServer::default() }
    }

    fn accept_streams(&mut self, cx: &mut Context<'_>, conn: ConnKey, direction: Direction) {
        while let Some(id) = cx.endpoint.with(conn, |conn| conn.accept(direction)).flatten() {
            self.streams.insert((conn, id), Serving::Head(Vec::new()));
            self.pump(cx, conn, id);
        }
    }

    fn pump(&mut self, cx: &mut Context<'_>, key: ConnKey, id: StreamId) {
        let Some(serving) = self.streams.get_mut(&(key, id)) else { return };
        let now = cx.now;
        let verified = &mut self.verified;
        match cx.endpoint.with(key, |conn| serving.pump(now, conn, id, verified)) {
            Some(Ok(true)) => {
                self.received += 1;
                self.streams.remove(&(key, id));
            }
            Some(Ok(false)) | None => {}
            Some(Err(failure)) => {
                self.failures.push((key, failure));
                cx.endpoint.with(key, |conn| conn.close(now, 2, b"exchange failed"));
            }
        }
    }
}

impl Serving {
    /// Reads and writes what can be. True if both directions are done.
    fn pump(
        &mut self,
        now: Time,
        conn: &mut Connection,
        id: StreamId,
        verified: &mut u64,
    ) -> Result<bool, String> {
        if let Serving::Head(head) = self {
            let Some(body) = read_head(now, conn, id, head)? else { return Ok(false) };
            *self = body;
            if let Serving::Body { upload, .. } = self {
                *verified += upload.verified();
            }
        }
        let Serving::Body { header, upload, download } = self else { return Ok(false) };
        let before = upload.verified();
        upload.pump(now, conn, id)?;
        *verified += upload.verified() - before;
        if id.direction() == Direction::Unidirectional {
            return Ok(upload.is_done());
        }
        if download.is_none() && (header.at_once || upload.is_done()) {
            *download = Some(Outflow::new(Bytes::new(), Pattern::new(!header.seed), header.download));
        }
        let sent = match download {
            Some(download) => download.pump(conn, id)?,
            None => false,
        };
        Ok(sent && upload.is_done())
    }
}

/// Collects the header; what comes with it is already checked.
fn read_head(
    now: Time,
    conn: &mut Connection,
    id: StreamId,
    head: &mut Vec<u8>,
) -> Result<Option<Serving>, String> {
    loop {
        match next_chunk(now, conn, id)? {
            Chunk::Blocked => return Ok(None),
            Chunk::End => return Err(format!("{id:?}: ended in its header")),
            Chunk::Data(data) => head.extend_from_slice(&data),
        }
        let Some((bytes, rest)) = head.split_at_checked(Header::LEN) else { continue };
        let header = Header::decode(bytes).ok_or("no header")?;
        let mut upload = Inflow::new(Pattern::new(header.seed), header.upload);
        upload.check(id, rest)?;
        return Ok(Some(Serving::Body { header, upload, download: None }));
    }
}

impl Application for ExchangeServer {
    fn on_incoming(&mut self, cx: &mut Context<'_>, incoming: IncomingKey) {
        let may_retry = cx.endpoint.incoming(incoming).is_some_and(|incoming| incoming.may_retry());
        match self.policy {
            Policy::Refuse => {
                cx.endpoint.refuse(incoming);
            }
            Policy::Ignore => {
                cx.endpoint.ignore(incoming);
            }
            Policy::Retry if may_retry => {
                self.retried += 1;
                cx.endpoint.retry(incoming);
            }
            Policy::Accept | Policy::Retry => self.accepted.extend(cx.accept(incoming)),
        }
    }

    fn on_event(&mut self, cx: &mut Context<'_>, conn: ConnKey, event: Event) {
        match event {
            Event::Confirmed => self.confirmed.push((conn, cx.now)),
            Event::StreamOpened { direction } => self.accept_streams(cx, conn, direction),
            Event::Readable { id } | Event::Writable { id } => self.pump(cx, conn, id),
            Event::PathChanged => self.path_changes += 1,
            Event::Closed { reason } => {
                self.streams.retain(|(of, _), _| *of != conn);
                self.closed.push((conn, cx.now, reason));
            }
            _ => {}
        }
    }
}
