//! What `godwit-tls` reads of strangers: a ClientHello before there is any TLS state for it, tickets, certificates. Each
//! function panics if what it gets does not hold together, and returns whether the bytes were understood.

use godwit_base::SeededRng;
use godwit_tls::client_hello::{self, MAX_LEN, Parsed, Peek};
use godwit_tls::deterministic;
use godwit_tls::resumption::{SessionTicket, SessionTickets};
use godwit_tls::secrets::ServerSecrets;
use rustls::compress::{CompressionLevel, default_cert_compressors, default_cert_decompressors};
use rustls::server::ProducesTickets;

/// The beginning of a client's CRYPTO stream: it does not matter in what pieces it comes. The first byte says where it
/// is cut.
pub fn client_hello(bytes: &[u8]) -> bool {
    let Some((&cut, stream)) = bytes.split_first() else { return false };
    let whole = client_hello::parse(stream);
    let (first, second) = stream.split_at(usize::from(cut).min(stream.len()));
    let mut peek = Peek::new();
    let kept = peek.on_crypto(first.len() as u64, second).and_then(|early| {
        assert!(first.is_empty() || early == Parsed::NeedMore, "what has no beginning is not read");
        peek.on_crypto(0, first)
    });
    match kept {
        Ok(parsed) => assert_eq!(parsed, whole, "a message reads the same in pieces"),
        Err(_) => assert!(stream.len() > MAX_LEN, "what is short enough is kept"),
    }
    let Parsed::Complete(hello) = whole else { return false };
    let name = hello.server_name.as_deref().unwrap_or("a");
    assert!((1..=255).contains(&name.len()) && !name.contains(|c: char| c.is_ascii_uppercase()));
    assert!(hello.alpn.iter().all(|protocol| (1..=255).contains(&protocol.len())));
    let len = usize::from(stream[2]) << 8 | usize::from(stream[3]);
    let cut = client_hello::parse(&stream[..len + 3]);
    assert_eq!(cut, Parsed::NeedMore, "the message was needed to its end");
    true
}

/// A ticket out of a file: what is understood can be written and reads the same again.
pub fn session_ticket(bytes: &[u8]) -> bool {
    let Some(ticket) = SessionTicket::from_bytes(bytes) else { return false };
    let written = ticket.to_bytes().expect("a ticket that was read is not too long");
    assert!(written.len() <= bytes.len(), "lengths are written in their shortest form");
    let again = SessionTicket::from_bytes(&written).expect("a ticket that was written can be read");
    assert_eq!(again.permits_early_data(), ticket.permits_early_data());
    assert_eq!(again.expires(), ticket.expires());
    assert_eq!(again.to_bytes(), Some(written), "a ticket reads the same again");
    true
}

/// What is sealed in the ticket of [`sealed_ticket`].
const SESSION: &[u8] = b"the state of a session";

fn tickets() -> SessionTickets {
    let secrets = ServerSecrets::from_rng(&mut SeededRng::new(1));
    deterministic::seed(1);
    SessionTickets::new(&secrets, deterministic::server_config(&[]).crypto_provider())
}

/// A ticket that a server has given out.
pub fn sealed_ticket() -> Vec<u8> {
    tickets().encrypt(SESSION).expect("a session is sealed")
}

/// What a client gives back as the ticket of a server: nothing is opened but what was sealed.
pub fn server_ticket(bytes: &[u8]) -> bool {
    let Some(opened) = tickets().decrypt(bytes) else { return false };
    assert_eq!((opened.as_slice(), bytes), (SESSION, sealed_ticket().as_slice()), "a forged ticket");
    true
}

/// A compressed certificate message (RFC 8879): what comes out is never longer than was announced, in the first two
/// bytes, and is the same when it is compressed and decompressed once more.
pub fn compressed_certificate(bytes: &[u8]) -> bool {
    let Some((announced, compressed)) = bytes.split_first_chunk() else { return false };
    let mut plain = vec![0; usize::from(u16::from_be_bytes(*announced))];
    let [decompressor, ..] = default_cert_decompressors() else { panic!("there is one") };
    if decompressor.decompress(compressed, &mut plain).is_err() {
        return false;
    }
    let [compressor, ..] = default_cert_compressors() else { panic!("there is one") };
    let again =
        compressor.compress(plain.clone(), CompressionLevel::Interactive).expect("any bytes compress");
    let mut same = vec![0; plain.len()];
    decompressor.decompress(&again, &mut same).expect("what was compressed decompresses");
    assert_eq!(same, plain);
    true
}
