//! What a connection tells by itself, from the beginning to the end.

use super::connection::Connection;
use super::stream::Stream;
use super::{datagram, lost, paths, streaming};
use crate::abi;
use crate::handles;
use crate::introductions::Place;
use crate::subject::Subject;
use godwit::{RecvStream, SendStream};
use std::sync::Arc;

impl Connection {
    /// Tells what happens to it, until it is over.
    pub(super) async fn work(self: Arc<Self>, inner: godwit::Connection) {
        let working = Arc::clone(&self);
        let all = async move {
            tokio::join!(
                working.accept_bidirectional(&inner),
                working.accept_unidirectional(&inner),
                datagram::receive(&working, &inner),
                datagram::tell_outcomes(&working, &inner),
                paths::tell(&working, &inner),
            );
            let error = inner.closed().await;
            let event = working.subject.event(abi::EVENT_CONNECTION_CLOSED);
            let event = event.with_code(error.application_code().unwrap_or_default());
            let event = event.with_bytes(error.peer_reason().cloned().unwrap_or_default(), None);
            working.subject.tell(event.with_failure(&lost::connection(&error)));
        };
        self.subject.unless_closed(all).await;
    }

    async fn accept_bidirectional(&self, inner: &godwit::Connection) {
        loop {
            let place = self.introductions.place().await;
            let Ok((send, receive)) = inner.accept_bi().await else { return };
            self.welcome(Some(send), receive, place);
        }
    }

    async fn accept_unidirectional(&self, inner: &godwit::Connection) {
        loop {
            let place = self.introductions.place().await;
            let Ok(receive) = inner.accept_uni().await else { return };
            self.welcome(None, receive, place);
        }
    }

    /// Tells of a stream that the peer has opened.
    fn welcome(&self, send: Option<SendStream>, receive: RecvStream, place: Place) {
        let (id, is_early) = (receive.id().as_u64(), receive.is_early());
        let made = handles::insert(|handle| {
            let subject = Subject::of(&self.subject, handle, self.subject.tag());
            Arc::new(Stream::new(subject, self.limits, send.is_some(), true))
        });
        // Without a handle both ends are dropped, and so is the stream.
        let Ok(stream) = made else { return };
        let mut flags = if send.is_none() { abi::EVENT_FLAG_UNIDIRECTIONAL } else { 0 };
        if is_early {
            flags |= abi::EVENT_FLAG_EARLY;
        }
        let event = stream.subject.event(abi::EVENT_STREAM).introducing(place);
        stream.subject.tell(event.with_code(id).with_flags(flags));
        self.runtime.spawn(streaming::work(stream, send, Some(receive)));
    }
}
