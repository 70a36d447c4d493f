//! Names, kinds of keys, and exchanges, seen by real TLS clients without a network.

use std::io::{Read, Write};
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, SignatureAlgorithm};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::StoresServerSessions as _;
use rustls::{ClientConfig, ClientConnection, HandshakeKind, ServerConnection, SignatureScheme};

use super::*;
use crate::Facts;
use crate::acme::test_answer;
use crate::testing::AnyCertificate;

fn identity(names: &[&str], algorithm: &'static SignatureAlgorithm) -> Identity {
    let key = KeyPair::generate_for(algorithm).unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    let chain = vec![certificate.der().clone()];
    let facts = Facts::read(&chain[0]).unwrap();
    Identity { chain, key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(), facts, authority: None }
}

fn ecdsa(names: &[&str]) -> Identity {
    identity(names, &PKCS_ECDSA_P256_SHA256)
}

fn slot(identity: Identity) -> Arc<Slot> {
    Slot::new(Source::Local, identity).unwrap()
}

fn client(schemes: Option<Vec<SignatureScheme>>) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(AnyCertificate::verifier(schemes))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Arc::new(config)
}

/// Shakes hands with the store; the client reads the tickets that follow.
fn shake(store: &Store, client: &Arc<ClientConfig>, name: &str) -> Result<Shaken, rustls::Error> {
    let mut server = ServerConnection::new(Arc::new(tcp_config(store).unwrap()))?;
    let mut client =
        ClientConnection::new(Arc::clone(client), ServerName::try_from(name.to_owned()).unwrap())?;
    let mut wire = Vec::new();
    let mut said = false;
    for _ in 0..10 {
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        let mut rest = wire.as_slice();
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            server.process_new_packets()?;
        }
        wire.clear();
        if !server.is_handshaking() && !said {
            said = true;
            server.writer().write_all(b"x").unwrap();
        }
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        let mut rest = wire.as_slice();
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets()?;
        }
        wire.clear();
    }
    let mut byte = [0];
    let _ = client.reader().read(&mut byte);
    let resumed = client.handshake_kind() == Some(HandshakeKind::Resumed);
    let leaf = client.peer_certificates().unwrap()[0].clone().into_owned();
    Ok(Shaken { leaf, resumed, is_challenge: is_challenge(&server) })
}

struct Shaken {
    leaf: CertificateDer<'static>,
    resumed: bool,
    is_challenge: bool,
}

#[test]
fn names_are_found_exactly_then_by_one_label_then_by_default() {
    let slots: Vec<_> = [
        ecdsa(&["default.test", "127.0.0.1"]),
        ecdsa(&["*.example.com"]),
        ecdsa(&["www.Example.com", "example.com"]),
    ]
    .into_iter()
    .map(slot)
    .collect();
    let leaf: Vec<_> = slots.iter().map(|slot| slot.identity().chain[0].clone()).collect();
    let store = Store::new(slots).unwrap();
    for (name, expected) in [
        ("default.test", 0),
        ("a.example.com", 1),
        ("A.EXAMPLE.COM", 1),
        ("www.example.com", 2),
        ("example.com", 2),
        ("a.b.example.com", 0),
        ("com", 0),
        ("stranger.test", 0),
        ("127.0.0.1", 0),
    ] {
        let shown = shake(&store, &client(None), name).unwrap().leaf;
        assert_eq!(leaf.iter().position(|leaf| *leaf == shown), Some(expected), "{name}");
    }
}

#[test]
fn the_kind_of_key_is_the_clients_choice() {
    let (rsa, ec) = (identity(&["a.test"], &PKCS_RSA_SHA256), ecdsa(&["a.test"]));
    let (rsa_leaf, ec_leaf) = (rsa.chain[0].clone(), ec.chain[0].clone());
    let store = Store::new(vec![slot(rsa), slot(ec)]).unwrap();
    let shown = |schemes, name| shake(&store, &client(schemes), name).unwrap().leaf;
    let only_rsa = || Some(vec![SignatureScheme::RSA_PSS_SHA256, SignatureScheme::RSA_PKCS1_SHA256]);
    assert_eq!(shown(None, "a.test"), ec_leaf, "ECDSA is cheaper");
    assert_eq!(shown(only_rsa(), "a.test"), rsa_leaf);
    assert_eq!(shown(None, "b.test"), rsa_leaf, "the default is the first");
    assert_eq!(shown(Some(vec![SignatureScheme::ECDSA_NISTP256_SHA256]), "b.test"), ec_leaf);
    let store = Store::new(vec![slot(ecdsa(&["a.test"]))]).unwrap();
    assert!(shake(&store, &client(only_rsa()), "a.test").is_err());
}

#[test]
fn an_exchange_is_seen_at_once_and_ends_the_sessions() {
    let slot = slot(ecdsa(&["a.test"]));
    let store = Store::new(vec![Arc::clone(&slot)]).unwrap();
    let client = client(None);
    let first = shake(&store, &client, "a.test").unwrap();
    assert!(!first.resumed);
    assert!(shake(&store, &client, "a.test").unwrap().resumed);

    assert!(store.early_sessions().put(b"name".to_vec(), b"session".to_vec()));
    let again = slot.identity();
    let same = Identity {
        chain: again.chain.clone(),
        key: again.key.clone_key(),
        facts: again.facts.clone(),
        authority: None,
    };
    store.swap(&slot, same).unwrap();
    assert!(shake(&store, &client, "a.test").unwrap().resumed, "nothing has changed");
    assert_eq!(store.early_sessions().len(), 1);

    let new = ecdsa(&["a.test"]);
    let leaf = new.chain[0].clone();
    store.swap(&slot, new).unwrap();
    assert!(store.early_sessions().is_empty());
    let after = shake(&store, &client, "a.test").unwrap();
    assert!(!after.resumed);
    assert_eq!(after.leaf, leaf);
    assert_ne!(after.leaf, first.leaf);
    assert!(shake(&store, &client, "a.test").unwrap().resumed);
}

#[test]
fn sessions_go_on_in_another_process_with_the_same_certificates() {
    let shown = slot(ecdsa(&["a.test"]));
    let store = Store::new(vec![Arc::clone(&shown)]).unwrap();
    let client = client(None);
    assert!(!shake(&store, &client, "a.test").unwrap().resumed);
    let next = Store::new(vec![shown]).unwrap();
    assert!(next.resume_sessions(&store.sessions()));
    assert!(shake(&next, &client, "a.test").unwrap().resumed);
    let changed = Store::new(vec![slot(ecdsa(&["a.test"]))]).unwrap();
    assert!(!changed.resume_sessions(&store.sessions()));
    assert!(!shake(&changed, &client, "a.test").unwrap().resumed);
    assert!(!next.resume_sessions(b""));
}

#[test]
fn a_slot_that_was_removed_has_no_more_effect() {
    let (old, new) = (slot(ecdsa(&["a.test"])), slot(ecdsa(&["a.test"])));
    let store = Store::new(vec![Arc::clone(&old)]).unwrap();
    store.replace(vec![Arc::clone(&new)]);
    store.swap(&old, ecdsa(&["a.test"])).unwrap();
    assert_eq!(shake(&store, &client(None), "a.test").unwrap().leaf, new.identity().chain[0]);
    assert_eq!(store.report().len(), 1);
}

#[test]
fn acme_servers_see_the_answer_and_nobody_else_does() {
    let slot = slot(ecdsa(&["a.test"]));
    let store = Store::new(vec![Arc::clone(&slot)]).unwrap();
    let answer = test_answer("a.test");
    let leaf = answer.leaf();
    let open = store.challenges().open(vec![answer]);
    let mut acme = ClientConfig::clone(&client(None));
    acme.alpn_protocols = vec![b"acme-tls/1".to_vec()];
    let acme = Arc::new(acme);
    let checked = shake(&store, &acme, "a.test").unwrap();
    assert!(checked.is_challenge);
    assert_eq!(Some(checked.leaf), leaf);
    assert!(shake(&store, &acme, "b.test").is_err(), "nobody is checking that name");
    let usual = shake(&store, &client(None), "a.test").unwrap();
    assert!(!usual.is_challenge);
    assert_eq!(usual.leaf, slot.identity().chain[0]);
    drop(open);
    assert!(shake(&store, &acme, "a.test").is_err(), "the check is over");
}

#[test]
fn a_report_tells_what_is_shown() {
    let slot = slot(identity(&["a.test"], &PKCS_RSA_SHA256));
    let store = Store::new(vec![Arc::clone(&slot)]).unwrap();
    slot.set_problem(Some("no".to_owned()));
    slot.set_renewal(7);
    let report = store.report().remove(0);
    assert_eq!((report.key_type, report.chain_length, report.renewal), ("RSA", 1, Some(7)));
    assert_eq!((report.names, report.problem), (vec!["a.test".to_owned()], Some("no".to_owned())));
    store.swap(&slot, ecdsa(&["b.test"])).unwrap();
    let report = store.report().remove(0);
    assert_eq!((report.key_type, report.renewal, report.problem), ("ECDSA", None, None));
}

#[test]
fn who_is_certified_is_known() {
    let store =
        Store::new(vec![slot(ecdsa(&["a.test", "*.b.test", "192.0.2.1", "::1"])), slot(ecdsa(&["c.test"]))])
            .unwrap();
    for host in ["a.test", "A.test", "x.b.test", "c.test", "192.0.2.1", "::1", "0:0::1"] {
        assert!(store.has_certificate_for(host), "{host}");
    }
    for host in ["b.test", "x.a.test", "x.y.b.test", "192.0.2.2", "::2", ""] {
        assert!(!store.has_certificate_for(host), "{host}");
    }
    store.replace(vec![slot(ecdsa(&["d.test"]))]);
    assert!(store.has_certificate_for("d.test") && !store.has_certificate_for("a.test"));
}
