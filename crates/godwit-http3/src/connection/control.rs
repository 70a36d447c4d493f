//! Our control stream: settings first, what origins there are (RFC 9412), GOAWAY later (RFC 9114 sections
//! 6.2.1 and 5.2).

use super::Connection;
use super::outlet::Outlet;
use crate::config::Config;
use crate::error::{Error, ErrorCode, SendError};
use crate::frame::{self, FrameType};
use crate::origin;
use crate::settings::Settings;
use crate::transport::Transport;
use godwit_wire::{Direction, Side, StreamId};

/// Bytes that may wait for the peer to take them. It must let the control stream flow.
const MAX_PENDING: usize = 4096;

/// The stream type of a control stream (section 6.2.1).
const CONTROL: u64 = 0x0;

/// Our control stream.
#[derive(Debug)]
pub(super) struct Control {
    stream: Outlet,
    /// The id of our last GOAWAY.
    pub(super) goaway: Option<u64>,
}

impl Control {
    pub(super) fn new(side: Side, config: &Config) -> Self {
        let settings = Settings {
            max_field_section_size: Some(config.max_field_section_size),
            qpack_max_table_capacity: config.qpack_max_table_capacity,
            qpack_blocked_streams: config.qpack_blocked_streams as u64,
            enable_connect_protocol: side == Side::Server && config.has_connect_protocol(),
            h3_datagram: config.has_datagrams(),
            webtransport_max_sessions: config.max_webtransport_sessions as u64,
            ..Settings::default()
        };
        let mut stream = Outlet::new(CONTROL);
        settings.encode(config.grease, stream.pending());
        if side == Side::Server && !config.origins.is_empty() {
            origin::encode(&config.origins, stream.pending());
        }
        if config.grease {
            frame::put_header(FrameType(frame::reserved(2)), 0, stream.pending());
        }
        Control { stream, goaway: None }
    }

    /// True if this is the stream's id.
    pub(super) fn is(&self, id: StreamId) -> bool {
        self.stream.is(id)
    }

    /// The stream's id, once it is open.
    pub(super) fn id(&self) -> Option<StreamId> {
        self.stream.id()
    }

    /// Opens the stream if need be and offers what is pending.
    pub(super) fn flush(&mut self, io: &mut dyn Transport) -> Result<(), Error> {
        let refused = |_| Error::new(ErrorCode::H3_CLOSED_CRITICAL_STREAM, "the control stream was refused");
        self.stream.flush(io).map(drop).map_err(refused)
    }

    fn send(&mut self, io: &mut dyn Transport, frame_type: FrameType, id: u64) -> Result<(), Error> {
        if self.stream.held() > MAX_PENDING {
            return Err(Error::new(
                ErrorCode::H3_EXCESSIVE_LOAD,
                "the peer does not read the control stream",
            ));
        }
        frame::put_id_frame(frame_type, id, self.stream.pending());
        self.flush(io)
    }
}

impl Connection {
    /// Tells the peer not to begin anything new (section 5.2). A server names the first request stream
    /// that it will not process, or 2^62 - 4 as a first notice; a client names a push id. Ids must not
    /// grow from one call to the next.
    ///
    /// Requests from `id` on are rejected from now on.
    pub fn goaway(&mut self, io: &mut dyn Transport, id: u64) -> Result<(), SendError> {
        if self.shared.closed {
            return Err(SendError::Closed);
        }
        let stream = StreamId::from_u64(id);
        let request = stream.initiator() == Side::Client && stream.direction() == Direction::Bidirectional;
        if id > godwit_wire::codec::VARINT_MAX || (self.shared.side == Side::Server && !request) {
            return Err(SendError::NotPermitted("not the id of a request stream"));
        }
        if self.shared.side == Side::Server && stream.index() < self.next_request {
            // The client would send again what may have been acted on.
            return Err(SendError::NotPermitted("requests from that id on have been taken already"));
        }
        if self.control.goaway.is_some_and(|before| id > before) {
            return Err(SendError::NotPermitted("a GOAWAY with a larger id than the one before"));
        }
        if self.control.goaway.replace(id) != Some(id) {
            let result = self.control.send(io, FrameType::GOAWAY, id);
            self.shared.compression.on_control(self.control.id());
            self.settle_connection(io, result);
        }
        Ok(())
    }

    /// Sends GOAWAY so that what has arrived is finished and nothing new begins. Once
    /// [`Connection::open_requests`] is 0, [`Connection::close`] loses nothing.
    pub fn shutdown(&mut self, io: &mut dyn Transport) -> Result<(), SendError> {
        if self.control.goaway.is_some_and(|before| before < self.next_goaway()) {
            // Requests rejected since then do not move the limit.
            return Ok(());
        }
        self.goaway(io, self.next_goaway())
    }

    fn next_goaway(&self) -> u64 {
        match self.shared.side {
            Side::Server => StreamId::new(Side::Client, Direction::Bidirectional, self.next_request).as_u64(),
            // No push has been allowed.
            Side::Client => 0,
        }
    }
}
