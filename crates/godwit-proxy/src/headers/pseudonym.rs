//! What this proxy is called in Via (RFC 9110 section 7.6.3).

use http::{HeaderValue, Version};
use std::hash::{BuildHasher as _, Hasher as _};

/// The name by which Via tells this proxy from others, and its members of that field.
#[derive(Debug)]
pub(crate) struct Pseudonym {
    name: String,
    /// By the version in which a message was received.
    members: [(Version, Option<HeaderValue>); 5],
}

impl Pseudonym {
    /// One that no other proxy has by chance.
    pub(crate) fn by_chance() -> Self {
        let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
        Pseudonym::new(format!("godwit-{:08x}", random & 0xffff_ffff))
    }

    /// This one, which is a token.
    pub(super) fn new(name: String) -> Self {
        let of = |version, text| (version, HeaderValue::try_from([text, " ", &name].concat()).ok());
        let members = [
            of(Version::HTTP_11, "1.1"),
            of(Version::HTTP_2, "2"),
            of(Version::HTTP_3, "3"),
            of(Version::HTTP_10, "1.0"),
            of(Version::HTTP_09, "0.9"),
        ];
        Pseudonym { name, members }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The member for a message that was received in this version.
    pub(super) fn via(&self, received: Version) -> Option<HeaderValue> {
        let mut members = self.members.iter();
        members.find(|(version, _)| *version == received).and_then(|(_, member)| member.clone())
    }
}
