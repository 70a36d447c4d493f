//! Memory is scarce.

use super::{PATIENT, SHARDS, Watched, endpoint, site};
use http_body_util::BodyExt;
use std::time::Duration;
use tokio::task::JoinSet;

/// What the program may have of memory that is its own. Stacks count whole, whether they are used or not: they are small
/// here.
const MEMORY: u64 = 160 << 20;
const STACK: u64 = 128 << 10;
/// So many take nothing of a file for a while.
const CLIENTS: u64 = 60;
const BIG: u64 = 4 << 20;

/// All that they asked for is more than the server may have: it holds no more than the windows are.
#[tokio::test]
async fn slow_clients_of_large_files_fit_into_little_memory_and_get_all() {
    let config = format!(
        "listen = \"127.0.0.1:0\"\n{SHARDS}{PATIENT}[[site]]\nhosts = \"*\"\n[[site.route]]\nfiles = \"www\"\n"
    );
    let limit = format!("ulimit -d {}; RUST_MIN_STACK={STACK}", MEMORY >> 10);
    let mut watched = Watched::start(&limit, site(BIG), &config);
    let endpoint = endpoint();
    let mut answers = Vec::new();
    for _ in 0..CLIENTS {
        let client = watched.client(&endpoint).await;
        let answer = client.send(watched.request("/big")).await.unwrap();
        answers.push((client, answer));
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut readers = JoinSet::new();
    for (client, answer) in answers {
        readers.spawn(async move {
            let mut body = answer.into_body();
            let mut read = 0;
            while let Some(frame) = body.frame().await {
                read += frame.unwrap().into_data().map_or(0, |data| data.len() as u64);
            }
            drop(client);
            read
        });
    }
    while let Some(read) = readers.join_next().await {
        assert_eq!(read.unwrap(), BIG);
    }
    assert!(watched.server.process.try_wait().unwrap().is_none());
    assert_eq!(watched.said(), Vec::<String>::new());
}
