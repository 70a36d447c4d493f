//! What is remembered of HTTPS records (RFC 9460): not what they say, which is for DNS to remember, but whether it is worth
//! while to wait for them, and how the HTTP/3 that they offer did.

use super::contents::{MUTE_FOR, OriginEntry};
use super::{Http3Place, Memory, NetworkId};
use crate::target::Origin;

/// For how long it is remembered how HTTP/3 did that a record offered, in seconds.
const HISTORY: i64 = 7 * 86_400;

impl Memory {
    /// Whether the name server of this network answers questions for records in time.
    pub(crate) fn awaits_records(&self, network: &NetworkId, now: i64) -> bool {
        let since = self.contents.mute_resolvers.get(&network.0);
        since.is_none_or(|since| now.saturating_sub(*since) >= MUTE_FOR)
    }

    /// The name server of this network did not answer in time.
    pub(crate) fn on_records_missed(&mut self, network: &NetworkId, now: i64) {
        self.contents.mute_resolvers.insert(network.0.clone(), now);
        self.contents.forget(now);
        self.on_change(network.0.clone());
    }

    /// The name server of this network answers, in time or not.
    pub(crate) fn on_records_answered(&mut self, network: &NetworkId) {
        if self.contents.mute_resolvers.remove(&network.0).is_some() {
            self.on_change(network.0.clone());
        }
    }

    /// A record offers HTTP/3 at `place`, where it is tried now: how it does will be noted.
    pub(crate) fn on_record(&mut self, origin: &Origin, network: &NetworkId, place: &Http3Place, now: i64) {
        let key = origin.to_string();
        let known = self.contents.origins.get(&key).filter(|entry| entry.expires > now);
        if known.is_some_and(|entry| !entry.of_record) {
            return;
        }
        let host = (place.host != origin.host).then(|| place.host.clone());
        let entry = self.contents.origins.entry(key.clone()).or_default();
        if (&entry.host, entry.port, &entry.network) != (&host, place.port, &network.0) {
            let (port, network) = (place.port, network.0.clone());
            *entry = OriginEntry { host, port, network, ..OriginEntry::default() };
        }
        (entry.of_record, entry.expires) = (true, now.saturating_add(HISTORY));
        self.contents.forget(now);
        self.on_change(key);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Approach;
    use super::*;

    fn origin() -> Origin {
        crate::target::Target::parse("https://a.example").unwrap().origin
    }

    fn here() -> NetworkId {
        NetworkId("home".to_owned())
    }

    fn place() -> Http3Place {
        Http3Place { host: "a.example".to_owned(), port: 8443, by_record: true }
    }

    #[test]
    fn who_does_not_answer_is_waited_for_once() {
        let mut memory = Memory::forgetful();
        assert!(memory.awaits_records(&here(), 1000));
        memory.on_records_missed(&here(), 1000);
        assert!(!memory.awaits_records(&here(), 1001));
        assert!(memory.awaits_records(&NetworkId("work".to_owned()), 1001));
        assert!(memory.awaits_records(&here(), 1000 + MUTE_FOR));
        memory.on_records_answered(&here());
        assert!(memory.awaits_records(&here(), 1001));
    }

    #[test]
    fn an_offer_of_dns_counts_while_it_is_there_and_its_history_is_kept() {
        let mut memory = Memory::forgetful();
        let approach = |memory: &Memory, record| memory.approach_by(&origin(), &here(), record, 1001);
        assert_eq!(approach(&memory, None), Approach::Unknown);
        assert_eq!(approach(&memory, Some(place())), Approach::Ahead(place(), None));
        memory.on_record(&origin(), &here(), &place(), 1000);
        assert_eq!(approach(&memory, None), Approach::Unknown, "only DNS offers it");
        memory.on_failure(&origin(), 2, 1000);
        assert!(matches!(approach(&memory, Some(place())), Approach::Blocked(..)));
    }

    #[test]
    fn an_offer_of_the_server_goes_before_that_of_dns() {
        let mut memory = Memory::forgetful();
        memory.on_headers(&origin(), &here(), [&br#"h3=":444""#[..]], 1000);
        memory.on_record(&origin(), &here(), &place(), 1000);
        let Approach::Ahead(found, _) = memory.approach_by(&origin(), &here(), Some(place()), 1001) else {
            panic!("it is offered");
        };
        assert_eq!((found.port, found.by_record), (444, false));
    }
}
