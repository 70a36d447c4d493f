use super::*;
use godwit_transport::tls::resumption::SessionKey;
use std::fs;
use tempfile::TempDir;

fn key(name: &str, network: u64) -> SessionKey {
    let mut key = SessionKey::new(name, vec![b"h3".to_vec()], 1);
    key.network = network;
    key
}

fn file() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions");
    (folder, path)
}

fn token(number: u8) -> Bytes {
    Bytes::copy_from_slice(&[number; 60])
}

/// A ticket of the transport's format that expires in the year 2100 or has expired in 1970.
fn ticket(number: u8, early: bool, expired: bool) -> SessionTicket {
    let issued: u64 = if expired { 1 } else { 4_102_444_800 };
    let mut bytes = vec![1, 0x13, 0x01];
    bytes.extend_from_slice(&issued.to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0x1c, 0x20, 1, 2, 3, 4, early.into()]);
    for part in [&[number; 8][..], &[9; 32], &[], b"certificate"] {
        bytes.push(part.len() as u8);
        bytes.extend_from_slice(part);
    }
    SessionTicket::from_bytes(&bytes).unwrap()
}

fn number(ticket: &SessionTicket) -> u8 {
    ticket.to_bytes().unwrap()[21]
}

#[test]
fn what_one_process_keeps_another_finds() {
    let (_folder, path) = file();
    let (one, other) = (FileSessionStore::open(&path), FileSessionStore::open(&path));
    one.put_token(&key("a", 1), token(1));
    one.put_ticket(&key("a", 1), ticket(2, false, false));
    one.put_group(&key("a", 1), NamedGroup::X25519);
    one.remember(&key("a", 1), &mut |remembered| {
        remembered.rtt = Duration::from_micros(12_345);
        remembered.window = 99_000;
        remembered.application = Bytes::from_static(b"settings");
    });
    one.flush();
    assert_eq!(other.group(&key("a", 1)), Some(NamedGroup::X25519));
    let remembered = other.remembered(&key("a", 1)).unwrap();
    assert_eq!((remembered.rtt, remembered.window), (Duration::from_micros(12_345), 99_000));
    assert_eq!(remembered.application, &b"settings"[..]);
    assert!(other.has_ticket(&key("a", 1)));
    // Neither another server nor another network has any of it.
    let mut later = key("a", 1);
    later.version = 2;
    for stranger in [key("b", 1), key("a", 2), later] {
        assert!(other.take_token(&stranger).is_none() && other.take_ticket(&stranger, false).is_none());
        assert!(other.remembered(&stranger).is_none() && other.group(&stranger).is_none());
    }
    assert_eq!(other.take_token(&key("a", 1)), Some(token(1)));
    assert_eq!(one.take_token(&key("a", 1)), None);
    assert_eq!(one.take_ticket(&key("a", 1), true).map(|ticket| number(&ticket)), Some(2), "the other kind");
    assert!(other.take_ticket(&key("a", 1), true).is_none() && !other.has_ticket(&key("a", 1)));
}

#[test]
fn a_rate_is_kept_and_files_without_one_are_read() {
    let (_folder, path) = file();
    let remember = |rate| {
        FileSessionStore::open(&path).remember(&key("a", 1), &mut |remembered| {
            remembered.window = 99_000;
            remembered.rate = rate;
            remembered.application = Bytes::from_static(b"settings");
        });
        (FileSessionStore::open(&path).remembered(&key("a", 1)).unwrap(), fs::read(&path).unwrap().len())
    };
    // Without one, the file is as it always was.
    let (before, len_before) = remember(0);
    let (after, len_after) = remember(1_250_000);
    assert_eq!((before.rate, after.rate, len_after - len_before), (0, 1_250_000, 8));
    assert_eq!((before.window, after.window), (99_000, 99_000));
    assert_eq!((before.application, after.application), ("settings".into(), "settings".into()));
}

#[test]
fn all_that_waits_is_written_at_once() {
    let (_folder, path) = file();
    let store = FileSessionStore::open(&path);
    let (begun, has_begun) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    store.put_group(&key("b", 0), NamedGroup::X25519);
    store.tell(move |_, _| {
        begun.send(()).unwrap();
        may_go_on.recv().ok()
    });
    has_begun.recv().unwrap();
    // The disk is slow, and meanwhile the server gives tokens without end.
    for number in 0..200 {
        store.put_token(&key("a", 0), token(number));
    }
    let before = store.keeper.access.exchanged.load(std::sync::atomic::Ordering::Relaxed);
    go_on.send(()).unwrap();
    let taken: Vec<_> = std::iter::from_fn(|| store.take_token(&key("a", 0))).collect();
    assert_eq!(taken, [199, 198, 197, 196].map(token), "the newest, and few of them");
    let written = store.keeper.access.exchanged.load(std::sync::atomic::Ordering::Relaxed) - before;
    assert_eq!(written, 2 + 4, "what was being written, all that waited, and what was taken");
    assert_eq!(store.group(&key("b", 0)), Some(NamedGroup::X25519));
}

#[test]
fn the_newest_of_the_kind_that_is_wanted_is_taken() {
    let (_folder, path) = file();
    let store = FileSessionStore::open(&path);
    for (number, early) in [(1, true), (2, false), (3, true), (4, false)] {
        store.put_ticket(&key("a", 0), ticket(number, early, false));
    }
    store.put_ticket(&key("a", 0), ticket(5, false, true));
    let taken: Vec<u8> = [true, false, true, true]
        .iter()
        .filter_map(|early| store.take_ticket(&key("a", 0), *early))
        .map(|ticket| number(&ticket))
        .collect();
    // The first made room for the one that has expired.
    assert_eq!(taken, [3, 4, 2]);
}

#[test]
fn two_never_take_the_same() {
    let (_folder, path) = file();
    let store = FileSessionStore::open(&path);
    let mut expected = Vec::new();
    for server in 0..20_u8 {
        for number in 0..4 {
            store.put_ticket(&key(&server.to_string(), 0), ticket(server * 4 + number, false, false));
            expected.push(server * 4 + number);
        }
    }
    store.flush();
    let thread = || {
        let store = FileSessionStore::open(&path);
        (0..20_u8)
            .flat_map(|server| {
                let key = key(&server.to_string(), 0);
                std::iter::from_fn(|| store.take_ticket(&key, false))
                    .map(|ticket| number(&ticket))
                    .collect::<Vec<_>>()
            })
            .collect::<Vec<_>>()
    };
    let mut taken: Vec<u8> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(thread)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    // What was not had because the lock was waited for too long is still there.
    taken.extend(thread());
    taken.sort_unstable();
    assert_eq!(taken, expected);
}

#[test]
fn what_was_damaged_begins_anew() {
    let (_folder, path) = file();
    let store = FileSessionStore::open(&path);
    store.put_token(&key("a", 0), token(1));
    store.put_ticket(&key("a", 0), ticket(2, false, false));
    store.flush();
    let whole = fs::read(&path).unwrap();
    let put_back = |bytes: &[u8]| fs::write(&path, bytes).unwrap();
    for end in 0..whole.len() {
        put_back(&whole[..end]);
        assert!(!store.has_ticket(&key("a", 0)), "{end}");
    }
    for at in 18..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        put_back(&damaged);
        assert!(!store.has_ticket(&key("a", 0)), "{at}");
    }
    store.put_token(&key("a", 0), token(3));
    assert_eq!(store.take_token(&key("a", 0)), Some(token(3)));
    assert_eq!(store.problem(), None);
}

#[test]
fn files_of_others_are_left_as_they_are() {
    let (_folder, path) = file();
    for foreign in ["my diary\n", "godwit sessions 2\nsomething newer"] {
        fs::write(&path, foreign).unwrap();
        private(&path);
        let store = FileSessionStore::open(&path);
        let problem = store.problem().unwrap();
        assert!(
            problem.contains("sessions: not a file of sessions") && problem.lines().count() == 1,
            "{problem}"
        );
        store.put_token(&key("a", 0), token(1));
        assert_eq!(store.take_token(&key("a", 0)), None);
        assert_eq!(fs::read_to_string(&path).unwrap(), foreign);
    }
}

#[test]
fn a_place_where_nothing_can_be_kept_is_told_once() {
    let (folder, _) = file();
    let store = FileSessionStore::open(folder.path().join("none/sessions"));
    store.put_token(&key("a", 0), token(1));
    store.flush();
    let problem = store.problem().unwrap();
    assert!(problem.contains("none/sessions") && problem.lines().count() == 1, "{problem}");
    assert_eq!(store.take_token(&key("a", 0)), None);
}

#[cfg(unix)]
fn private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[cfg(unix)]
#[test]
fn the_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, path) = file();
    let store = FileSessionStore::open(&path);
    store.put_token(&key("a", 0), token(1));
    store.flush();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&beside(&path, ".lock"))), (0o600, 0o600));
    // What others may have read is not used, and what is written then is private again.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(store.take_token(&key("a", 0)), None);
    store.put_token(&key("b", 0), token(2));
    store.flush();
    assert_eq!(mode(&path), 0o600);
    assert_eq!((store.take_token(&key("a", 0)), store.take_token(&key("b", 0))), (None, Some(token(2))));
    // A process that was killed has left something under the name of what is not complete.
    std::os::unix::fs::symlink(_folder.path().join("elsewhere"), beside(&path, ".new")).unwrap();
    store.put_token(&key("c", 0), token(3));
    store.flush();
    assert!(!_folder.path().join("elsewhere").exists());
    assert_eq!(store.take_token(&key("c", 0)), Some(token(3)));
}

#[test]
fn the_file_does_not_grow_without_end() {
    let (_folder, path) = file();
    let store = FileSessionStore::open(&path);
    let big = Bytes::from(vec![7; 1024]);
    for server in 0..300 {
        // Seconds count, so these are all of the same age: only that the cap holds is certain.
        store.remember(&key(&server.to_string(), 0), &mut |remembered| remembered.application = big.clone());
        // More than so many at a time are not kept.
        if server % 100 == 0 {
            store.flush();
        }
    }
    store.flush();
    let content = Access::new(&path).read().unwrap();
    assert_eq!(content.entries.len(), 256);
    let now = Duration::from_secs(4_000_000_000);
    let mut content = content;
    for entry in content.entries.values_mut() {
        entry.tickets = vec![content::Ticket { expires: now, early: false, bytes: vec![1; 24 << 10] }; 4];
    }
    let bytes = format::encode(&mut content);
    assert!(bytes.len() as u64 <= format::MAX_FILE && content.entries.len() > 10);
    assert_eq!(format::decode(&bytes).unwrap().entries, content.entries);
    // All are forgotten in time.
    content.tidy(Duration::from_secs(5_000_000_000));
    assert!(content.entries.is_empty());
}

#[test]
fn whoever_keeps_something_does_not_wait_for_the_disk() {
    let (_folder, path) = file();
    let store = FileSessionStore::open(&path);
    // The thread is at something that takes for ever: until it is told.
    let (go_on, told) = std::sync::mpsc::channel::<()>();
    let (begun, at_it) = std::sync::mpsc::channel();
    store.tell(move |_, _| {
        begun.send(()).unwrap();
        told.recv().ok()
    });
    at_it.recv().unwrap();
    for number in 0..2_000_u32 {
        let key = key(&(number % 7).to_string(), 0);
        store.put_token(&key, token(1));
        store.put_ticket(&key, ticket(2, false, false));
        store.put_group(&key, NamedGroup::X25519);
        store.remember(&key, &mut |remembered| remembered.window = u64::from(number));
    }
    assert_eq!(fs::metadata(&path).map(|metadata| metadata.len()).unwrap_or(0), 0, "it was not the thread");
    drop(go_on);
    // What found room is kept, in order; it is bounded.
    assert_eq!(store.take_token(&key("0", 0)), Some(token(1)));
    assert!(store.remembered(&key("0", 0)).unwrap().window < 2_000);
}

#[test]
fn the_last_of_it_waits_until_all_is_written() {
    let (_folder, path) = file();
    for number in 0..20 {
        let store = FileSessionStore::open(&path);
        store.put_token(&key("a", 0), token(number));
        drop(store);
        assert_eq!(FileSessionStore::open(&path).take_token(&key("a", 0)), Some(token(number)));
    }
}

#[test]
fn what_others_have_changed_meanwhile_stays() {
    let (_folder, path) = file();
    let (one, other) = (FileSessionStore::open(&path), FileSessionStore::open(&path));
    one.remember(&key("a", 0), &mut |remembered| remembered.window = 1);
    one.flush();
    other.remember(&key("a", 0), &mut |remembered| remembered.application = Bytes::from_static(b"x"));
    other.flush();
    one.remember(&key("a", 0), &mut |remembered| remembered.window += 1);
    let remembered = one.remembered(&key("a", 0)).unwrap();
    assert_eq!((remembered.window, &remembered.application[..]), (2, &b"x"[..]));
}
