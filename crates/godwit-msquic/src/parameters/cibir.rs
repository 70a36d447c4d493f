//! Ids by which several processes on one port tell their connections apart (CIBIR).
//!
//! Sockets do not look at them: who shares a port shares it as ever. The ends tell one another that they use them, and which length
//! they have; both have them in their connection ids then, or there is no connection.

use super::given::Given;
use crate::abi::Status;
use godwit_transport::CidIdentifier;

/// Bytes of the longest id, the offset among them.
const MAX_CIBIR: usize = 7;

/// Such an id: none, or the offset, which must be 0, and at least one byte.
///
/// # Errors
/// [`Status::INVALID_PARAMETER`] if it is too short or long, [`Status::NOT_SUPPORTED`] if the offset is another.
pub(super) fn read(given: &Given<'_>) -> Result<Vec<u8>, Status> {
    match given.length() {
        0 => Ok(Vec::new()),
        2..=MAX_CIBIR => match given.bytes()? {
            id @ [0, ..] => Ok(id.to_vec()),
            _ => Err(Status::NOT_SUPPORTED),
        },
        _ => Err(Status::INVALID_PARAMETER),
    }
}

/// Whether it is an id that connection ids need room for.
pub(super) fn is_one(given: &Given<'_>) -> bool {
    read(given).is_ok_and(|id| !id.is_empty())
}

/// What such an id has in connection ids.
pub(super) fn identifier(id: &[u8]) -> Option<CidIdentifier> {
    let (_offset, bytes) = id.split_first()?;
    CidIdentifier::new(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_no_offset_and_a_byte_at_least() {
        let of = |bytes: &[u8]| read(&Given::new(Some(bytes), bytes.len() as u32));
        assert_eq!(of(&[]), Ok(vec![]));
        assert_eq!(of(&[0]), Err(Status::INVALID_PARAMETER));
        assert_eq!(of(&[0, 5]), Ok(vec![0, 5]));
        assert_eq!(
            [&[][..], &[0], &[1, 5], &[0, 5]].map(|it| is_one(&Given::new(Some(it), it.len() as u32))),
            [false, false, false, true]
        );
        assert_eq!(of(&[1, 5]), Err(Status::NOT_SUPPORTED));
        assert_eq!(of(&[0; MAX_CIBIR]), Ok(vec![0; MAX_CIBIR]));
        assert_eq!(of(&[0; MAX_CIBIR + 1]), Err(Status::INVALID_PARAMETER));
    }
}
