//! Compressed responses.

use godwit_client::download::{Destination, Download};
use godwit_client::{Target, Versions};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, RANGE};

use crate::support::{Http3, Server};

#[tokio::test]
async fn responses_come_compressed_and_nobody_notices() {
    let server = Server::start(true).await;
    let http3 = Http3::start(&server);
    for (versions, url) in [
        (Versions::Http1, server.url("/coded")),
        (Versions::Http2, server.url("/coded")),
        (Versions::Http3, http3.url("/coded")),
    ] {
        let client = server.client().versions(versions).build().unwrap();
        let response = client.get(&url).send().await.unwrap();
        assert_eq!(response.headers().get(CONTENT_ENCODING), None, "{versions:?}");
        assert_eq!(response.headers().get(CONTENT_LENGTH), None, "{versions:?}");
        assert_eq!(response.text().await.unwrap(), "zip ".repeat(10_000), "{versions:?}");
    }
}

#[tokio::test]
async fn who_asks_for_codings_or_parts_gets_what_is_sent() {
    let server = Server::start(true).await;
    let client = server.client().build().unwrap();
    let own = client.get(server.url("/coded")).header(ACCEPT_ENCODING, "gzip").send().await.unwrap();
    assert_eq!(own.headers()[CONTENT_ENCODING], "gzip");
    assert!(own.bytes().await.unwrap().starts_with(&[0x1f, 0x8b]));
    let part = client.get(server.url("/coded")).header(RANGE, "bytes=0-").send().await.unwrap();
    assert_eq!(part.text().await.unwrap().len(), 40_000);
    let plain = server.client().decompression(false).build().unwrap();
    let plain = plain.get(server.url("/coded")).send().await.unwrap();
    assert_eq!(plain.headers().get(CONTENT_ENCODING), None);
    assert_eq!(plain.text().await.unwrap().len(), 40_000);
}

#[tokio::test]
async fn a_coding_that_is_none_is_told() {
    let server = Server::start(true).await;
    let client = server.client().build().unwrap();
    let error = client.get(server.url("/miscoded")).send().await.unwrap().text().await.unwrap_err();
    assert!(error.to_string().contains("is not coded as its Content-Encoding says"), "{error}");
}

#[tokio::test]
async fn downloads_are_kept_as_they_are_meant() {
    let server = Server::start(true).await;
    let client = server.client().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (compressed, length) in [(true, 40_000), (false, 40_000)] {
        let file = folder.path().join(format!("{compressed}"));
        let mut download = Download::new(Target::parse(&server.url("/coded")).unwrap());
        download.compressed = compressed;
        let (timing, outcome) = download.run(&client, Destination::File(file.clone()), &()).await;
        outcome.unwrap();
        assert_eq!((std::fs::read(file).unwrap().len(), timing.bytes), (length, 40_000));
    }
}
