//! Content codings of responses undone (RFC 9110 section 8.4): asked for where the user has not asked for any, and taken
//! off what comes, piece by piece.
//!
//! Memory is bounded: by the window of each coding, and one piece for each. What grows beyond all measure (more than gzip
//! could, once it is large) is refused. A body that ends before its coding does is an error, as one that breaks off.

#[cfg(feature = "decompression")]
mod decoder;
#[cfg(not(feature = "decompression"))]
mod none;
mod step;

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, RANGE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body::{Body, Frame, SizeHint};

use crate::session::{ExchangeError, ResponseBody};
#[cfg(feature = "decompression")]
use decoder::Decoder;
#[cfg(not(feature = "decompression"))]
use none::Decoder;

/// What is asked for.
const ASKED: HeaderValue = HeaderValue::from_static("gzip, deflate, br, zstd");
/// The most codings of one body, one around the other.
const MOST_CODINGS: usize = 3;
/// What comes out at a time.
const PIECE: usize = 32 << 10;
/// Up to here anything may grow as it likes.
const ANY_SIZE: u64 = 32 << 20;
/// How many times its size anything may grow beyond that: gzip at its best has 1032.
const MOST_GROWTH: u64 = 1100;

/// Asks for codings, unless the request is one with which they are in the way. Whether it has asked.
pub(crate) fn ask(method: &Method, headers: &mut HeaderMap) -> bool {
    let asks = cfg!(feature = "decompression")
        && *method != Method::HEAD
        && !headers.contains_key(ACCEPT_ENCODING)
        && !headers.contains_key(RANGE);
    if asks {
        headers.insert(ACCEPT_ENCODING, ASKED);
    }
    asks
}

/// What takes the codings off a body.
#[derive(Debug)]
struct Decoding {
    /// The outermost first.
    stages: Vec<Stage>,
    /// Bytes that have come, and that came of them.
    came: u64,
    made: u64,
    /// What comes after the body.
    trailers: Option<Frame<Bytes>>,
    is_over: bool,
}

/// One coding.
#[derive(Debug)]
struct Stage {
    decoder: Decoder,
    input: Bytes,
    place: Place,
}

/// How far a coding has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Beginning,
    Within,
    /// All that was read is whole.
    End,
    /// What follows the end is nothing.
    Beyond,
}

/// A body without its codings.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) body: ResponseBody,
    decoding: Option<Decoding>,
}

impl Decoded {
    /// The body as it comes.
    pub(crate) fn plain(body: ResponseBody) -> Decoded {
        Decoded { body, decoding: None }
    }

    /// The body of a response with this status without the codings that its headers tell of, which are taken out of those.
    pub(crate) fn of(body: ResponseBody, status: StatusCode, headers: &mut HeaderMap) -> Decoded {
        let is_whole = status != StatusCode::PARTIAL_CONTENT && !body.is_end_stream();
        let stages = if is_whole { stages(headers) } else { None };
        let decoding = stages.map(|stages| {
            headers.remove(CONTENT_ENCODING);
            headers.remove(CONTENT_LENGTH);
            Decoding { stages, came: 0, made: 0, trailers: None, is_over: false }
        });
        Decoded { body, decoding }
    }
}

/// One for each coding; `None` if there is none, or one that is not known: then the body stays as it is.
fn stages(headers: &HeaderMap) -> Option<Vec<Stage>> {
    let mut stages = Vec::new();
    for value in headers.get_all(CONTENT_ENCODING) {
        for name in value.to_str().ok()?.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let name = name.to_ascii_lowercase();
            if name == "identity" {
                continue;
            }
            let decoder = Decoder::named(&name)?;
            stages.push(Stage { decoder, input: Bytes::new(), place: Place::Beginning });
        }
    }
    // They were applied in the order in which they stand.
    stages.reverse();
    (1..=MOST_CODINGS).contains(&stages.len()).then_some(stages)
}

impl Stage {
    /// A piece of what comes of the input; `None`: more is needed.
    fn piece(&mut self) -> Result<Option<Bytes>, String> {
        let mut piece = vec![0; PIECE];
        loop {
            if self.place != Place::Within && !self.enter() {
                return Ok(None);
            }
            let step = self.decoder.step(&self.input, &mut piece)?;
            self.input.advance(step.read.min(self.input.len()));
            if step.is_end {
                self.place = Place::End;
            }
            if step.written > 0 {
                piece.truncate(step.written);
                return Ok(Some(Bytes::from(piece)));
            }
            match (step.is_end, self.input.is_empty(), step.read) {
                (true, ..) => {}
                (false, true, _) => return Ok(None),
                (false, false, 0) => return Err("it leads nowhere".to_owned()),
                (false, false, _) => {}
            }
        }
    }

    /// Goes on with the input there is, if that belongs to the body.
    fn enter(&mut self) -> bool {
        let Some(next) = self.input.first() else { return false };
        let goes_on = match self.place {
            Place::Beginning | Place::Within => true,
            Place::End => self.decoder.begins_again(*next),
            Place::Beyond => false,
        };
        self.place = if goes_on { Place::Within } else { Place::Beyond };
        if !goes_on {
            self.input.clear();
        }
        goes_on
    }
}

impl Decoding {
    /// A piece of what comes of the outermost `depth` stages; `None`: more has to come.
    fn piece(&mut self, depth: usize) -> Result<Option<Bytes>, String> {
        loop {
            let Some(stage) = self.stages.get_mut(depth) else { return Ok(None) };
            if let Some(piece) = stage.piece()? {
                self.count(piece.len())?;
                return Ok(Some(piece));
            }
            let Some(below) = depth.checked_sub(1) else { return Ok(None) };
            let Some(input) = self.piece(below)? else { return Ok(None) };
            if let Some(stage) = self.stages.get_mut(depth) {
                stage.input = input;
            }
        }
    }

    /// The next piece of the whole.
    fn next(&mut self) -> Result<Option<Bytes>, String> {
        self.piece(self.stages.len().saturating_sub(1))
    }

    /// Counts what any stage has made: what the last one makes nothing of is work as well.
    fn count(&mut self, made: usize) -> Result<(), String> {
        self.made = self.made.saturating_add(made as u64);
        match self.made > ANY_SIZE && self.made / MOST_GROWTH > self.came {
            true => Err(format!("{} bytes have become more than {MOST_GROWTH} times as many", self.came)),
            false => Ok(()),
        }
    }

    /// Whether the body may end here.
    fn is_whole(&self) -> bool {
        self.stages.iter().all(|stage| stage.place != Place::Within)
    }
}

impl Body for Decoded {
    type Data = Bytes;
    type Error = ExchangeError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ExchangeError>>> {
        let Decoded { body, decoding } = self.get_mut();
        let Some(decoding) = decoding else { return Pin::new(body).poll_frame(cx) };
        let wrong = |problem: String| Poll::Ready(Some(Err(ExchangeError::Coding(problem))));
        loop {
            if decoding.is_over {
                return Poll::Ready(decoding.trailers.take().map(Ok));
            }
            match decoding.next() {
                Ok(Some(piece)) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                Ok(None) => {}
                Err(problem) => {
                    (decoding.is_over, decoding.trailers) = (true, None);
                    return wrong(problem);
                }
            }
            match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        decoding.came = decoding.came.saturating_add(data.len() as u64);
                        if let Some(first) = decoding.stages.first_mut() {
                            first.input = data;
                        }
                    }
                    Err(trailers) => decoding.trailers = Some(trailers),
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    decoding.is_over = true;
                    if !decoding.is_whole() {
                        decoding.trailers = None;
                        return wrong("it ends in the midst of it".to_owned());
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.decoding {
            None => self.body.is_end_stream(),
            Some(decoding) => decoding.is_over && decoding.trailers.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.decoding {
            None => self.body.size_hint(),
            Some(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
#[cfg(feature = "decompression")]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn text() -> Vec<u8> {
        (0..100_000_u32).flat_map(|n| format!("{n} and {}, ", (n % 997) * (n % 89)).into_bytes()).collect()
    }

    fn coded(name: &str, plain: &[u8]) -> Vec<u8> {
        let level = Compression::fast();
        match name {
            "gzip" => {
                let mut gzip = GzEncoder::new(Vec::new(), level);
                gzip.write_all(plain).unwrap();
                gzip.finish().unwrap()
            }
            "zlib" => {
                let mut zlib = ZlibEncoder::new(Vec::new(), level);
                zlib.write_all(plain).unwrap();
                zlib.finish().unwrap()
            }
            "raw" => {
                let mut raw = DeflateEncoder::new(Vec::new(), level);
                raw.write_all(plain).unwrap();
                raw.finish().unwrap()
            }
            "br" => {
                let mut out = Vec::new();
                let mut brotli = brotli::CompressorWriter::new(&mut out, 4096, 3, 20);
                brotli.write_all(plain).unwrap();
                drop(brotli);
                out
            }
            "zstd" => zstd::stream::encode_all(plain, 1).unwrap(),
            other => panic!("{other}"),
        }
    }

    fn headers(value: &str) -> HeaderMap {
        [(CONTENT_ENCODING, value.parse().unwrap())].into_iter().collect()
    }

    /// What comes of pieces of this size.
    fn decoded(coding: &str, data: &[u8], size: usize) -> Result<Vec<u8>, String> {
        let stages = stages(&headers(coding)).unwrap();
        let mut decoding = Decoding { stages, came: 0, made: 0, trailers: None, is_over: false };
        let mut all = Vec::new();
        for piece in data.chunks(size) {
            decoding.came += piece.len() as u64;
            decoding.stages[0].input = Bytes::copy_from_slice(piece);
            while let Some(made) = decoding.next()? {
                assert!(made.len() <= PIECE);
                all.extend(made);
            }
        }
        if decoding.is_whole() { Ok(all) } else { Err("cut".to_owned()) }
    }

    #[test]
    fn what_inner_codings_make_for_nothing_counts_as_well() {
        // A frame that is to be skipped, of 40 MiB.
        let len = 40 << 20;
        let skipped =
            [&0x184d_2a50_u32.to_le_bytes()[..], &(len as u32).to_le_bytes(), &vec![0; len]].concat();
        let bomb = coded("gzip", &coded("gzip", &skipped));
        assert!(bomb.len() < 16 << 10, "{}", bomb.len());
        let error = decoded("zstd, gzip, gzip", &bomb, 1000).unwrap_err();
        assert!(error.contains("times as many"), "{error}");
    }

    #[test]
    fn every_coding_is_undone_in_whatever_pieces_it_comes() {
        let text = text();
        for (coding, name) in [
            ("gzip", "gzip"),
            ("x-gzip", "gzip"),
            ("deflate", "zlib"),
            ("Deflate", "raw"),
            ("br", "br"),
            ("zstd", "zstd"),
        ] {
            let data = coded(name, &text);
            for size in [7, 1000, 1 << 20] {
                assert!(decoded(coding, &data, size).unwrap() == text, "{coding} {size}");
            }
            assert_eq!(decoded(coding, &data[..data.len() / 2], 1000).unwrap_err(), "cut", "{coding}");
            assert!(decoded(coding, &coded(name, b""), 3).unwrap().is_empty(), "{coding}");
            assert!(decoded(coding, b"", 1).unwrap().is_empty(), "{coding}");
        }
        let both = coded("br", &coded("gzip", &text));
        assert!(decoded("gzip, br", &both, 100).unwrap() == text);
        for several in ["gzip", "zstd"] {
            let twice = [coded(several, b"one "), coded(several, b"two")].concat();
            assert_eq!(decoded(several, &twice, 5).unwrap(), b"one two", "{several}");
        }
        let mut followed = coded("gzip", b"one");
        followed.extend([0; 100]);
        assert_eq!(decoded("gzip", &followed, 50).unwrap(), b"one");
    }

    #[test]
    fn what_is_not_known_stays_as_it_is() {
        for value in ["identity", "compress", "gzip, pack200", "gzip, gzip, gzip, gzip", ""] {
            assert!(stages(&headers(value)).is_none(), "{value}");
        }
        assert!(stages(&HeaderMap::new()).is_none());
    }

    #[test]
    fn bombs_are_refused() {
        let zeros = vec![0; 48 << 20];
        for coding in ["br", "zstd"] {
            let error = decoded(coding, &coded(coding, &zeros), 1 << 20).unwrap_err();
            assert!(error.contains("1100 times"), "{coding}: {error}");
        }
        let twice = coded("gzip", &coded("gzip", &zeros));
        assert!(decoded("gzip, gzip", &twice, 1 << 20).unwrap_err().contains("1100 times"));
        // What is merely dull is none.
        assert_eq!(decoded("gzip", &coded("gzip", &zeros), 1 << 20).unwrap().len(), zeros.len());
    }

    #[test]
    fn nothing_that_comes_makes_it_panic() {
        use proptest::prelude::*;
        let codings = ["gzip", "deflate", "br", "zstd", "gzip, br"];
        let good: Vec<_> = ["gzip", "zlib", "br", "zstd"].map(|name| coded(name, &text()[..3000])).to_vec();
        proptest!(|(which in 0..codings.len(), from in 0..good.len(), place in any::<prop::sample::Index>(), value in any::<u8>(), size in 1_usize..500)| {
            let mut data = good[from].clone();
            let place = place.index(data.len());
            data[place] = value;
            let _ = decoded(codings[which], &data, size);
        });
        proptest!(|(which in 0..codings.len(), data in prop::collection::vec(any::<u8>(), 0..300))| {
            let _ = decoded(codings[which], &data, 64);
        });
    }

    #[test]
    fn codings_are_asked_for_where_nothing_else_is() {
        let asks = |method: Method, name: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            name.map(|name| headers.insert(name, HeaderValue::from_static("x")));
            ask(&method, &mut headers)
        };
        assert!(asks(Method::GET, None) && asks(Method::POST, Some("accept")));
        assert!(!asks(Method::HEAD, None));
        assert!(!asks(Method::GET, Some("accept-encoding")) && !asks(Method::GET, Some("range")));
    }
}
