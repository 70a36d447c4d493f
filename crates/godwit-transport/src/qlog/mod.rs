//! qlog: events as JSON text sequences, for tools such as qvis.
//!
//! A [`Qlog`] writes one trace of one connection: a header and then a record for each event, each begun by
//! an ASCII record separator and ended by a line feed (RFC 7464; draft-ietf-quic-qlog-main-schema, file
//! schema `urn:ietf:params:qlog:file:sequential`). Names and fields are those of the declared events
//! ([`TransportEvent`]), which follow draft-ietf-quic-qlog-quic-events. Times are milliseconds since the
//! first event.
//!
//! Nothing is opened or written here: records go to a sink, one call for each. Contents of streams, tokens,
//! keys and reset tokens are never logged; addresses and connection ids are.

mod json;

#[cfg(test)]
mod tests;

use crate::observe::{Observer, ObserverInfo, TransportEvent, TransportEventKind, TransportMask};
use godwit_base::Time;
use godwit_base::event::{Event, Importance, Visitor};
use godwit_wire::Side;
use json::JsonWriter;
use std::fmt;

/// What begins and ends a record (RFC 7464 section 2.2).
const RECORD_SEPARATOR: u8 = 0x1e;
const LINE_FEED: u8 = b'\n';
/// The event schema, with the number of the draft as long as there is no RFC.
const QUIC_SCHEMA: &str = "urn:ietf:params:qlog:events:quic-12";

/// Takes the records of a trace, each in one call.
pub type Sink = Box<dyn FnMut(&[u8]) + Send>;

/// The trace of one connection. Install it with an
/// [`ObserverFactory`](crate::observe::ObserverFactory).
pub struct Qlog {
    sink: Sink,
    mask: TransportMask,
    json: JsonWriter,
    start: Option<Time>,
}

impl Qlog {
    /// A trace of every event. The header goes to `sink` at once.
    pub fn new(info: &ObserverInfo, sink: Sink) -> Self {
        let mask = TransportEventKind::at_least(Importance::Extra);
        let mut qlog = Qlog { sink, mask, json: JsonWriter::new(), start: None };
        qlog.write(|json| header(info, json));
        qlog
    }

    /// Logs these kinds of events only.
    #[must_use]
    pub fn with_mask(mut self, mask: TransportMask) -> Self {
        self.mask = mask;
        self
    }

    /// Logs an event. It need not be one of the transport's: tools skip names that they do not know.
    pub fn record<E: Event>(&mut self, now: Time, event: &E) {
        let start = *self.start.get_or_insert(now);
        self.write(|json| {
            json.duration("time", now.saturating_since(start));
            json.qualified("name", E::NAMESPACE, event.name());
            json.group("data", &|visitor| event.visit(visitor));
        });
    }

    fn write(&mut self, fields: impl Fn(&mut JsonWriter)) {
        self.json.begin(RECORD_SEPARATOR);
        fields(&mut self.json);
        (self.sink)(self.json.end(LINE_FEED));
    }
}

fn header(info: &ObserverInfo, json: &mut JsonWriter) {
    json.text("file_schema", "urn:ietf:params:qlog:file:sequential");
    json.text("serialization_format", "application/qlog+json-seq");
    json.group("trace", &|trace| {
        trace.list("event_schemas", &|schemas| schemas.text("", QUIC_SCHEMA));
        trace.group("vantage_point", &|vantage_point| {
            vantage_point.text("name", "godwit");
            vantage_point.text("type", if info.side == Side::Client { "client" } else { "server" });
        });
        trace.group("common_fields", &|common| {
            common.bytes("group_id", info.original_dcid.as_bytes());
            common.text("time_format", "relative_to_epoch");
            common.group("reference_time", &|reference| {
                reference.text("clock_type", "monotonic");
                reference.text("epoch", "unknown");
                if let Some(date) =
                    info.wall.and_then(|wall| godwit_text::rfc3339(wall.as_unix_micros() / 1000))
                {
                    reference.text("wall_clock_time", &date);
                }
            });
        });
    });
}

impl Observer for Qlog {
    fn mask(&self) -> TransportMask {
        self.mask
    }

    fn on_event(&mut self, now: Time, event: &TransportEvent<'_>) {
        self.record(now, event);
    }
}

impl fmt::Debug for Qlog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Qlog").field("mask", &self.mask).finish_non_exhaustive()
    }
}
