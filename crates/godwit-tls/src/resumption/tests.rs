#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::provider;
use crate::secrets::ServerSecrets;
use godwit_base::SeededRng;
use rustls::server::{ProducesTickets, StoresServerSessions};

fn key(name: &str) -> SessionKey {
    SessionKey { server_name: name.to_owned(), alpn: vec![b"h3".to_vec()], version: 1, network: 0 }
}

fn tickets(secrets: &ServerSecrets) -> SessionTickets {
    SessionTickets::new(secrets, &provider::provider())
}

#[test]
fn processes_with_the_same_secrets_open_each_others_tickets() {
    let secrets = ServerSecrets::from_rng(&mut SeededRng::new(1));
    let (here, there) = (tickets(&secrets), tickets(&ServerSecrets::from_bytes(&secrets.to_bytes())));
    let ticket = here.encrypt(b"session").unwrap();
    assert_ne!(ticket, here.encrypt(b"session").unwrap(), "nobody can tell that they are the same");
    assert_eq!(there.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
    assert_eq!(tickets(&ServerSecrets::from_rng(&mut SeededRng::new(2))).decrypt(&ticket), None);
    for at in 0..ticket.len() {
        let mut forged = ticket.clone();
        forged[at] ^= 1;
        assert_eq!(here.decrypt(&forged), None, "byte {at}");
        assert_eq!(here.decrypt(&ticket[..at]), None);
    }
}

#[test]
fn tickets_outlive_one_rotation() {
    let mut rng = SeededRng::new(3);
    let first = ServerSecrets::from_rng(&mut rng);
    let server = tickets(&first);
    let ticket = server.encrypt(b"session").unwrap();
    let second = first.rotated(&mut rng);
    server.rotate(&second);
    assert_eq!(server.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
    let newer = server.encrypt(b"newer").unwrap();
    assert_eq!(tickets(&second).decrypt(&newer).as_deref(), Some(&b"newer"[..]));
    server.rotate(&second.rotated(&mut rng));
    assert_eq!(server.decrypt(&ticket), None);
    assert_eq!(server.decrypt(&newer).as_deref(), Some(&b"newer"[..]));
}

#[test]
fn sessions_of_one_scope_are_not_resumed_in_another() {
    let mut rng = SeededRng::new(4);
    let secrets = ServerSecrets::from_rng(&mut rng);
    let (all, one, other) =
        (tickets(&secrets), tickets(&secrets).scoped(b"one"), tickets(&secrets).scoped(b"other"));
    let ticket = one.encrypt(b"session").unwrap();
    assert_eq!(tickets(&secrets).scoped(b"one").decrypt(&ticket).as_deref(), Some(&b"session"[..]));
    assert_eq!((all.decrypt(&ticket), other.decrypt(&ticket)), (None, None));
    // They follow the same rotation.
    let within = all.scoped(b"one");
    all.rotate(&secrets.rotated(&mut rng).rotated(&mut rng));
    assert_eq!(within.decrypt(&ticket), None);
}

#[test]
fn a_session_is_given_out_once() {
    let register = EarlySessions::new(10);
    assert!(register.put(b"name".to_vec(), b"session".to_vec()));
    assert_eq!(register.get(b"name"), None);
    assert_eq!(register.take(b"name").as_deref(), Some(&b"session"[..]));
    assert_eq!(register.take(b"name"), None);
}

#[test]
fn the_register_is_bounded() {
    let register = EarlySessions::new(10);
    for number in 0..1000_u32 {
        assert!(register.put(number.to_be_bytes().to_vec(), vec![0; 100]));
        if number % 3 == 0 {
            register.take(&number.to_be_bytes());
        }
        let inner = register.lock();
        assert!(inner.sessions.len() <= 10 && inner.order.len() <= 21, "{}", inner.order.len());
    }
    assert!(register.take(&998_u32.to_be_bytes()).is_some(), "the newest are kept");
    assert!(register.take(&1_u32.to_be_bytes()).is_none());
    assert!(!register.put(vec![1], vec![0; 1 << 20]), "too large");
}

#[test]
fn tokens_are_taken_once_newest_first_and_few_are_kept() {
    let store = MemorySessions::default();
    for number in 0..100_u8 {
        store.put_token(&key("a"), Bytes::copy_from_slice(&[number]));
    }
    let taken: Vec<u8> = std::iter::from_fn(|| store.take_token(&key("a"))).map(|token| token[0]).collect();
    assert_eq!(taken, [99, 98, 97, 96]);
}

#[test]
fn what_differs_in_any_part_of_the_key_is_apart() {
    let store = MemorySessions::default();
    store.put_token(&key("a"), Bytes::from_static(b"token"));
    let others = [
        key("b"),
        SessionKey { alpn: vec![b"hq".to_vec()], ..key("a") },
        SessionKey { version: 2, ..key("a") },
        SessionKey { network: 1, ..key("a") },
    ];
    for other in others {
        assert_eq!(store.take_token(&other), None, "{other:?}");
        assert_eq!(store.remembered(&other), None);
    }
    assert!(store.take_token(&key("a")).is_some());
}

#[test]
fn the_least_recently_used_server_is_forgotten() {
    let store = MemorySessions::new(3);
    for name in ["a", "b", "c"] {
        store.remember(&key(name), &mut |remembered| remembered.window = 7);
    }
    assert!(store.remembered(&key("a")).is_some());
    store.put_token(&key("d"), Bytes::from_static(b"token"));
    assert_eq!(store.len(), 3);
    assert!(store.remembered(&key("b")).is_none(), "a was used later");
    assert!(store.remembered(&key("a")).is_some() && store.remembered(&key("c")).is_some());
    store.remember(&key("a"), &mut |remembered| remembered.application = vec![0; 1 << 20].into());
    assert!(store.remembered(&key("a")).unwrap().application.is_empty(), "too much to be kept");
}
