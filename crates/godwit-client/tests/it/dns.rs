//! A name server on loopback, over UDP, TCP and (by way of a [`crate::support::Server`]) HTTPS.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use hickory_resolver::proto::op::{Message, OpCode, ResponseCode};
use hickory_resolver::proto::rr::rdata::svcb::{Alpn, IpHint, Mandatory, SVCB, SvcParamKey, SvcParamValue};
use hickory_resolver::proto::rr::rdata::{A, CNAME, HTTPS};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::Notify;

/// What is known of names, and how it is told.
#[derive(Default)]
pub(crate) struct Zone {
    records: Mutex<Vec<Record>>,
    /// Questions, as `NAME TYPE`.
    asked: Mutex<Vec<String>>,
    manner: Mutex<Manner>,
    /// Ends [`Manner::Late`].
    released: Notify,
}

/// What becomes of questions for HTTPS records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Manner {
    #[default]
    Usual,
    /// No answer.
    Silent,
    /// An answer when it is released.
    Late,
    /// SERVFAIL.
    Failing,
    /// Over UDP only the beginning.
    Truncated,
    /// Something that is no message.
    Garbled,
}

fn name(text: &str) -> Name {
    Name::from_ascii(format!("{text}.")).unwrap()
}

impl Zone {
    pub(crate) fn add(&self, owner: &str, data: RData) {
        self.records.lock().unwrap().push(Record::from_rdata(name(owner), 300, data));
    }

    /// `owner` is on loopback.
    pub(crate) fn add_loopback(&self, owner: &str) {
        self.add(owner, RData::A(A(Ipv4Addr::LOCALHOST)));
    }

    pub(crate) fn add_alias(&self, owner: &str, to: &str) {
        self.add(owner, RData::HTTPS(HTTPS(SVCB::new(0, name(to), Vec::new()))));
    }

    pub(crate) fn add_cname(&self, owner: &str, to: &str) {
        self.add(owner, RData::CNAME(CNAME(name(to))));
    }

    /// HTTP/3 is at this port of `target`.
    pub(crate) fn add_http3(&self, owner: &str, target: &str, port: u16) {
        self.add_service(owner, target, vec![(SvcParamKey::Port, SvcParamValue::Port(port))]);
    }

    /// The same with hints, and with whatever is demanded.
    pub(crate) fn add_hinted(&self, owner: &str, target: &str, port: u16, demanded: Option<u16>) {
        let mandatory = demanded.map(SvcParamKey::from).unwrap_or(SvcParamKey::Port);
        let hint = SvcParamValue::Ipv4Hint(IpHint(vec![A(Ipv4Addr::LOCALHOST)]));
        let parameters = vec![
            (SvcParamKey::Mandatory, SvcParamValue::Mandatory(Mandatory(vec![mandatory]))),
            (SvcParamKey::Port, SvcParamValue::Port(port)),
            (SvcParamKey::Ipv4Hint, hint),
        ];
        self.add_service(owner, target, parameters);
    }

    fn add_service(&self, owner: &str, target: &str, parameters: Vec<(SvcParamKey, SvcParamValue)>) {
        let alpn = SvcParamValue::Alpn(Alpn(vec!["h3".to_owned()]));
        let mut all = parameters;
        all.push((SvcParamKey::Alpn, alpn));
        all.push((SvcParamKey::NoDefaultAlpn, SvcParamValue::NoDefaultAlpn));
        all.sort_by_key(|(key, _)| u16::from(*key));
        self.add(owner, RData::HTTPS(HTTPS(SVCB::new(1, name(target), all))));
    }

    pub(crate) fn behave(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
    }

    pub(crate) fn release(&self) {
        self.behave(Manner::Usual);
        self.released.notify_waiters();
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// The answer to a message.
    pub(crate) async fn answer(&self, message: &[u8], over_udp: bool) -> Option<Vec<u8>> {
        let question = Message::from_vec(message).ok()?;
        let query = question.queries.first()?.clone();
        let mut asked = query.name().to_lowercase();
        asked.set_fqdn(false);
        self.asked.lock().unwrap().push(format!("{asked} {}", query.query_type()));
        let is_https = query.query_type() == RecordType::HTTPS;
        let manner = if is_https { *self.manner.lock().unwrap() } else { Manner::Usual };
        match manner {
            Manner::Silent => return None,
            Manner::Garbled => return Some(b"hello".to_vec()),
            Manner::Late => self.released.notified().await,
            _ => {}
        }
        let mut answer = Message::response(question.metadata.id, OpCode::Query);
        answer.metadata.recursion_available = true;
        answer.add_query(query.clone());
        match manner {
            Manner::Failing => answer.metadata.response_code = ResponseCode::ServFail,
            Manner::Truncated if over_udp => answer.metadata.truncation = true,
            _ => {
                let records = self.records.lock().unwrap();
                let mut owner = query.name().clone();
                let wanted = [query.query_type(), RecordType::CNAME];
                // Each may be the name of what follows it.
                for record in records.iter().filter(|record| wanted.contains(&record.record_type())) {
                    if record.name == owner {
                        answer.add_answer(record.clone());
                        if let RData::CNAME(target) = &record.data {
                            owner = target.0.clone();
                        }
                    }
                }
            }
        }
        answer.to_vec().ok()
    }
}

/// A server for a [`Zone`].
pub(crate) struct NameServer {
    pub(crate) address: SocketAddr,
    pub(crate) zone: Arc<Zone>,
}

impl NameServer {
    pub(crate) async fn start() -> NameServer {
        let zone = Arc::<Zone>::default();
        let (udp, tcp) = loop {
            let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()).await {
                break (Arc::new(udp), tcp);
            }
        };
        let address = udp.local_addr().unwrap();
        let shared = Arc::clone(&zone);
        tokio::spawn(async move {
            let mut buffer = [0; 2000];
            loop {
                let (length, from) = udp.recv_from(&mut buffer).await.unwrap();
                let (zone, udp, message) = (Arc::clone(&shared), Arc::clone(&udp), buffer[..length].to_vec());
                tokio::spawn(async move {
                    if let Some(answer) = zone.answer(&message, true).await {
                        let _ = udp.send_to(&answer, from).await;
                    }
                });
            }
        });
        let shared = Arc::clone(&zone);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = tcp.accept().await.unwrap();
                let zone = Arc::clone(&shared);
                tokio::spawn(async move {
                    while let Ok(length) = stream.read_u16().await {
                        let mut message = vec![0; length.into()];
                        stream.read_exact(&mut message).await.unwrap();
                        let Some(answer) = zone.answer(&message, false).await else { return };
                        let length = u16::try_from(answer.len()).unwrap().to_be_bytes();
                        let _ = stream.write_all(&[&length[..], &answer].concat()).await;
                    }
                });
            }
        });
        NameServer { address, zone }
    }
}
