//! Sends back what it gets, and can be exchanged for a newer version of itself without losing a connection:
//! `reload CERTIFICATE.pem KEY.pem ADDRESS:PORT SHARDS`. On SIGUSR2 it starts the program anew, with what the files
//! say by then, and ends when its last connection is over.
use std::error::Error;

#[cfg(target_os = "linux")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    use godwit::{Endpoint, Inheritance, ServerConfig, Successor};
    use std::process::{Command, id};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;
    use tokio::signal::unix::{SignalKind, signal};

    let program: Vec<String> = std::env::args().collect();
    let [_, certificate, key, addr, count] = &program[..] else {
        return Err("usage: reload CERTIFICATE.pem KEY.pem ADDRESS:PORT SHARDS".into());
    };
    let mut reload = signal(SignalKind::user_defined2())?;
    let inheritance = Inheritance::from_env()?;
    let generation = inheritance.as_ref().map_or(0, Inheritance::generation);
    let config = ServerConfig::from_pem_files(certificate, key).alpn(["echo"]).build()?;
    let mut builder = Endpoint::builder().server(config).bind(addr.parse()?);
    if let Some(inheritance) = inheritance {
        builder = builder.inherit(inheritance);
    }
    static SERVED: AtomicUsize = AtomicUsize::new(0);
    let shards = builder.run_shards(count.parse()?, None, |connection| {
        SERVED.fetch_add(1, Ordering::Relaxed);
        echo(connection)
    })?;
    shards.take_over().await?;
    println!("generation {generation}: process {} listens on {}", id(), shards.local_addr()?);
    loop {
        reload.recv().await;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(&program[1..]);
        match shards.hand_over(Successor::new(command)).await {
            Ok(_) => break,
            Err(error) => println!("generation {generation}: still serving: {error}"),
        }
    }
    println!("generation {generation}: handed over");
    let left = shards.drain(Duration::from_secs(3600)).await;
    tokio::task::spawn_blocking(move || shards.join()).await??;
    let served = SERVED.load(Ordering::Relaxed);
    println!("generation {generation}: over, {served} connections served, {left} cut off");
    Ok(())
}

#[cfg(target_os = "linux")]
async fn echo(connection: godwit::Connection) {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        tokio::task::spawn_local(async move {
            while let Some(chunk) = recv.read_chunk(usize::MAX).await? {
                send.write_chunk(chunk).await?;
            }
            send.finish()?;
            Ok::<_, std::io::Error>(())
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> Result<(), Box<dyn Error>> {
    Err("usage: on Linux only".into())
}
