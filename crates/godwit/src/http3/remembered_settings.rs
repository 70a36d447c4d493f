//! The server's settings from one connection to the next (RFC 9114 section 7.2.4.2): a client keeps them where it keeps its
//! tickets, and its 0-RTT requests keep to them.

use super::protocol::Protocol;
use crate::handler::raw::RawCx;
use crate::{Connection, EarlyDataStatus};
use godwit_http3::Settings;
use godwit_wire::Side;

/// What they are kept behind: programs may keep something of their own in that place.
const MARK: &[u8] = b"HTTP/3 settings: ";

/// What is remembered of the server that a connection with 0-RTT goes to, if anything is.
pub(super) fn of(connection: &Connection) -> Option<Settings> {
    let kept = connection.remembered()?.application;
    Settings::decode(kept.strip_prefix(MARK)?).ok()
}

impl Protocol {
    /// The server's settings have come.
    pub(super) fn keep_settings(&self, cx: &mut RawCx<'_, '_>) {
        if self.side == Side::Client
            && let Some(settings) = self.h3.peer_settings()
            && let Some(connection) = cx.connection()
        {
            connection.remember_application_data(&[MARK, &settings.to_bytes()].concat().into());
        }
    }

    /// To be called before anything is read that came: a server that has refused 0-RTT is bound by nothing.
    pub(super) fn check_early_data(&mut self, connection: Option<&godwit_transport::Connection>) {
        if self.h3.has_remembered_settings()
            && connection
                .is_some_and(|connection| connection.early_data_status() == EarlyDataStatus::Rejected)
        {
            self.h3.forget_remembered_settings();
        }
    }
}
