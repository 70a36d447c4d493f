//! Files that are replaced in all the ways that there are.

use std::fs;

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use super::*;

struct Files {
    folder: TempDir,
    watched: Watched,
    shown: Identity,
}

const NOW: i64 = 1_795_294_367;

fn pem(days: i64) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["a.test".to_owned()]).unwrap();
    let at = |unix: i64| std::time::UNIX_EPOCH + Duration::from_secs(unix.unsigned_abs());
    params.not_before = at(NOW - 1000 * 86_400).into();
    params.not_after = at(NOW + days * 86_400).into();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

impl Files {
    fn new() -> Files {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("a.pem"), folder.path().join("a.key"));
        let (chain, private) = pem(90);
        fs::write(&certificate, chain).unwrap();
        fs::write(&key, private).unwrap();
        let (watched, shown) = Watched::open(&certificate, &key).unwrap();
        Files { folder, watched, shown }
    }

    fn write(&self, name: &str, contents: &str) {
        fs::write(self.folder.path().join(name), contents).unwrap();
    }

    /// Makes the files old enough for their times to tell whether they change.
    fn age(&mut self) {
        self.watched.fresh = false;
    }

    fn look(&mut self, told: bool) -> Look {
        let look = self.watched.look(&self.shown, told, NOW);
        match look {
            Look::New(identity) => {
                self.shown = *identity;
                Look::New(Box::new(from_files(&self.watched.certificate, &self.watched.key).unwrap()))
            }
            other => other,
        }
    }
}

#[test]
fn a_change_is_shown_when_it_has_stood_still() {
    let mut files = Files::new();
    files.age();
    assert!(matches!(files.look(false), Look::Same));
    let (chain, key) = pem(90);
    files.write("a.pem", &chain);
    assert!(matches!(files.look(false), Look::Settling));
    files.write("a.key", &key);
    assert!(matches!(files.look(false), Look::Settling), "the key has just changed");
    assert!(matches!(files.look(false), Look::New(_)));
    files.age();
    assert!(matches!(files.look(false), Look::Same));
}

#[test]
fn a_change_that_was_told_is_shown_at_once() {
    let mut files = Files::new();
    let (chain, key) = pem(90);
    files.write("a.pem", &chain);
    files.write("a.key", &key);
    assert!(matches!(files.look(true), Look::New(_)));
    assert!(matches!(files.look(true), Look::Same));
}

#[test]
fn a_pair_that_does_not_fit_is_tried_again_and_said_once() {
    let mut files = Files::new();
    let (chain, key) = pem(90);
    let old = files.shown.chain.clone();
    files.write("a.pem", &chain);
    let looks: Vec<_> = (0..6).map(|_| files.look(false)).collect();
    let said: Vec<_> = looks
        .iter()
        .filter_map(|look| match look {
            Look::Bad(problem) => Some(problem),
            _ => None,
        })
        .collect();
    assert_eq!(said.len(), 1, "{looks:?}");
    assert!(said[0].contains("does not match"), "{}", said[0]);
    assert_eq!(files.shown.chain, old);
    files.write("a.key", &key);
    assert!(matches!(files.look(false), Look::Settling));
    assert!(matches!(files.look(false), Look::New(_)), "as soon as it fits");
}

#[test]
fn a_file_that_is_not_whole_is_not_shown() {
    let mut files = Files::new();
    let (chain, key) = pem(90);
    let (intermediate, _) = pem(90);
    files.write("a.key", &key);
    files.write("a.pem", &format!("{chain}{}", &intermediate[..intermediate.len() / 2]));
    assert!(matches!(files.look(true), Look::Settling));
    files.write("a.pem", &format!("{chain}{intermediate}"));
    assert!(matches!(files.look(true), Look::New(_)));
    assert_eq!(files.shown.chain.len(), 2);
    fs::remove_file(files.folder.path().join("a.key")).unwrap();
    let looks: Vec<_> = (0..5).map(|_| files.look(false)).collect();
    assert!(
        looks.iter().any(|look| matches!(look, Look::Bad(problem) if problem.contains("a.key"))),
        "{looks:?}"
    );
    files.write("a.key", &key);
    files.look(false);
    assert!(matches!(files.look(false), Look::Same), "the pair that is shown has come back");
}

#[test]
fn a_valid_certificate_is_not_exchanged_for_an_expired_one() {
    let mut files = Files::new();
    let (chain, key) = pem(-1);
    files.write("a.pem", &chain);
    files.write("a.key", &key);
    let looks: Vec<_> = (0..5).map(|_| files.look(true)).collect();
    assert!(
        looks
            .iter()
            .any(|look| matches!(look, Look::Bad(problem) if problem.contains("expired on 2026-11-20")))
    );
    assert!(!looks.iter().any(|look| matches!(look, Look::New(_))));
}

#[cfg(unix)]
#[test]
fn links_to_other_files_are_changes() {
    let mut files = Files::new();
    let folder = files.folder.path().to_owned();
    let (chain, key) = pem(90);
    files.write("2.pem", &chain);
    files.write("2.key", &key);
    for name in ["pem", "key"] {
        let (link, target) = (folder.join(format!("link.{name}")), folder.join(format!("2.{name}")));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        fs::rename(&link, folder.join(format!("a.{name}"))).unwrap();
    }
    files.age();
    assert!(matches!(files.look(false), Look::Settling));
    assert!(matches!(files.look(false), Look::New(_)));
}
