//! The peer's encoder and decoder streams (RFC 9204 sections 4.3 and 4.4).
//!
//! Without a dynamic table only two instructions make sense: the peer's encoder may set the capacity to
//! 0, and the peer's decoder may cancel streams. Everything else is an error.

use super::prefix_int::{self, IntError};
use crate::error::{Error, ErrorCode};
use godwit_wire::Reader;

/// Which of the two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The peer's encoder speaks to our decoder.
    Encoder,
    /// The peer's decoder speaks to our encoder.
    Decoder,
}

/// Reads the instructions of one stream, cut anywhere.
#[derive(Debug)]
pub(crate) struct Instructions {
    kind: Kind,
    /// The beginning of an instruction whose rest has not arrived.
    partial: [u8; prefix_int::MAX_LEN],
    len: usize,
}

impl Instructions {
    /// A reader at the start of a stream, after its type.
    pub(crate) fn new(kind: Kind) -> Self {
        Instructions { kind, partial: [0; prefix_int::MAX_LEN], len: 0 }
    }

    /// Obeys the instructions in `input`, and has each accounted for when it is complete: what is wrong first is what is told,
    /// in whatever pieces they come.
    pub(crate) fn receive(
        &mut self,
        input: &[u8],
        mut account: impl FnMut() -> Result<(), Error>,
    ) -> Result<(), Error> {
        for byte in input {
            let Some(slot) = self.partial.get_mut(self.len) else {
                return Err(self.error("an instruction's integer is too long"));
            };
            *slot = *byte;
            self.len = self.len.saturating_add(1);
            if self.complete()? {
                self.len = 0;
                account()?;
            }
        }
        Ok(())
    }

    /// True if the bytes held are one whole, permitted instruction.
    fn complete(&self) -> Result<bool, Error> {
        let bytes = self.partial.get(..self.len).unwrap_or_default();
        let first = bytes.first().copied().unwrap_or_default();
        let prefix = match self.kind {
            Kind::Encoder if first >> 5 == 0b001 => 5,
            Kind::Encoder => return Err(self.error("an insertion into a dynamic table of capacity 0")),
            Kind::Decoder if first >> 6 == 0b01 => 6,
            Kind::Decoder => return Err(self.error("an acknowledgement of entries never inserted")),
        };
        match prefix_int::decode(&mut Reader::new(bytes), prefix) {
            Ok(capacity) if self.kind == Kind::Encoder && capacity > 0 => {
                Err(self.error("a dynamic table capacity above the 0 that was allowed"))
            }
            Ok(_) => Ok(true),
            Err(IntError::Truncated) => Ok(false),
            Err(IntError::TooLarge) => Err(self.error("an instruction's integer is too large")),
        }
    }

    #[track_caller]
    fn error(&self, reason: &'static str) -> Error {
        let code = match self.kind {
            Kind::Encoder => ErrorCode::QPACK_ENCODER_STREAM_ERROR,
            Kind::Decoder => ErrorCode::QPACK_DECODER_STREAM_ERROR,
        };
        Error::new(code, reason)
    }
}
