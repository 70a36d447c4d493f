//! What the ordinary tests do with the seeds of a fuzz target.

use super::mutate;
use std::fs;
use std::path::Path;
use std::sync::Once;

/// A fuzz target with its seeds.
pub struct Target {
    /// Its name, which is that of its folder in the corpus.
    pub name: &'static str,
    /// Returns whether the bytes were understood to their end.
    pub check: fn(&[u8]) -> bool,
    /// Name, bytes, and whether they are understood to their end.
    pub seeds: Vec<(&'static str, Vec<u8>, bool)>,
}

/// Every seed is understood as it is meant, and stands in `corpus`, the folder of all targets.
pub fn seeds(corpus: &Path, targets: &[Target]) {
    write(corpus, targets);
    for Target { name: target, check, seeds } in targets {
        let folder = corpus.join(target);
        for (name, bytes, understood) in seeds {
            assert_eq!(check(bytes), *understood, "{target}/{name}");
            let file = fs::read(folder.join(name)).ok();
            assert_eq!(file.as_ref(), Some(bytes), "{target}/{name} is checked in");
        }
    }
}

/// Every seed cut at every byte, what a fuzzer has found as it is, and inputs made of the corpus by chance, the same in
/// every run.
/// `rounds` is how many of these: [`mutate::rounds`], or fewer for what takes longer.
pub fn surprises(corpus: &Path, targets: &[Target], rounds: u64) {
    write(corpus, targets);
    for Target { name: target, check, seeds } in targets {
        let mut files: Vec<_> = fs::read_dir(corpus.join(target))
            .unwrap_or_else(|error| panic!("{target}: {error}"))
            .map(|entry| entry.expect("a readable folder").path())
            .collect();
        files.sort();
        assert!(files.len() >= seeds.len(), "{target}: the seeds are checked in");
        let inputs: Vec<Vec<u8>> =
            files.iter().map(|file| fs::read(file).expect("a readable file")).collect();
        for (file, input) in files.iter().zip(&inputs) {
            // Those that a fuzzer has found are many, and the beginnings of most of them are among them.
            let found = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("found-"));
            for end in if found { input.len() } else { 0 }..=input.len() {
                check(&input[..end]);
            }
        }
        let understood = (0..rounds).filter(|round| check(&mutate::mutated(&inputs, *round))).count();
        assert!(understood > 0, "{target}: some of them are understood");
    }
}

/// Writes the seeds where `GODWIT_WRITE_CORPUS` asks for it: once, and before any test reads them, as tests run side by
/// side.
fn write(corpus: &Path, targets: &[Target]) {
    static WRITTEN: Once = Once::new();
    if std::env::var_os("GODWIT_WRITE_CORPUS").is_none() {
        return;
    }
    WRITTEN.call_once(|| {
        for Target { name: target, seeds, .. } in targets {
            let folder = corpus.join(target);
            fs::create_dir_all(&folder).expect("the corpus can be written");
            for (name, bytes, _) in seeds {
                fs::write(folder.join(name), bytes).expect("the corpus can be written");
            }
        }
    });
}
