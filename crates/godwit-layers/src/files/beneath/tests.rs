//! Links that lead out, also while they are exchanged.

use std::io::Read;
use std::os::unix::fs::symlink;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// A folder to serve, with `real/page`, and one beside it with a `page` that nobody may see.
struct Folders {
    outside: tempfile::TempDir,
    root: PathBuf,
    _folder: tempfile::TempDir,
}

fn folders() -> Folders {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("page"), "secret").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("real")).unwrap();
    std::fs::write(root.join("real/page"), "page").unwrap();
    Folders { outside, root, _folder: folder }
}

/// What can be read at a path; `None` if nothing is there.
fn read(root: &Path, path: &str) -> Option<String> {
    match Beneath::open(root, Reach::Disk).unwrap().entry(Path::new(path)).unwrap()? {
        Entry::File(mut file, _) => Some(content(&mut file)),
        Entry::Folder => None,
    }
}

fn content(file: &mut File) -> String {
    let mut content = String::new();
    file.read_to_string(&mut content).unwrap();
    content
}

#[test]
fn links_are_followed_as_long_as_they_end_inside() {
    let Folders { outside, root, _folder } = folders();
    std::fs::create_dir(root.join("sub")).unwrap();
    let beside = format!("../../{}/real/page", root.file_name().unwrap().to_str().unwrap());
    for (to, link) in [
        ("real/page", "inside"),
        ("../real/page", "sub/up"),
        (root.join("real/page").to_str().unwrap(), "whole"),
        (&beside, "sub/out-and-back"),
        ("real", "folder"),
    ] {
        symlink(to, root.join(link)).unwrap();
    }
    for path in ["real/page", "inside", "sub/up", "whole", "sub/out-and-back", "folder/page"] {
        assert_eq!(read(&root, path).as_deref(), Some("page"), "{path}");
    }
    symlink(outside.path().join("page"), root.join("secret")).unwrap();
    symlink(outside.path(), root.join("out")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("/proc/self/root", root.join("magic")).unwrap();
    let long = "x".repeat(300);
    for path in ["secret", "out/page", "loop", "magic/etc/passwd", "real/page/x", "nothing", &long] {
        assert_eq!(read(&root, path), None, "{path}");
    }
    let beneath = Beneath::open(&root, Reach::Disk).unwrap();
    let is_folder = |path: &str| matches!(beneath.entry(Path::new(path)).unwrap(), Some(Entry::Folder));
    assert!(is_folder("") && is_folder("real") && is_folder("folder") && !is_folder("out"));
}

#[test]
fn neither_pipes_nor_sockets_are_opened() {
    let Folders { root, _folder, .. } = folders();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    assert_eq!((read(&root, "socket"), read(&root, "pipe")), (None, None));
}

#[test]
fn a_link_that_is_exchanged_meanwhile_leads_nowhere() {
    let Folders { outside, root, _folder } = folders();
    symlink(outside.path(), root.join("lure")).unwrap();
    let over = AtomicBool::new(false);
    let exchange = |from: &str, to: &str| std::fs::rename(root.join(from), root.join(to)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for (from, to) in [("real", "away"), ("lure", "real"), ("real", "lure"), ("away", "real")] {
                    exchange(from, to);
                }
            }
        });
        // Each way is taken often, however the threads take turns.
        let (mut found, mut missing) = (0_u32, 0_u32);
        let known = || {
            let beneath = Beneath::open(&root, Reach::Memory).ok()?;
            match beneath.entry(Path::new("real/page")).ok()?? {
                Entry::File(mut file, _) => Some(content(&mut file)),
                Entry::Folder => None,
            }
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            while found < 10_000 || missing < 10_000 {
                match read(&root, "real/page").as_deref() {
                    Some("page") => found += 1,
                    None => missing += 1,
                    Some(_) => panic!("it has led out, after {found} and {missing}"),
                }
                assert!(known().is_none_or(|page| page == "page"), "it has led out of what is in memory");
            }
        }));
        over.store(true, Ordering::Relaxed);
        outcome.unwrap();
    });
}

#[test]
fn what_was_looked_at_without_the_kernels_help_is_opened_without_links() {
    let Folders { outside, root, _folder } = folders();
    let beneath = Beneath::open(&root, Reach::Disk).unwrap();
    symlink("real", root.join("link")).unwrap();
    let plain = beneath.without_links(Path::new("link/page")).unwrap();
    assert_eq!(content(&mut beneath.open_by_name(&plain, unix::READ).unwrap()), "page");
    // A folder, and then the file, make way for a link.
    std::fs::rename(root.join("real"), root.join("old")).unwrap();
    symlink(outside.path(), root.join("real")).unwrap();
    assert!(is_absence(&beneath.open_by_name(&plain, unix::READ).unwrap_err()));
    std::fs::remove_file(root.join("real")).unwrap();
    std::fs::create_dir(root.join("real")).unwrap();
    symlink(outside.path().join("page"), root.join("real/page")).unwrap();
    assert!(is_absence(&beneath.open_by_name(&plain, unix::READ).unwrap_err()));
    assert!(beneath.open_by_name(Path::new(""), unix::LOOK).unwrap().metadata().unwrap().is_dir());
}
