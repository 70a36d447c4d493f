//! The sessions that a client offers to resume (RFC 8446 section 4.2.11), for servers that decide about that before TLS
//! begins.

use super::{EXTENSION_PRE_SHARED_KEY, body, extensions, vector16};
use godwit_wire::{Malformed, Reader};

/// Sessions that are looked at of one ClientHello, at most.
const MOST: usize = 8;

/// The tickets in a whole ClientHello, with its header, in the client's order: the first eight. None if it offers none, or is
/// not one that can be read. Whether the client has the secrets that belong to them, TLS finds out.
pub fn offered_tickets(message: &[u8]) -> Vec<&[u8]> {
    let Ok(Some(body)) = body(message) else { return Vec::new() };
    extensions(body).and_then(identities).unwrap_or_default()
}

fn identities(mut extensions: Reader<'_>) -> Result<Vec<&[u8]>, Malformed> {
    let mut tickets = Vec::new();
    while !extensions.is_empty() {
        let kind = extensions.u16()?;
        let mut content = Reader::new(vector16(&mut extensions)?);
        if kind != EXTENSION_PRE_SHARED_KEY {
            continue;
        }
        let mut offered = Reader::new(vector16(&mut content)?);
        while !offered.is_empty() && tickets.len() < MOST {
            tickets.push(vector16(&mut offered)?);
            let _obfuscated_age = offered.u32()?;
        }
    }
    Ok(tickets)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]

    use super::super::tests::{extension, message, sni, with_len16};
    use super::*;

    fn offer(tickets: &[&[u8]]) -> Vec<u8> {
        let identities: Vec<u8> =
            tickets.iter().flat_map(|ticket| [with_len16(ticket), vec![1, 2, 3, 4]].concat()).collect();
        let binders = with_len16(&[32; 33]);
        extension(41, &[with_len16(&identities), binders].concat())
    }

    #[test]
    fn tickets_are_found_in_order_and_not_too_many() {
        let bytes = message(&[sni(b"example.org"), offer(&[b"one", b"another"])]);
        assert_eq!(offered_tickets(&bytes), [&b"one"[..], b"another"]);
        assert!(offered_tickets(&message(&[sni(b"example.org")])).is_empty());
        assert_eq!(offered_tickets(&message(&[offer(&[&b"x"[..]; 20])])).len(), MOST);
    }

    #[test]
    fn what_is_cut_or_changed_does_no_harm() {
        let bytes = message(&[offer(&[b"one", b"another"])]);
        assert!((0..bytes.len()).all(|len| offered_tickets(&bytes[..len]).is_empty()));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0xff;
            let _ = offered_tickets(&changed);
        }
    }
}
