//! The file in which clients keep sessions. Panics if what it gives does not hold together.

use super::scratch;
use godwit::resumption::{FileSessionStore, SessionKey, SessionStore};

/// The first line of such a file.
const HEAD: &[u8] = b"godwit sessions 1\n";

/// What stands behind the checksum, which is made to fit: damage that it does not show. Whatever it is, the store can be
/// used, and what it wrote is understood. Returns whether there was something for a server.
pub fn session_file(body: &[u8]) -> bool {
    let sum = body.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let file = scratch::file("sessions", &[HEAD, &sum.to_be_bytes(), body].concat()).expect("a file");
    let store = FileSessionStore::open(&file);
    let key = SessionKey::new("a", vec![b"h3".to_vec()], 1);
    let known = store.remembered(&key).is_some() | store.group(&key).is_some() | store.has_ticket(&key);
    let ticket = store.take_ticket(&key, true);
    assert!(ticket.is_none() || known, "a ticket that was not there");
    store.remember(&key, &mut |remembered| remembered.window = 7);
    store.flush();
    let again = FileSessionStore::open(&file);
    assert_eq!(again.remembered(&key).map(|remembered| remembered.window), Some(7), "{:?}", store.problem());
    known
}
