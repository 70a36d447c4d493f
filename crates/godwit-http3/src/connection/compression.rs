//! QPACK as a connection has it: encoder and decoder, and the two streams of ours that they speak on (RFC 9204 section 4.2).
//!
//! Invariants: a section never needs an insertion that the transport has not taken, or that flow control might not let out before
//! it, so that no stream of ours can keep the peer's windows from what it waits for (RFC 9204 section 2.1.3); what waits for the
//! transport is bounded; neither stream takes the place of the control stream where the peer permits few.

use super::outlet::Outlet;
use crate::config::Config;
use crate::error::{Error, ErrorCode};
use crate::qpack::{Cancelled, Decoder, Section, TableEncoder, Written};
use crate::settings::Settings;
use crate::transport::Transport;
use godwit_wire::StreamId;

/// The types of the streams.
const ENCODER: u64 = 0x2;
const DECODER: u64 = 0x3;

/// Bytes that may wait for a peer that does not let the decoder stream flow.
const MAX_FEEDBACK: usize = 16 << 10;

/// Encoder, decoder, and what they have to say.
#[derive(Debug)]
pub(super) struct Compression {
    pub(super) encoder: TableEncoder,
    pub(super) decoder: Decoder,
    inserts: Outlet,
    feedback: Outlet,
    /// Our control stream, once it is open.
    control: Option<StreamId>,
    /// The field lines of the section that was written last.
    lines: Vec<u8>,
    said: Vec<u8>,
    /// Bytes that were held when they were counted last.
    held: usize,
}

impl Compression {
    pub(super) fn new(config: &Config) -> Self {
        Compression {
            encoder: TableEncoder::new(config.qpack_max_table_capacity),
            decoder: Decoder::with_table(config.qpack_max_table_capacity, config.qpack_blocked_streams),
            inserts: Outlet::new(ENCODER),
            feedback: Outlet::new(DECODER),
            control: None,
            lines: Vec::new(),
            said: Vec::new(),
            held: 0,
        }
    }

    /// The peer's settings have come.
    pub(super) fn on_settings(&mut self, settings: &Settings) {
        self.encoder.on_settings(settings.qpack_max_table_capacity, settings.qpack_blocked_streams);
    }

    /// Our control stream is open, perhaps.
    pub(super) fn on_control(&mut self, id: Option<StreamId>) {
        self.control = id;
    }

    /// The connection is over.
    pub(super) fn clear(&mut self) {
        (self.encoder, self.decoder) = (TableEncoder::new(0), Decoder::new());
        (self.inserts, self.feedback) = (Outlet::new(ENCODER), Outlet::new(DECODER));
        self.held = 0;
    }

    /// Bytes that are held, but for what a few sections have added since they were counted.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Counts what is held: whenever the peer's streams, or what it does not take of ours, may have made it more. Sections alone
    /// add little, and are counted with the answers to them.
    fn count(&mut self) {
        let waiting = self.inserts.held().saturating_add(self.feedback.held());
        self.held = waiting.saturating_add(self.encoder.held()).saturating_add(self.decoder.held());
    }

    /// Takes the next bytes of the peer's encoder stream; see [`Decoder::on_encoder_stream`].
    pub(super) fn on_encoder_stream(
        &mut self,
        input: &[u8],
        account: impl FnMut(usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let result = self.decoder.on_encoder_stream(input, account);
        self.count();
        result
    }

    /// Takes the next bytes of the peer's decoder stream; see [`TableEncoder::on_decoder_stream`].
    pub(super) fn on_decoder_stream(
        &mut self,
        input: &[u8],
        account: impl FnMut(Cancelled) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let result = self.encoder.on_decoder_stream(input, account);
        self.count();
        result
    }

    /// True for our own streams.
    pub(super) fn is(&self, id: StreamId) -> bool {
        self.inserts.is(id) || self.feedback.is(id)
    }

    /// Writes a section with `write`, which returns its size, for this stream or a new one; the section, its size, and its field
    /// lines. Its insertions are on their way; it is to be followed by [`TableEncoder::on_sent`] if it is sent.
    pub(super) fn section(
        &mut self,
        io: &mut dyn Transport,
        stream: Option<StreamId>,
        write: &dyn Fn(&mut Section<'_>) -> Result<u64, &'static str>,
    ) -> Result<(Written, u64, &[u8]), &'static str> {
        if self.encoder.is_held_back() {
            // The peer may have permitted more since.
            self.flush_inserts(io);
        }
        let (mut written, mut size) = self.write(stream, write)?;
        if !self.flush_inserts(io) && self.encoder.could_block(&written) {
            (written, size) = self.write(stream, write)?;
        }
        Ok((written, size, &self.lines))
    }

    fn write(
        &mut self,
        stream: Option<StreamId>,
        write: &dyn Fn(&mut Section<'_>) -> Result<u64, &'static str>,
    ) -> Result<(Written, u64), &'static str> {
        self.lines.clear();
        let mut section = self.encoder.section(stream, &mut self.lines);
        let size = write(&mut section)?;
        Ok((section.finish(), size))
    }

    /// Offers the encoder stream what it is to carry. True if the transport has taken all of it and nothing keeps it back.
    pub(super) fn flush_inserts(&mut self, io: &mut dyn Transport) -> bool {
        let said = self.encoder.instructions();
        if said.is_empty() && self.inserts.is_idle() && !self.encoder.is_held_back() {
            return true;
        }
        self.inserts.pending().extend_from_slice(self.encoder.instructions());
        self.encoder.instructions().clear();
        // Where it was refused, the transport says so: that is the end of the connection.
        let is_out =
            self.control.is_some() && self.inserts.flush(io).unwrap_or(false) && self.is_permitted(io);
        self.encoder.hold_back(!is_out);
        self.count();
        is_out
    }

    /// Whether the peer has permitted all that was written to the encoder stream.
    fn is_permitted(&self, io: &dyn Transport) -> bool {
        self.inserts.id().is_none_or(|id| match (self.control, self.feedback.id()) {
            (Some(control), Some(feedback)) => io.is_permitted(id, &[control, feedback]),
            (Some(other), None) | (None, Some(other)) => io.is_permitted(id, &[other]),
            (None, None) => io.is_permitted(id, &[]),
        })
    }

    /// Offers the decoder stream what it is to carry, if that should be said now.
    ///
    /// # Errors
    /// The connection ends if the peer does not take what it has made necessary.
    pub(super) fn flush_feedback(&mut self, io: &mut dyn Transport) -> Result<(), Error> {
        if !self.decoder.is_feedback_due() {
            return Ok(());
        }
        if self.feedback.is_idle() {
            self.said.clear();
            self.decoder.take_feedback(&mut self.said);
            self.feedback.pending().extend_from_slice(&self.said);
        }
        self.flush(io)?;
        self.count();
        if self.decoder.feedback_len() > MAX_FEEDBACK && !self.decoder.drop_needless_feedback() {
            let reason = "the peer does not read the decoder stream";
            return Err(Error::new(ErrorCode::H3_EXCESSIVE_LOAD, reason));
        }
        Ok(())
    }

    /// Offers what has not been taken of the decoder stream.
    pub(super) fn flush(&mut self, io: &mut dyn Transport) -> Result<(), Error> {
        if self.control.is_none() {
            return Ok(());
        }
        let refused = |_| Error::new(ErrorCode::H3_CLOSED_CRITICAL_STREAM, "the decoder stream was refused");
        self.feedback.flush(io).map(drop).map_err(refused)
    }
}
