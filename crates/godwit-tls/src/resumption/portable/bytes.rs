//! A ticket as bytes.
//!
//! One byte for the format, then in network byte order: cipher suite (2 bytes), when the ticket was issued (8, seconds
//! since the Unix epoch), its lifetime (4, seconds), what is added to its age (4), whether it permits 0-RTT (1); then
//! ticket, secret, the server's transport parameters and its certificates, each after its length.

use super::PortableTicket;
use godwit_wire::{Malformed, NoRoom, Reader, Writer};
use rustls::CipherSuite;
use rustls::pki_types::CertificateDer;

/// The format described above.
const FORMAT: u8 = 1;
/// Tickets that take more are not kept. Certificates make up most of it.
const MAX_LEN: usize = 24 << 10;
/// Certificates of one chain at most.
const MAX_CHAIN: usize = 16;

/// `None` if it is too long.
pub(super) fn encode(ticket: &PortableTicket) -> Option<Vec<u8>> {
    if ticket.chain.len() > MAX_CHAIN {
        return None;
    }
    let mut bytes = vec![0; MAX_LEN];
    let mut writer = Writer::new(&mut bytes);
    write(ticket, &mut writer).ok()?;
    let len = writer.len();
    bytes.truncate(len);
    bytes.shrink_to_fit();
    Some(bytes)
}

fn write(ticket: &PortableTicket, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
    writer.u8(FORMAT)?;
    writer.u16(ticket.suite.into())?;
    writer.bytes(&ticket.issued.to_be_bytes())?;
    writer.u32(ticket.lifetime)?;
    writer.u32(ticket.age_add)?;
    writer.u8(ticket.early.into())?;
    writer.prefixed(&ticket.ticket)?;
    writer.prefixed(&ticket.secret)?;
    writer.prefixed(&ticket.parameters)?;
    ticket.chain.iter().try_for_each(|certificate| writer.prefixed(certificate))
}

/// `None` if these bytes are not a ticket of this format.
pub(super) fn decode(bytes: &[u8]) -> Option<PortableTicket> {
    if bytes.len() > MAX_LEN {
        return None;
    }
    read(&mut Reader::new(bytes)).ok().flatten()
}

fn read(reader: &mut Reader<'_>) -> Result<Option<PortableTicket>, Malformed> {
    if reader.u8()? != FORMAT {
        return Ok(None);
    }
    let suite = CipherSuite::from(reader.u16()?);
    let issued = u64::from_be_bytes(reader.array()?);
    let (lifetime, age_add, early) = (reader.u32()?, reader.u32()?, reader.u8()?);
    let ticket = reader.prefixed()?.to_vec();
    let secret = reader.prefixed()?.to_vec();
    let parameters = reader.prefixed()?.to_vec();
    let mut chain = Vec::new();
    while !reader.is_empty() {
        chain.push(CertificateDer::from(reader.prefixed()?.to_vec()));
    }
    let sound = early <= 1 && !ticket.is_empty() && !chain.is_empty() && chain.len() <= MAX_CHAIN;
    let early = early == 1;
    let read = PortableTicket { suite, issued, lifetime, age_add, early, ticket, secret, parameters, chain };
    Ok(sound.then_some(read))
}
