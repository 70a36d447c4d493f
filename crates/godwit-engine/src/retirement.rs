//! Sockets that are to be closed when no connection uses them any more.

use godwit_base::SocketId;
use godwit_datapath::Counters;

/// Which sockets are to go.
#[derive(Debug, Default)]
pub(crate) struct Retirement {
    /// They are closed as soon as no connection has a path on them.
    pub(crate) retiring: Vec<SocketId>,
    /// One of them may be unused by now.
    pub(crate) due: bool,
    /// What those have done that are closed.
    pub(crate) closed: Counters,
}
