//! A server's settings as its client remembers them, for requests that leave in 0-RTT packets (RFC 9114 section 7.2.4.2).
//!
//! Until the server's own settings come, its limit on fields is that of the time before. Of QPACK's table and extended CONNECT
//! nothing is used so early, as section 7.2.4.2 and RFC 9204 section 3.2.3 leave open: such sections refer to the static
//! table alone, and who asks for a tunnel waits. A server that has taken the requests and permits less by then has broken its
//! word, whether or not that matters to them.

use super::Connection;
use crate::settings::Settings;

impl Connection {
    /// At a client, before the first request leaves in 0-RTT packets: what the server's settings were when the ticket came.
    /// Without it the initial values hold, of which none is a limit.
    pub fn remember_settings(&mut self, settings: Settings) {
        if self.shared.peer_settings.is_none() {
            self.shared.remembered = Some(settings);
        }
    }

    /// Whether remembered settings hold: the server's own have not come.
    pub fn has_remembered_settings(&self) -> bool {
        self.shared.remembered.is_some()
    }

    /// The server has refused 0-RTT: it is bound by nothing that it had told before.
    pub fn forget_remembered_settings(&mut self) {
        self.shared.remembered = None;
    }
}
