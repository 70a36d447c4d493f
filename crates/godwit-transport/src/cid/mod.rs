//! Connection ids (RFC 9000 section 5.1): the ids we issue, the ids the peer issues, and the format of
//! ours.
//!
//! [`CidCodec`] belongs to the endpoint and says which shard and which generation of the process issued
//! an id. [`LocalCids`] and [`RemoteCids`] belong to a connection: they process NEW_CONNECTION_ID and
//! RETIRE_CONNECTION_ID frames (sections 19.15 and 19.16), write their own, and hear of their fate through
//! recovery tokens.

mod codec;
mod identifier;
mod local;
mod remote;

pub(crate) use codec::Route;
pub(crate) use codec::Shown;
pub use codec::{CidCodec, ServerId};
pub use identifier::{Cibir, CidIdentifier};
pub(crate) use local::AnnouncedId;
pub(crate) use local::LocalCids;
pub(crate) use remote::RemoteCids;
pub(crate) use remote::RetiredId;
