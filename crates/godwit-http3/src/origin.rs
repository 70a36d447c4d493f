//! ORIGIN frames (RFC 9412, RFC 8336 section 2): for which origins a server answers on a connection.

use crate::error::{Error, ErrorCode};
use crate::frame::{self, FrameType};
use bytes::BufMut;
use godwit_wire::Reader;
use http::Uri;

/// The longest frame that is read, and written, in bytes. What is longer is ignored.
pub(crate) const MAX_FRAME_LEN: u64 = 16 << 10;

/// The most that is kept of all frames of a connection, in bytes.
const MAX_KEPT: usize = MAX_FRAME_LEN as usize;

/// Appends a frame with these origins, or as many of them as there is room for.
pub(crate) fn encode(origins: &[String], out: &mut impl BufMut) {
    let mut payload = Vec::new();
    for origin in origins {
        let whole = payload.len().saturating_add(2).saturating_add(origin.len());
        let Some(len) = u16::try_from(origin.len()).ok().filter(|_| whole as u64 <= MAX_FRAME_LEN) else {
            continue;
        };
        payload.put_u16(len);
        payload.put_slice(origin.as_bytes());
    }
    frame::put_header(FrameType::ORIGIN, payload.len() as u64, out);
    out.put_slice(&payload);
}

/// What a server has said so far, of origins that HTTP/3 is for.
#[derive(Debug, Default)]
pub(crate) struct OriginSet {
    origins: Vec<String>,
    kept: usize,
}

impl OriginSet {
    pub(crate) fn as_slice(&self) -> &[String] {
        &self.origins
    }

    /// Adds what a frame says. What is no origin, or not one for HTTPS, means nothing (RFC 8336 section 2.1).
    pub(crate) fn add(&mut self, payload: &[u8]) -> Result<(), Error> {
        let cut = |_| Error::new(ErrorCode::H3_FRAME_ERROR, "an ORIGIN frame ends within an origin");
        let mut reader = Reader::new(payload);
        while !reader.is_empty() {
            let len = reader.u16().map_err(cut)?;
            let bytes = reader.bytes(len.into()).map_err(cut)?;
            if self.kept >= MAX_KEPT {
                continue;
            }
            let Some(origin) = std::str::from_utf8(bytes).ok().and_then(origin) else { continue };
            let kept = self.kept.saturating_add(origin.len());
            if kept <= MAX_KEPT && !self.origins.contains(&origin) {
                self.kept = kept;
                self.origins.push(origin);
            }
        }
        Ok(())
    }
}

/// `https://`, a host, and a port unless it is 443; all in lower case. `None` if the text is no such origin.
pub(crate) fn origin(text: &str) -> Option<String> {
    let uri: Uri = text.parse().ok()?;
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
    let bare = uri.path() == "/" && uri.query().is_none() && !text.ends_with('/');
    if uri.scheme_str() != Some("https") || !bare || authority.host().is_empty() {
        return None;
    }
    let host = authority.host().to_ascii_lowercase();
    Some(match authority.port_u16() {
        None | Some(443) => format!("https://{host}"),
        Some(port) => format!("https://{host}:{port}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame_of(entries: &[&str]) -> Vec<u8> {
        let mut payload = Vec::new();
        for entry in entries {
            payload.put_u16(entry.len() as u16);
            payload.put_slice(entry.as_bytes());
        }
        payload
    }

    #[test]
    fn what_is_an_origin_is_kept_once() {
        let mut set = OriginSet::default();
        set.add(&frame_of(&["https://A.example", "https://b.example:8443", "https://a.example:443"]))
            .unwrap();
        let wrong = [
            "http://c.example",
            "https://d.example/",
            "https://e@f.example",
            "null",
            "",
            "https://",
            "\u{e9}",
        ];
        set.add(&frame_of(&wrong)).unwrap();
        set.add(&frame_of(&["https://[::1]:1"])).unwrap();
        assert_eq!(set.as_slice(), ["https://a.example", "https://b.example:8443", "https://[::1]:1"]);
    }

    #[test]
    fn frames_that_are_cut_are_errors() {
        let whole = frame_of(&["https://a.example"]);
        for len in 1..whole.len() {
            let error = OriginSet::default().add(&whole[..len]).unwrap_err();
            assert_eq!(error.code, ErrorCode::H3_FRAME_ERROR, "{len}");
        }
    }

    #[test]
    fn what_is_kept_and_sent_has_bounds() {
        let many: Vec<String> = (0..2000).map(|n| format!("https://{n:04}.example")).collect();
        let mut out = Vec::new();
        encode(&many, &mut out);
        assert!(out.len() as u64 <= MAX_FRAME_LEN + 8);
        let mut set = OriginSet::default();
        for ten in many.chunks(10) {
            let ten: Vec<&str> = ten.iter().map(String::as_str).collect();
            set.add(&frame_of(&ten)).unwrap();
        }
        assert_eq!(set.as_slice().len(), MAX_KEPT / many[0].len());
        encode(&["x".repeat(70_000)], &mut out);
        assert_eq!(&out[out.len() - 2..], [0x0c, 0], "what is too long is left out");
    }
}
