//! The three encoders behind one interface. Their windows are kept small: what is gained beyond them is little for
//! pages, and the memory is taken once for each response that is under way.

use std::io::{self, Write};

use brotli::enc::BrotliEncoderParams;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::Coding;

/// Levels at which a core keeps up with a fast network.
const ZSTD: i32 = 3;
const BROTLI: i32 = 4;
const GZIP: u32 = 5;
/// The greatest windows, as powers of two.
const ZSTD_WINDOW: u32 = 17;
const BROTLI_WINDOW: i32 = 17;
/// What brotli's writer hands on at a time.
const BROTLI_BUFFER: usize = 8 << 10;

/// About what an encoder takes in KiB, for a body of `length` bytes if that is known.
pub(super) fn cost(coding: Coding, length: Option<u64>) -> u32 {
    let short = length.is_some_and(|length| length <= 64 << 10);
    match (coding, short) {
        (Coding::Zstd, true) => 768,
        (Coding::Zstd, false) => 1536,
        (Coding::Brotli, true) => 1536,
        (Coding::Brotli, false) => 3584,
        (Coding::Gzip, _) => 320,
    }
}

/// Compresses into memory, from where the output is [taken](Encoder::take).
pub(super) struct Encoder(Kind);

enum Kind {
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Gzip(GzEncoder<Vec<u8>>),
}

impl Encoder {
    /// For a body of `length` bytes, if that is known: short ones take less memory.
    pub(super) fn new(coding: Coding, length: Option<u64>) -> io::Result<Encoder> {
        let bits = length.map_or(u32::MAX, |length| u64::BITS - length.leading_zeros());
        Ok(Encoder(match coding {
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD)?;
                encoder.window_log(bits.clamp(10, ZSTD_WINDOW))?;
                Kind::Zstd(encoder)
            }
            Coding::Brotli => {
                let window = i32::try_from(bits).unwrap_or(i32::MAX).clamp(10, BROTLI_WINDOW);
                let size_hint = usize::try_from(length.unwrap_or(0)).unwrap_or(0);
                let params =
                    BrotliEncoderParams { quality: BROTLI, lgwin: window, size_hint, ..Default::default() };
                Kind::Brotli(Box::new(brotli::CompressorWriter::with_params(
                    Vec::new(),
                    BROTLI_BUFFER,
                    &params,
                )))
            }
            Coding::Gzip => Kind::Gzip(GzEncoder::new(Vec::new(), Compression::new(GZIP))),
        }))
    }

    pub(super) fn write(&mut self, data: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Kind::Zstd(encoder) => encoder.write_all(data),
            Kind::Brotli(encoder) => encoder.write_all(data),
            Kind::Gzip(encoder) => encoder.write_all(data),
        }
    }

    /// Makes output of everything that was written.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::Zstd(encoder) => encoder.flush(),
            Kind::Brotli(encoder) => encoder.flush(),
            Kind::Gzip(encoder) => encoder.flush(),
        }
    }

    /// Ends the stream; the rest of the output.
    pub(super) fn finish(self) -> io::Result<Bytes> {
        let output = match self.0 {
            Kind::Zstd(encoder) => encoder.finish()?,
            Kind::Brotli(encoder) => encoder.into_inner(),
            Kind::Gzip(encoder) => encoder.finish()?,
        };
        Ok(output.into())
    }

    /// Bytes that can be taken.
    pub(super) fn ready(&self) -> usize {
        match &self.0 {
            Kind::Zstd(encoder) => encoder.get_ref().len(),
            Kind::Brotli(encoder) => encoder.get_ref().len(),
            Kind::Gzip(encoder) => encoder.get_ref().len(),
        }
    }

    /// The output so far.
    pub(super) fn take(&mut self) -> Bytes {
        let output = match &mut self.0 {
            Kind::Zstd(encoder) => encoder.get_mut(),
            Kind::Brotli(encoder) => encoder.get_mut(),
            Kind::Gzip(encoder) => encoder.get_mut(),
        };
        std::mem::take(output).into()
    }
}
