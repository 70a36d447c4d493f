use super::*;

fn origin(text: &str) -> Origin {
    crate::target::Target::parse(text).unwrap().origin
}

fn network(name: &str) -> NetworkId {
    NetworkId(name.to_owned())
}

fn taught(value: &str) -> Memory {
    let mut memory = Memory::forgetful();
    memory.on_headers(&origin("https://a.example"), &network("home"), [value.as_bytes()], 1000);
    memory
}

fn ahead(memory: &Memory, network: &str, now: i64) -> Option<(String, u16)> {
    match memory.approach(&origin("https://a.example"), &self::network(network), now) {
        Approach::Ahead(alternative, _) => Some((alternative.host, alternative.port)),
        Approach::Unknown => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn offers_hold_for_their_time_and_network() {
    let own = Some(("a.example".to_owned(), 443));
    let memory = taught(r#"h3=":443"; ma=60"#);
    assert_eq!(ahead(&memory, "home", 1059), own);
    assert_eq!(ahead(&memory, "home", 1060), None);
    assert_eq!(ahead(&memory, "work", 1001), None);
    assert_eq!(ahead(&taught(r#"h3=":443"; persist=1"#), "work", 1001), own);
}

#[test]
fn clear_ends_an_offer() {
    let mut memory = taught(r#"h3=":443""#);
    memory.on_headers(&origin("https://a.example"), &network("home"), [&b"clear"[..]], 1001);
    assert_eq!(ahead(&memory, "home", 1001), None);
}

#[test]
fn privileged_ports_are_not_moved_to_any_machine() {
    assert_eq!(ahead(&taught(r#"h3="b.example:8443""#), "home", 1001), None);
    assert_eq!(ahead(&taught(r#"h3="b.example:443""#), "home", 1001), Some(("b.example".to_owned(), 443)));
    assert_eq!(ahead(&taught(r#"h3=":8443""#), "home", 1001), Some(("a.example".to_owned(), 8443)));
    let mut memory = Memory::forgetful();
    let plain = origin("http://a.example");
    memory.on_headers(&plain, &network("home"), [&br#"h3=":443""#[..]], 1000);
    assert_eq!(memory.approach(&plain, &network("home"), 1001), Approach::Unknown);
}

#[test]
fn silence_ends_the_head_start_then_the_attempts_and_an_answer_brings_them_back() {
    let server = origin("https://a.example");
    let home = network("home");
    let mut memory = taught(r#"h3=":443""#);
    memory.on_rtt(&server, &home, Duration::from_millis(30));
    let rtt = |memory: &Memory, now| match memory.approach(&server, &home, now) {
        Approach::Ahead(_, rtt) => rtt,
        other => panic!("{other:?}"),
    };
    assert_eq!(rtt(&memory, 1001), Some(Duration::from_millis(30)));
    memory.on_silence(&server, &home, 1, 1001);
    assert!(matches!(memory.approach(&server, &home, 1002), Approach::Together(_, Doubt::Network(1001))));
    memory.on_silence(&server, &home, 1, 1002);
    assert_eq!(memory.approach(&server, &home, 1003), Approach::Blocked(Doubt::Network(1001), 1032));
    assert!(matches!(memory.approach(&server, &home, 1032), Approach::Together(..)));
    memory.on_heard(&server, &home, 1033);
    assert_eq!(rtt(&memory, 1034), Some(Duration::from_millis(30)));
}

#[test]
fn what_one_server_teaches_of_the_network_holds_for_others() {
    let home = network("home");
    let servers = ["https://a.example", "https://b.example", "https://c.example"].map(origin);
    let mut memory = Memory::forgetful();
    for server in &servers {
        memory.on_headers(server, &home, [&br#"h3=":443""#[..]], 1000);
    }
    memory.on_silence(&servers[0], &home, 1, 1001);
    assert!(matches!(memory.approach(&servers[2], &home, 1002), Approach::Together(..)));
    memory.on_silence(&servers[1], &home, 1, 1002);
    assert!(matches!(memory.approach(&servers[2], &home, 1003), Approach::Blocked(..)));
    memory.on_heard(&servers[2], &home, 1100);
    assert!(matches!(memory.approach(&servers[2], &home, 1101), Approach::Ahead(..)));
    // A server without usable HTTP/3 says nothing of the network.
    memory.on_failure(&servers[0], 2, 1101);
    assert!(matches!(memory.approach(&servers[0], &home, 1102), Approach::Blocked(..)));
    assert!(matches!(memory.approach(&servers[2], &home, 1102), Approach::Ahead(..)));
}

#[test]
fn runs_share_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sub/memory.json");
    let (home, now) = (network("home"), 1000);
    let open = || Memory::in_file(path.clone()).unwrap();
    let (mut one, mut two) = (open(), open());
    one.on_headers(&origin("https://a.example"), &home, [&br#"h3=":443""#[..]], now);
    one.save(now).unwrap();
    two.on_headers(&origin("https://b.example:4433"), &home, [&br#"h3=":4433""#[..]], now);
    two.on_silence(&origin("https://b.example:4433"), &home, 1, now);
    two.save(now).unwrap();
    let three = open();
    assert_eq!(three.contents.origins.len(), 2);
    assert_eq!(three.contents.networks.len(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn other_files_are_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "milk, eggs").unwrap();
    let message = Memory::in_file(path).unwrap_err();
    assert!(message.starts_with("it is something else"), "{message}");
}

#[test]
fn memory_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    let mut memory = Memory::in_file(folder.path().join("memory.json")).unwrap();
    for number in 0..2 * MAX_CHANGED {
        let server = origin(&format!("https://h{number}.example"));
        let age = format!("h3=\":443\"; ma={}", 1000 + number);
        memory.on_headers(&server, &network("home"), [age.as_bytes()], 1000);
        memory.on_heard(&server, &network(&format!("net{number}")), 1000 + number as i64);
    }
    assert_eq!(
        (memory.contents.origins.len(), memory.contents.networks.len()),
        (contents::MAX_ORIGINS, contents::MAX_NETWORKS)
    );
    assert!(!memory.contents.origins.contains_key("https://h0.example"));
    assert!(memory.changed.len() <= MAX_CHANGED, "{}", memory.changed.len());
    memory.save(2000).unwrap();
    let kept = Memory::in_file(folder.path().join("memory.json")).unwrap();
    assert_eq!(kept.contents.origins.len(), contents::MAX_ORIGINS);
}
