//! The one interface of a connection's parts.
//!
//! A part owns some frames: it takes those of the peer that concern nobody else, says whether it wants to send any,
//! writes them into packets, is told what became of what it wrote, says when it wants to be called, has news for the
//! application, and gives memory back. The calls of the application, and frames that concern others as well, are
//! methods of its own. It reports by what it returns and never reaches into another part.
//!
//! The parts of a connection stand in one table, `connection/parts.rs`. Whoever adds one writes a file that implements
//! [`Part`] and a line there: frames, order of writing, outcomes, deadlines, news and memory follow from the table.

use crate::packet::PacketBuilder;
use crate::{Event, WireError};
use godwit_base::Time;
use godwit_recovery::Outcome;
use godwit_wire::Frame;

/// How long nothing has been heard of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Silence {
    /// When its last packet came, or when the first packet was sent after that which it has to acknowledge (RFC 9000
    /// section 10.1).
    pub(crate) since: Time,
    /// Such a packet has been sent: there is something to wait for.
    pub(crate) awaits_answer: bool,
}

/// See the module. Everything has a default: a part says only what concerns it.
pub(crate) trait Part {
    /// What is remembered of a frame until it is acknowledged or lost; [`NoToken`] if nothing is.
    type Token: Copy;

    /// A frame of the peer, in a packet that may carry it. `None` if it is none of this part's.
    #[inline]
    fn on_frame(&mut self, now: Time, frame: &Frame<'_>) -> Option<Result<(), WireError>> {
        let _ = (now, frame);
        None
    }

    /// True if [`Part::write_frames`] has something to write. Asked for every packet: it must cost next to nothing.
    fn wants_to_send(&self) -> bool {
        false
    }

    /// Writes what is due and fits.
    fn write_frames<T: From<Self::Token>>(&mut self, packet: &mut PacketBuilder<'_, T>) {
        let _ = packet;
    }

    /// What became of a packet that carried this. A loss may turn out to be spurious: then it came late, and counts as
    /// acknowledged.
    fn on_outcome(&mut self, outcome: Outcome, token: Self::Token) {
        match outcome {
            Outcome::Acked | Outcome::Spurious => self.on_acked(token),
            Outcome::Lost => self.repeat(token),
        }
    }

    /// The peer has this.
    fn on_acked(&mut self, token: Self::Token) {
        let _ = token;
    }

    /// This is to be sent again: its packet was lost, or a probe wants something to say.
    fn repeat(&mut self, token: Self::Token) {
        let _ = token;
    }

    /// Whether [`Part::merge`] ever makes one token of two.
    const MERGES: bool = false;

    /// Makes one token of two that were sent one after the other and fare alike, if it can.
    fn merge(token: &mut Self::Token, next: Self::Token) -> bool {
        let _ = (token, next);
        false
    }

    /// When [`Part::on_timeout`] is to be called at the latest, if the present silence lasts. Afterwards it must be
    /// later.
    fn deadline(&self, silence: &Silence) -> Option<Time> {
        let _ = silence;
        None
    }

    /// Its deadline has come.
    fn on_timeout(&mut self, now: Time) {
        let _ = now;
    }

    /// The next thing the application is to know.
    fn next_event(&mut self) -> Option<Event> {
        None
    }

    /// The connection is over: nothing is sent any more.
    fn on_closed(&mut self) {}

    /// Gives back memory that is not in use, because the connection has come to rest.
    fn release_memory(&mut self) {}
}

/// The token of parts of which nothing is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoToken {}
