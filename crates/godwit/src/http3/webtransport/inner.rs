//! What all handles of a session and of its streams have in common.

use super::end::Ends;
use crate::http3::datagram_flow::DatagramFlow;
use std::sync::Arc;

/// What all handles of a session share. When the last of them is gone, the session is closed.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) ends: Arc<Ends>,
    pub(super) datagrams: DatagramFlow,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.ends.close(None);
    }
}
