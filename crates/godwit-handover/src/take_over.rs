//! The newer generation's side of a hand-over.

use crate::Part;
use crate::protocol::{self, Line};
use godwit_engine::Handler;
use godwit_transport::Begun;
use std::io;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// Begins to receive on all `parts`, after the older generation has been told that everything is in place and has let
/// go. Parts for which nothing was inherited may be among them; names do not matter.
///
/// # Errors
/// If the older generation has given up waiting: it goes on itself, and this process should end. That it has died is no
/// error.
pub async fn take_over<H: Handler>(parts: &[Part<'_, H>]) -> io::Result<()> {
    let mut taking = Vec::new();
    for part in parts {
        let Some(predecessor) = part.generation.take_predecessor() else { continue };
        predecessor.set_nonblocking(true)?;
        taking.push((part.shards, BufReader::new(UnixStream::from_std(predecessor)?), Vec::new()));
    }
    // If the older one dies meanwhile, nobody receives, and there is nothing to wait for but its last words.
    for (_, predecessor, _) in &mut taking {
        let _ = say(predecessor, protocol::READY).await;
    }
    for (_, predecessor, begun) in &mut taking {
        *begun = handshakes(predecessor).await?;
    }
    for (shards, _, begun) in &taking {
        shards.iter().for_each(|shard| shard.begin_receiving(begun));
    }
    for (_, predecessor, _) in &mut taking {
        let _ = say(predecessor, protocol::SERVING).await;
    }
    Ok(())
}

async fn say(stream: &mut BufReader<UnixStream>, word: &str) -> io::Result<()> {
    stream.write_all(format!("{word}\n").as_bytes()).await
}

/// What the older generation says before `go`, or before it dies. An error if it has given up waiting.
async fn handshakes(stream: &mut BufReader<UnixStream>) -> io::Result<Vec<Begun>> {
    let (mut handshakes, mut line) = (Vec::new(), String::new());
    loop {
        line.clear();
        match stream.read_line(&mut line).await {
            Err(_) | Ok(0) => return Ok(handshakes),
            Ok(_) if line.as_bytes() == protocol::NEVER_MIND => return Err(protocol::too_late()),
            Ok(_) if line.trim_end() == protocol::GO => return Ok(handshakes),
            Ok(_) => handshakes.extend(match Line::read(line.trim_end()) {
                Some(Line::Begun(begun)) => Some(begun),
                _ => None,
            }),
        }
    }
}
