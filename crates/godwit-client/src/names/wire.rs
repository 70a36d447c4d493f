//! Messages and records of the library for DNS in the words of this crate.

use std::net::IpAddr;
use std::time::Duration;

use hickory_resolver::proto::op::{Message, Query, ResponseCode};
use hickory_resolver::proto::rr::rdata::svcb::{SVCB, SvcParamValue};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};

use super::question::{Answer, Kind};
use super::record::HttpsRecord;

/// The most records of one answer that are looked at.
const MOST_RECORDS: usize = 64;
/// The most names that stand for one another, one after the other.
const MOST_NAMES: usize = 8;
/// The longest time that an answer is believed.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// How long it is believed that there is nothing.
const NOTHING_HOLDS: Duration = Duration::from_secs(60);

impl Kind {
    /// Its type of record.
    pub(super) fn record_type(self) -> RecordType {
        match self {
            Kind::A => RecordType::A,
            Kind::Aaaa => RecordType::AAAA,
            Kind::Https => RecordType::HTTPS,
        }
    }
}

/// A message that asks. Its number is 0, as HTTP has numbers of its own (RFC 8484 section 4.1).
///
/// # Errors
/// What is wrong with the name.
pub(crate) fn question(name: &str, kind: Kind) -> Result<Vec<u8>, String> {
    let mut message = Message::query();
    message.metadata.id = 0;
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(full_name(name)?, kind.record_type()));
    message.to_vec().map_err(|error| error.to_string())
}

/// Reads the answer to [`question`].
///
/// # Errors
/// If it is none.
pub(crate) fn read(name: &str, kind: Kind, message: &[u8]) -> Result<Answer, String> {
    let message = Message::from_vec(message).map_err(|error| error.to_string())?;
    let code = message.metadata.response_code;
    if ![ResponseCode::NoError, ResponseCode::NXDomain].contains(&code) {
        return Err(code.to_string());
    }
    let found = answer(&full_name(name)?, kind, &message.answers);
    Ok(found.unwrap_or_else(|| Answer { holds: NOTHING_HOLDS, ..Answer::default() }))
}

/// A name that is whole.
pub(super) fn full_name(name: &str) -> Result<Name, String> {
    let mut name = Name::from_ascii(name).map_err(|error| error.to_string())?;
    name.set_fqdn(true);
    Ok(name)
}

/// What `records` say of `name`, by way of the names that it stands for (CNAME). `None`: nothing of the kind.
pub(super) fn answer(name: &Name, kind: Kind, records: &[Record]) -> Option<Answer> {
    let records = records.get(..MOST_RECORDS).unwrap_or(records);
    let mut name = name;
    let mut answer = Answer { holds: LONGEST, ..Answer::default() };
    for _ in 0..MOST_NAMES {
        let mut of_name = records.iter().filter(|record| record.name == *name);
        for record in of_name.clone().filter(|record| record.record_type() == kind.record_type()) {
            answer.holds = answer.holds.min(Duration::from_secs(record.ttl.into()));
            match &record.data {
                RData::A(address) => answer.addresses.push(IpAddr::V4(address.0)),
                RData::AAAA(address) => answer.addresses.push(IpAddr::V6(address.0)),
                RData::HTTPS(https) => answer.records.push(https_record(&https.0)),
                _ => {}
            }
        }
        if !answer.addresses.is_empty() || !answer.records.is_empty() {
            return Some(answer);
        }
        let (target, ttl) = of_name.find_map(|record| match &record.data {
            RData::CNAME(target) => Some((&target.0, record.ttl)),
            _ => None,
        })?;
        answer.holds = answer.holds.min(Duration::from_secs(ttl.into()));
        name = target;
    }
    None
}

fn https_record(record: &SVCB) -> HttpsRecord {
    let SVCB { svc_priority, target_name, svc_params, .. } = record;
    let target = target_name.to_lowercase().to_ascii();
    let target = target.trim_end_matches('.').to_owned();
    let mut https = HttpsRecord { priority: *svc_priority, target, ..HttpsRecord::default() };
    for (_, value) in svc_params {
        match value {
            SvcParamValue::Mandatory(keys) => {
                https.mandatory = keys.0.iter().map(|key| u16::from(*key)).collect();
            }
            SvcParamValue::Alpn(alpn) => https.alpn.clone_from(&alpn.0),
            SvcParamValue::NoDefaultAlpn => https.no_default_alpn = true,
            SvcParamValue::Port(port) => https.port = Some(*port),
            SvcParamValue::Ipv4Hint(hints) => {
                https.hints.extend(hints.0.iter().map(|hint| IpAddr::V4(hint.0)));
            }
            SvcParamValue::Ipv6Hint(hints) => {
                https.hints.extend(hints.0.iter().map(|hint| IpAddr::V6(hint.0)));
            }
            SvcParamValue::EchConfigList(list) => https.ech = Some(list.0.clone()),
            SvcParamValue::Unknown(_) => {}
        }
    }
    https
}

#[cfg(test)]
mod tests {
    use hickory_resolver::proto::op::OpCode;
    use hickory_resolver::proto::rr::rdata::svcb::{Alpn, SvcParamKey};
    use hickory_resolver::proto::rr::rdata::{CNAME, HTTPS};
    use proptest::prelude::*;

    use super::*;

    fn message(records: Vec<(&str, RData)>) -> Vec<u8> {
        let mut message = Message::response(0, OpCode::Query);
        message.add_query(Query::query(full_name("a.example").unwrap(), RecordType::HTTPS));
        for (owner, data) in records {
            message.add_answer(Record::from_rdata(full_name(owner).unwrap(), 300, data));
        }
        message.to_vec().unwrap()
    }

    fn https() -> RData {
        let alpn = SvcParamValue::Alpn(Alpn(vec!["h3".to_owned()]));
        let parameters = vec![(SvcParamKey::Alpn, alpn), (SvcParamKey::Port, SvcParamValue::Port(8443))];
        RData::HTTPS(HTTPS(SVCB::new(1, full_name("Machine.Example").unwrap(), parameters)))
    }

    #[test]
    fn an_answer_is_read_by_way_of_the_names_that_stand_for_it() {
        let cname = |to: &str| RData::CNAME(CNAME(full_name(to).unwrap()));
        let of = |records| read("a.example", Kind::Https, &message(records)).unwrap();
        let found =
            of(vec![("A.example", cname("b.example")), ("b.example", https()), ("c.example", https())]);
        assert_eq!((found.records.len(), found.holds), (1, Duration::from_secs(300)));
        let record = &found.records[0];
        assert_eq!((record.target.as_str(), record.port), ("machine.example", Some(8443)));
        assert!(of(vec![("c.example", https())]).records.is_empty());
        let circle = vec![("a.example", cname("b.example")), ("b.example", cname("a.example"))];
        assert!(of(circle).records.is_empty());
    }

    #[test]
    fn no_message_makes_it_panic() {
        let good = message(vec![("a.example", https()); 3]);
        proptest!(|(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8), cut in 0_usize..200)| {
            let mut bytes = good.clone();
            for (place, value) in changes {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            if let Ok(found) = read("a.example", Kind::Https, &bytes) {
                let host = "a.example";
                let _ = super::super::record::meaning(host, host, found.records);
            }
        });
        proptest!(|(bytes in prop::collection::vec(any::<u8>(), 0..300))| {
            let _ = read("a.example", Kind::A, &bytes);
        });
    }
}
