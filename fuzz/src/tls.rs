//! The look at a ClientHello before there is any TLS state for it. The function panics if what it gives does not hold
//! together, and returns whether the bytes were understood.

use godwit_tls::client_hello::{self, MAX_LEN, Parsed, Peek};

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
