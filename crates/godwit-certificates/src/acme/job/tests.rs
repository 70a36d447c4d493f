//! A job without a network: files, messages, and a server that does not answer.

use std::sync::Mutex;

use super::*;

fn settings(folder: &tempfile::TempDir) -> Arc<Settings> {
    Arc::new(Settings {
        // Nobody listens on port 1.
        directory: "https://127.0.0.1:1/directory".to_owned(),
        accept_terms: true,
        folder: Some(folder.path().to_owned()),
        ..Settings::default()
    })
}

fn names() -> Vec<String> {
    vec!["a.test".to_owned(), "b.test".to_owned()]
}

fn listening() -> (Notices, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&lines);
    (Notices::new(move |line: &str| heard.lock().unwrap().push(line.to_owned())), lines)
}

/// A key and a certificate for the names that began `age` days ago and ends in `left` days.
fn issued(age: i64, left: i64) -> String {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(names()).unwrap();
    let at = |unix: i64| std::time::UNIX_EPOCH + Duration::from_secs(unix.unsigned_abs());
    params.not_before = at(unix_now() - age * 86_400).into();
    params.not_after = at(unix_now() + left * 86_400).into();
    format!("{}{}", key.serialize_pem(), params.self_signed(&key).unwrap().pem())
}

#[tokio::test]
async fn without_a_server_something_is_shown_and_the_reason_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let (notices, lines) = listening();
    let (mut job, slot) = Job::open(settings(&folder), &names(), &notices).unwrap();
    let store = Store::new(vec![Arc::clone(&slot)]).unwrap();
    assert!(slot.is_placeholder());
    let first = job.step(&slot, &store, &notices).await;
    let second = job.step(&slot, &store, &notices).await;
    assert!(second > first, "{first:?} {second:?}");
    let lines = lines.lock().unwrap().clone();
    assert!(
        lines[0].contains("no certificate for a.test, b.test yet: a self-signed one is shown"),
        "{lines:?}"
    );
    assert!(lines[1].contains("cannot ask https://127.0.0.1:1/directory: "), "{lines:?}");
    assert!(lines[1].contains("efused") && lines[1].contains("next attempt in 1"), "{lines:?}");
    let report = store.report().remove(0);
    assert!(report.is_placeholder && report.problem.is_some() && report.renewal.is_some());
}

#[tokio::test]
async fn a_stored_certificate_is_shown_without_asking() {
    let folder = tempfile::tempdir().unwrap();
    let (notices, lines) = listening();
    let place = Folder::open(&settings(&folder)).unwrap().certificate(&names());
    place.write(&issued(10, 80)).unwrap();
    let (mut job, slot) = Job::open(settings(&folder), &names(), &notices).unwrap();
    let store = Store::new(vec![Arc::clone(&slot)]).unwrap();
    assert_eq!(job.step(&slot, &store, &notices).await, Duration::from_secs(NAP.unsigned_abs()));
    assert!(!slot.is_placeholder());
    let renewal = store.report()[0].renewal.unwrap();
    let day = (renewal - unix_now()) / 86_400;
    assert!((46..=50).contains(&day), "{day}");
    assert!(lines.lock().unwrap().is_empty());

    // Another server that shares the folder has renewed it.
    place.write(&issued(0, 90)).unwrap();
    job.step(&slot, &store, &notices).await;
    assert!(slot.identity().facts.not_after > unix_now() + 89 * 86_400);
}

#[tokio::test]
async fn an_old_certificate_stays_while_the_server_is_down() {
    let folder = tempfile::tempdir().unwrap();
    let (notices, lines) = listening();
    let place = Folder::open(&settings(&folder)).unwrap().certificate(&names());
    place.write(&issued(80, 10)).unwrap();
    let (mut job, slot) = Job::open(settings(&folder), &names(), &notices).unwrap();
    let store = Store::new(vec![Arc::clone(&slot)]).unwrap();
    let chain = slot.identity().chain.clone();
    job.step(&slot, &store, &notices).await;
    assert_eq!(slot.identity().chain, chain);
    let lines = lines.lock().unwrap().clone();
    assert!(lines[0].contains("the old one stays, it ends on "), "{lines:?}");
}

#[test]
fn a_damaged_file_is_said_and_replaced_by_a_placeholder() {
    let folder = tempfile::tempdir().unwrap();
    let (notices, lines) = listening();
    Folder::open(&settings(&folder)).unwrap().certificate(&names()).write("scribble").unwrap();
    let (_, slot) = Job::open(settings(&folder), &names(), &notices).unwrap();
    assert!(slot.is_placeholder());
    assert!(lines.lock().unwrap()[0].contains("another is asked for"));
}

#[test]
fn waits_are_short_words() {
    let cases = [(40, "40 s"), (300, "5 min"), (3600, "60 min"), (21_600, "6 h")];
    for (seconds, text) in cases {
        assert_eq!(about(Duration::from_secs(seconds)), text);
    }
}
