//! A folder's answers.

use std::net::IpAddr;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, HeaderName, IF_NONE_MATCH, LOCATION, RANGE, VARY};
use http_body_util::BodyExt;

use super::super::memory;
use super::*;

/// `page.txt` of 10 bytes, `big.bin` of 200,000, `app.js` with a brotli and a gzip file beside it.
fn folder(fallback: Option<&str>) -> (tempfile::TempDir, Folder) {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| std::fs::write(directory.path().join(name), content).unwrap();
    write("page.txt", b"0123456789");
    write("big.bin", &vec![7; 200_000]);
    write("app.js", b"let plain = 1");
    write("app.js.br", b"brotli bytes");
    write("app.js.gz", b"gzip");
    write("home.htm", b"<p>home</p>");
    std::fs::create_dir(directory.path().join("sub")).unwrap();
    write("sub/default.html", b"<p>sub</p>");
    let settings = FolderSettings {
        folder: directory.path().to_owned(),
        index: vec!["default.html".to_owned(), "home.htm".to_owned()],
        precompressed: true,
        fallback: fallback.map(str::to_owned),
    };
    let folder = Folder::open(&settings).unwrap();
    (directory, folder)
}

async fn ask(folder: &Folder, path: &str, fields: &[(HeaderName, &str)]) -> (StatusCode, HeaderMap, Bytes) {
    let mut request = Request::get(path);
    for (name, value) in fields {
        request = request.header(name, *value);
    }
    let (head, body) = folder.respond(request.body(()).unwrap(), "/pre", None).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    if let Some(length) = head.headers.get(CONTENT_LENGTH) {
        assert_eq!(length.to_str().unwrap(), body.len().to_string(), "{path}");
    }
    (head.status, head.headers, body)
}

#[tokio::test]
async fn the_first_index_page_stands_for_its_folder() {
    let (_directory, folder) = folder(None);
    assert_eq!(ask(&folder, "/", &[]).await.2, "<p>home</p>");
    assert_eq!(ask(&folder, "/sub/", &[]).await.2, "<p>sub</p>");
    let (status, headers, _) = ask(&folder, "/sub?a", &[]).await;
    assert_eq!(status, StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(headers[LOCATION], "/pre/sub/?a", "with what was taken off the path");
}

#[tokio::test]
async fn the_client_chooses_among_files_compressed_beforehand() {
    let (directory, folder) = folder(None);
    let mut tags = Vec::new();
    for (accept, coding, content) in [
        ("gzip, br, zstd", Some("br"), "brotli bytes"),
        ("gzip, br;q=0.5", Some("gzip"), "gzip"),
        ("zstd", None, "let plain = 1"),
        ("gzip;q=0", None, "let plain = 1"),
    ] {
        let (status, headers, body) = ask(&folder, "/app.js", &[(ACCEPT_ENCODING, accept)]).await;
        assert_eq!((status, &body[..]), (StatusCode::OK, content.as_bytes()), "{accept}");
        assert_eq!(headers.get(CONTENT_ENCODING).map(|value| value.to_str().unwrap()), coding, "{accept}");
        assert_eq!(headers[CONTENT_TYPE], "text/javascript; charset=utf-8");
        assert_eq!(headers[VARY], "accept-encoding");
        tags.push(headers[ETAG].to_str().unwrap().to_owned());
    }
    assert!(tags[0] != tags[1] && tags[1] != tags[2] && tags[2] == tags[3], "{tags:?}");

    let known = [(ACCEPT_ENCODING, "br"), (IF_NONE_MATCH, tags[0].as_str())];
    let (status, headers, _) = ask(&folder, "/app.js", &known).await;
    assert_eq!(status, StatusCode::NOT_MODIFIED);
    assert_eq!(
        (&headers[ETAG], &headers[VARY]),
        (&tags[0].parse().unwrap(), &"accept-encoding".parse().unwrap())
    );
    let other = [(ACCEPT_ENCODING, "gzip"), (IF_NONE_MATCH, tags[0].as_str())];
    assert_eq!(ask(&folder, "/app.js", &other).await.0, StatusCode::OK);

    let part = [(ACCEPT_ENCODING, "br"), (RANGE, "bytes=0-5")];
    let (status, headers, body) = ask(&folder, "/app.js", &part).await;
    assert_eq!((status, &body[..]), (StatusCode::PARTIAL_CONTENT, &b"brotli"[..]));
    assert!(headers[CONTENT_RANGE] == "bytes 0-5/12" && headers[CONTENT_ENCODING] == "br");

    #[cfg(unix)]
    {
        let outside = tempfile::NamedTempFile::new().unwrap();
        std::os::unix::fs::symlink(outside.path(), directory.path().join("page.txt.br")).unwrap();
        let (_, _, body) = ask(&folder, "/page.txt", &[(ACCEPT_ENCODING, "br")]).await;
        assert_eq!(body, "0123456789", "a link that leads out is as good as none");
    }
    drop(directory);
}

#[tokio::test]
async fn large_files_come_whole_and_in_parts() {
    let (_directory, folder) = folder(None);
    let (_, _, body) = ask(&folder, "/big.bin", &[]).await;
    assert_eq!(body.len(), 200_000);
    let (status, headers, body) = ask(&folder, "/big.bin", &[(RANGE, "bytes=100000-")]).await;
    assert_eq!((status, body.len()), (StatusCode::PARTIAL_CONTENT, 100_000));
    assert_eq!(headers[CONTENT_RANGE], "bytes 100000-199999/200000");
    let (status, headers, _) = ask(&folder, "/big.bin", &[(RANGE, "bytes=200000-")]).await;
    assert_eq!(status, StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(headers[CONTENT_RANGE], "bytes */200000");
}

#[tokio::test]
async fn a_fallback_stands_for_what_is_not_there_but_not_for_what_is_hidden() {
    let (_directory, folder) = folder(Some("/home.htm"));
    for path in ["/app/users/1", "/nothing.js", "/sub/x"] {
        let (status, headers, body) = ask(&folder, path, &[]).await;
        assert_eq!((status, &body[..]), (StatusCode::OK, &b"<p>home</p>"[..]), "{path}");
        assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8");
    }
    assert_eq!(ask(&folder, "/page.txt", &[]).await.2, "0123456789");
    for path in ["/.git/config", "/../x", "/%2e%2e/x"] {
        assert_eq!(ask(&folder, path, &[]).await.0, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn a_head_has_the_length_and_no_body() {
    let (_directory, folder) = folder(None);
    let request = Request::head("/big.bin").body(()).unwrap();
    let response = folder.respond(request, "", None).await;
    assert_eq!(response.headers()[CONTENT_LENGTH], "200000");
    assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty());
}

#[tokio::test]
async fn whoever_takes_nothing_holds_no_more_than_there_is_room_for() {
    const ROOM: usize = 100_000;
    let (directory, mut folder) = folder(None);
    let page = |length: usize| (0..length).map(|n| (n % 251) as u8).collect::<Vec<u8>>();
    let pages = [("small.bin", page(60_000)), ("large.bin", page(150_000)), ("404.html", page(70_000))];
    for (name, content) in &pages {
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    let memory = FileMemory::of(ROOM);
    Arc::get_mut(&mut folder.0).unwrap().memory = memory.clone();
    let mut under_way = Vec::new();
    for path in ["/small.bin", "/large.bin", "/nothing", "/small.bin"].repeat(5) {
        let response = folder.respond(Request::get(path).body(()).unwrap(), "", None).await;
        let (parts, mut body) = response.into_parts();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(!first.is_empty(), "nobody is refused");
        under_way.push((parts.headers[CONTENT_LENGTH].clone(), first, body));
    }
    let held: usize = under_way.iter().map(|(_, first, _)| first.len()).sum();
    assert!(held <= ROOM + under_way.len() * memory::LEAST, "{held}");
    for (length, first, body) in under_way {
        let (_, content) = pages.iter().find(|(_, content)| length == content.len().to_string()).unwrap();
        assert!(content.starts_with(&first));
        let rest = body.collect().await.unwrap().to_bytes();
        assert_eq!(content.len() - first.len(), rest.len());
        assert!(content.ends_with(&rest));
    }
    assert_eq!(memory.left(), ROOM, "what was sent makes room");
}

#[tokio::test]
async fn a_file_that_changes_breaks_off_where_there_is_no_room() {
    for changed in [9_999, 10_001] {
        let (directory, mut folder) = folder(None);
        Arc::get_mut(&mut folder.0).unwrap().memory = FileMemory::of(0);
        std::fs::write(directory.path().join("short.bin"), [7; 10_000]).unwrap();
        let ask = || Request::get("/short.bin").header(RANGE, "bytes=5000-").body(()).unwrap();
        let whole = folder.respond(ask(), "", None).await.into_body();
        assert_eq!(whole.collect().await.unwrap().to_bytes(), [7; 5_000][..], "in pieces");
        let response = folder.respond(ask(), "", None).await;
        assert_eq!(response.headers()[CONTENT_LENGTH], "5000");
        std::fs::write(directory.path().join("short.bin"), vec![7; changed]).unwrap();
        assert!(response.into_body().collect().await.is_err(), "{changed}");
    }
}

/// Descriptors that lead into a folder.
#[cfg(target_os = "linux")]
fn descriptors_in(folder: &Path) -> usize {
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    all.filter(|one| std::fs::read_link(one.path()).is_ok_and(|target| target.starts_with(folder))).count()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_small_file_holds_no_descriptor_even_where_there_is_no_room() {
    let (directory, mut folder) = folder(None);
    Arc::get_mut(&mut folder.0).unwrap().memory = FileMemory::of(0);
    for (name, length) in [("small.bin", 60_000), ("404.html", 70_000)] {
        std::fs::write(directory.path().join(name), vec![7; length]).unwrap();
    }
    let root = directory.path().canonicalize().unwrap();
    for (path, held) in [("/small.bin", 0), ("/nothing", 0), ("/big.bin", 1)] {
        let mut body = folder.respond(Request::get(path).body(()).unwrap(), "", None).await.into_body();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap().len(), memory::LEAST);
        assert_eq!(descriptors_in(&root), held, "{path}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn large_files_hold_so_many_descriptors_in_all_and_for_one_network() {
    let (directory, mut folder) = folder(None);
    Arc::get_mut(&mut folder.0).unwrap().open = NetworkShares::of(8);
    let root = directory.path().canonicalize().unwrap();
    let mut under_way = Vec::new();
    for (address, held) in [("192.0.2.1", 2), ("192.0.2.2", 2), ("198.51.100.1", 4), ("127.0.0.1", 8)] {
        for _ in 0..10 {
            let mut request = Request::get("/big.bin").body(()).unwrap();
            request.extensions_mut().insert(Peer::new((address.parse::<IpAddr>().unwrap(), 1).into(), true));
            let response = folder.respond(request, "", None).await;
            assert_eq!(response.status(), StatusCode::OK, "nobody is refused");
            let mut body = response.into_body();
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), [7; 16 << 10][..]);
            under_way.push(body);
        }
        assert_eq!(descriptors_in(&root), held, "{address}");
    }
    for body in under_way {
        assert_eq!(body.collect().await.unwrap().to_bytes(), vec![7; 200_000 - (16 << 10)]);
    }
    assert_eq!(descriptors_in(&root), 0);
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_to_the_folder_can_be_exchanged() {
    use std::os::unix::fs::symlink;

    let directory = tempfile::tempdir().unwrap();
    let current = directory.path().join("current");
    for release in ["1", "2"] {
        let folder = directory.path().join(release);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("page.txt"), release).unwrap();
        std::fs::write(folder.join("big.bin"), release.repeat(200_000)).unwrap();
        symlink(current.join("page.txt"), folder.join("whole.txt")).unwrap();
    }
    symlink("1", &current).unwrap();
    let mut folder = Folder::open(&FolderSettings::new(&current)).unwrap();
    let shared = Arc::get_mut(&mut folder.0).unwrap();
    (shared.memory, shared.open) = (FileMemory::of(0), NetworkShares::of(1));
    for path in ["/page.txt", "/whole.txt"] {
        assert_eq!(ask(&folder, path, &[]).await.2, "1", "{path}");
    }
    let begun = ["/big.bin", "/big.bin", "/page.txt"].map(|path| {
        let folder = folder.clone();
        async move { folder.respond(Request::get(path).body(()).unwrap(), "", None).await.into_body() }
    });
    let [open, opened_anew, small] = begun;
    let begun = [open.await, opened_anew.await, small.await];
    symlink("2", directory.path().join("next")).unwrap();
    std::fs::rename(directory.path().join("next"), &current).unwrap();
    for path in ["/page.txt", "/whole.txt"] {
        assert_eq!(ask(&folder, path, &[]).await.2, "2", "{path}");
    }
    for body in begun {
        let sent = body.collect().await.unwrap().to_bytes();
        assert!(sent.iter().all(|byte| *byte == b'1'), "what was begun goes on");
    }
}

#[tokio::test]
async fn what_has_changed_is_seen_by_whoever_comes_after() {
    let (directory, folder) = folder(None);
    let ask = async |arrived, fields: &[(HeaderName, &str)]| {
        let mut request = Request::get("/page.txt");
        for (name, value) in fields {
            request = request.header(name, *value);
        }
        let response = folder.respond(request.body(()).unwrap(), "", Some(arrived)).await;
        let status = response.status();
        (status, response.into_body().collect().await.unwrap().to_bytes())
    };
    let first = instant_now();
    assert_eq!(ask(first, &[]).await.1, "0123456789");
    std::fs::write(directory.path().join("page.txt"), "other").unwrap();
    // Whether the one that came with the first is answered with what that was depends on the system's memory.
    let same = ask(first, &[]).await.1;
    assert!(same == "0123456789" || same == "other", "{same:?}");
    assert_eq!(ask(first, &[(RANGE, "bytes=1-2")]).await.0, StatusCode::PARTIAL_CONTENT);
    assert_eq!(ask(instant_now(), &[]).await.1, "other");
    std::fs::remove_file(directory.path().join("page.txt")).unwrap();
    assert_eq!(ask(instant_now(), &[]).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn memory_and_disk_give_the_same_answers() {
    let (_directory, folder) = folder(Some("/home.htm"));
    for path in ["/", "/page.txt", "/big.bin", "/app.js", "/sub", "/sub/", "/nothing", "/../x", "/.git"] {
        for coding in ["", "br"] {
            let request = Request::get(path).header(ACCEPT_ENCODING, coding).body(()).unwrap();
            let Some(known) = folder.0.answer(&request, "", Reach::Memory) else { continue };
            let disk = folder.0.answer(&request, "", Reach::Disk).unwrap();
            assert_eq!((known.status(), known.headers()), (disk.status(), disk.headers()), "{path}");
            let [known, disk] = [known, disk].map(|response| response.into_body().collect());
            let (known, disk) = (known.await.unwrap().to_bytes(), disk.await.unwrap().to_bytes());
            assert_eq!(known, disk, "{path}");
        }
    }
}
