//! HTTP datagrams (RFC 9297 section 2): each QUIC datagram belongs to a request, by a quarter of its stream's id.
//!
//! Every extended CONNECT exchange has a flow of them, from its head to its end, if datagrams are enabled. What comes before the
//! head of its request waits with all others of that kind. Of both there is a limit, beyond which the oldest go: datagrams
//! may get lost.

use super::{Connection, incoming};
use crate::error::{DatagramError, Error, ErrorCode};
use crate::event::Event;
use crate::frame;
use crate::request_map::RequestMap;
use crate::transport::Transport;
use bytes::{BufMut, Bytes, BytesMut};
use godwit_wire::{Direction, Reader, Side, StreamId, varint_len};
use std::collections::VecDeque;

/// Datagrams of one flow that wait for the application, at most.
const MAX_WAITING: usize = 256;
/// And their bytes.
const MAX_WAITING_BYTES: usize = 256 << 10;
/// Datagrams that wait for the heads of their requests, at most, on the whole connection.
const MAX_EARLY: usize = 32;

/// The flows of a connection.
#[derive(Debug, Default)]
pub(super) struct Flows {
    open: RequestMap<Flow>,
    /// Datagrams whose requests have not come.
    early: VecDeque<(StreamId, Bytes)>,
    /// Bytes that wait in all flows.
    held: usize,
}

/// The datagrams of one exchange that the application has not fetched.
#[derive(Debug, Default)]
struct Flow {
    waiting: VecDeque<Bytes>,
    bytes: usize,
    /// The application has been told and has not found the end.
    informed: bool,
}

impl Flow {
    fn push(&mut self, datagram: Bytes) {
        self.bytes = self.bytes.saturating_add(datagram.len());
        self.waiting.push_back(datagram);
        while self.waiting.len() > MAX_WAITING || self.bytes > MAX_WAITING_BYTES {
            self.pop();
        }
    }

    fn pop(&mut self) -> Option<Bytes> {
        let datagram = self.waiting.pop_front()?;
        self.bytes = self.bytes.saturating_sub(datagram.len());
        Some(datagram)
    }
}

impl Flows {
    /// A request has its head: it has a flow from now on, or never.
    fn decide(&mut self, id: StreamId, has_flow: bool) {
        let mut flow = has_flow.then(Flow::default);
        self.early.retain(|(request, datagram)| {
            if let Some(flow) = flow.as_mut().filter(|_| *request == id) {
                flow.push(datagram.clone());
            }
            *request != id
        });
        if let Some(mut flow) = flow {
            // Who asks for the first one finds what has come.
            flow.informed = !flow.waiting.is_empty();
            self.held = self.held.saturating_add(flow.bytes);
            self.open.insert(id, flow);
        }
    }

    /// Takes a datagram for a flow; `None` if there is none. Otherwise whether the application is to be told.
    fn push(&mut self, id: StreamId, datagram: Bytes) -> Option<bool> {
        let flow = self.open.get_mut(id)?;
        let before = flow.bytes;
        flow.push(datagram);
        self.held = self.held.saturating_sub(before).saturating_add(flow.bytes);
        Some(!std::mem::replace(&mut flow.informed, true))
    }

    fn pop(&mut self, id: StreamId) -> Option<Bytes> {
        let flow = self.open.get_mut(id)?;
        let datagram = flow.pop();
        flow.informed = datagram.is_some();
        self.held = self.held.saturating_sub(datagram.as_ref().map_or(0, Bytes::len));
        datagram
    }

    /// Bytes that wait for the application.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    fn keep_early(&mut self, id: StreamId, datagram: Bytes) {
        if self.early.len() >= MAX_EARLY {
            self.early.pop_front();
        }
        self.early.push_back((id, datagram));
    }

    /// An exchange is over. True if it had a flow.
    pub(super) fn close(&mut self, id: StreamId) -> bool {
        let flow = self.open.remove(id);
        self.held = self.held.saturating_sub(flow.as_ref().map_or(0, |flow| flow.bytes));
        flow.is_some()
    }

    /// All exchanges are.
    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.early.clear();
        self.held = 0;
    }
}

impl Connection {
    /// Datagrams have come.
    pub fn on_datagrams_readable(&mut self, io: &mut dyn Transport) {
        while !self.shared.closed
            && let Some(datagram) = io.read_datagram()
        {
            self.shared.now = io.now();
            // Nobody was told that they are taken.
            let enabled = self.shared.config.has_datagrams();
            let result = if enabled { self.receive_datagram(&datagram) } else { Ok(()) };
            self.settle_connection(io, result);
        }
    }

    /// The oldest datagram of an exchange that was not fetched. After `None`, [`Event::DatagramsReadable`] tells of more.
    pub fn read_datagram(&mut self, id: StreamId) -> Option<Bytes> {
        self.flows.pop(id)
    }

    /// Sends a datagram of an exchange. It may get lost.
    pub fn send_datagram(
        &mut self,
        io: &mut dyn Transport,
        id: StreamId,
        payload: &[u8],
    ) -> Result<(), DatagramError> {
        if !self.has_flow(id) {
            return Err(DatagramError::Closed);
        }
        let max = self.max_datagram_len(io, id).ok_or(DatagramError::Unsupported)?;
        if payload.len() > max {
            return Err(DatagramError::TooLarge { max });
        }
        let quarter = id.index();
        let mut datagram = BytesMut::with_capacity(varint_len(quarter).saturating_add(payload.len()));
        frame::put_varint(quarter, &mut datagram);
        datagram.put_slice(payload);
        io.send_datagram(datagram.freeze())
    }

    /// The largest datagram of an exchange that can be sent now, in bytes; `None` if the peer takes none.
    pub fn max_datagram_len(&self, io: &dyn Transport, id: StreamId) -> Option<usize> {
        let permitted = self.shared.peer_settings.is_some_and(|settings| settings.h3_datagram);
        let room = io.max_datagram_len().filter(|_| permitted)?;
        room.checked_sub(varint_len(id.index()))
    }

    /// Whether an exchange can have datagrams: it is an extended CONNECT, they are enabled, and it is not over.
    pub fn has_flow(&self, id: StreamId) -> bool {
        self.flows.open.contains(id)
    }

    /// The head of a request has come, or was sent: `tunnel` says that it is an extended CONNECT.
    pub(super) fn open_flow(&mut self, id: StreamId, tunnel: bool) {
        self.flows.decide(id, tunnel && self.shared.config.has_datagrams());
    }

    fn receive_datagram(&mut self, datagram: &Bytes) -> Result<(), Error> {
        let mut reader = Reader::new(datagram);
        let quarter = reader.varint().ok().filter(|quarter| *quarter < 1 << 60);
        let Some(quarter) = quarter else {
            let reason = "a datagram that names no stream of a request";
            return Err(Error::new(ErrorCode::H3_DATAGRAM_ERROR, reason));
        };
        let id = StreamId::new(Side::Client, Direction::Bidirectional, quarter);
        let payload = datagram.slice(varint_at(datagram)..);
        match self.flows.push(id, payload.clone()) {
            Some(true) => return self.shared.push_event(Event::DatagramsReadable { id }),
            Some(false) => return Ok(()),
            None => {}
        }
        let unseen = quarter >= self.next_request;
        if unseen && self.shared.side == Side::Client {
            let reason = "a datagram for a request that was never made";
            return Err(Error::new(ErrorCode::H3_ID_ERROR, reason));
        }
        let headless = |stream: &super::RequestStream| stream.recv.phase() == incoming::Phase::Head;
        if unseen || self.requests.get(id).is_some_and(headless) {
            self.flows.keep_early(id, payload);
        }
        // Others are for what is over, or has no datagrams: they may have been on their way.
        Ok(())
    }
}

/// Bytes of the variable-length integer that `bytes` begin with.
fn varint_at(bytes: &[u8]) -> usize {
    bytes.first().map_or(0, |first| 1_usize.wrapping_shl(u32::from(first >> 6)))
}
