//! One content coding undone, in pieces: gzip (RFC 1952), deflate (RFC 1950, and RFC 1951 for those who understand the name
//! so), br (RFC 7932) and zstd (RFC 8878, with the window that RFC 9659 permits).

use std::fmt;

use brotli::{BrotliDecompressStream, BrotliResult, BrotliState, HeapAlloc, HuffmanCode};
use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder as Zstd, Operation};

use super::step::Step;

/// The window of gzip, as a power of two.
const GZIP_WINDOW: u8 = 15;
/// The largest window of zstd, as a power of two (RFC 9659).
const ZSTD_WINDOW: u32 = 23;
/// How a gzip member begins.
const GZIP_MAGIC: u8 = 0x1f;

type Brotli = BrotliState<HeapAlloc<u8>, HeapAlloc<u32>, HeapAlloc<HuffmanCode>>;

/// Undoes one coding.
pub(super) enum Decoder {
    Gzip(Decompress),
    /// `None`: the first byte tells which of the two it is.
    Deflate(Option<Decompress>),
    Brotli(Box<Brotli>),
    Zstd(Box<Zstd<'static>>),
}

impl Decoder {
    /// The one for a name, in small letters; `None` if there is none.
    pub(super) fn named(name: &str) -> Option<Decoder> {
        Some(match name {
            "gzip" | "x-gzip" => Decoder::Gzip(Decompress::new_gzip(GZIP_WINDOW)),
            "deflate" => Decoder::Deflate(None),
            "br" => {
                let (bytes, words) = (HeapAlloc::new(0), HeapAlloc::new(0));
                let codes = HeapAlloc::new(HuffmanCode::default());
                // No window larger than the RFC's.
                Decoder::Brotli(Box::new(BrotliState::new_strict(bytes, words, codes)))
            }
            "zstd" => {
                let mut zstd = Zstd::new().ok()?;
                zstd.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW)).ok()?;
                Decoder::Zstd(Box::new(zstd))
            }
            _ => return None,
        })
    }

    /// Takes some of `input`, and puts what comes of it into `output`.
    ///
    /// # Errors
    /// What is wrong with the input, in words.
    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, String> {
        match self {
            Decoder::Gzip(gzip) => inflate(gzip, input, output),
            Decoder::Deflate(deflate) => {
                let Some(first) = input.first() else { return Ok(Step::default()) };
                // The method that stands in the first byte of RFC 1950 begins hardly any data of RFC 1951.
                let deflate = deflate.get_or_insert_with(|| Decompress::new(first & 0x0f == 8));
                inflate(deflate, input, output)
            }
            Decoder::Brotli(brotli) => unbrotli(brotli, input, output),
            Decoder::Zstd(zstd) => {
                let status = zstd.run_on_buffers(input, output).map_err(|error| error.to_string())?;
                let (read, written) = (status.bytes_read, status.bytes_written);
                Ok(Step { read, written, is_end: status.remaining == 0 })
            }
        }
    }

    /// Whether what follows the end, if that is `next`, is another one of these; it is prepared for it then.
    pub(super) fn begins_again(&mut self, next: u8) -> bool {
        match self {
            Decoder::Gzip(gzip) if next == GZIP_MAGIC => {
                *gzip = Decompress::new_gzip(GZIP_WINDOW);
                true
            }
            Decoder::Zstd(_) => true,
            Decoder::Gzip(_) | Decoder::Deflate(_) | Decoder::Brotli(_) => false,
        }
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Decoder::Gzip(_) => "Gzip",
            Decoder::Deflate(_) => "Deflate",
            Decoder::Brotli(_) => "Brotli",
            Decoder::Zstd(_) => "Zstd",
        })
    }
}

fn inflate(decompress: &mut Decompress, input: &[u8], output: &mut [u8]) -> Result<Step, String> {
    let (before_in, before_out) = (decompress.total_in(), decompress.total_out());
    let status = decompress.decompress(input, output, FlushDecompress::None);
    let status = status.map_err(|error| error.to_string())?;
    let so_far = |now: u64, before: u64| usize::try_from(now.saturating_sub(before)).unwrap_or(usize::MAX);
    Ok(Step {
        read: so_far(decompress.total_in(), before_in),
        written: so_far(decompress.total_out(), before_out),
        is_end: status == Status::StreamEnd,
    })
}

fn unbrotli(state: &mut Brotli, input: &[u8], output: &mut [u8]) -> Result<Step, String> {
    let (mut left, mut read) = (input.len(), 0);
    let (mut room, mut written, mut total) = (output.len(), 0, 0);
    let came = BrotliDecompressStream(
        &mut left,
        &mut read,
        input,
        &mut room,
        &mut written,
        output,
        &mut total,
        state,
    );
    match came {
        BrotliResult::ResultFailure => Err("it is no Brotli".to_owned()),
        came => Ok(Step { read, written, is_end: matches!(came, BrotliResult::ResultSuccess) }),
    }
}
