//! The programs of `examples/outside`: others' programs as they would be, built on what the libraries show and run
//! against one another.
//!
//! They are a workspace of their own, because members of ours would see the features that other members have switched
//! on. Its lock file follows ours (`lock`) and its target folder is ours: outside crates are the same.

mod lock;
mod services;

use crate::peers::process::Process;
use crate::shell::{self, cargo};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

const FOLDER: &str = "examples/outside";
/// The most lines of code that a program may have.
const MOST_LINES: usize = 40;
/// For one program, however slow the machine is.
const LIMIT: Duration = Duration::from_secs(60);

/// Builds the programs and has them talk to one another.
pub(crate) fn run() -> Result<(), String> {
    let built = build()?;
    let folder = std::env::temp_dir().join(format!("godwit-outside-{}", std::process::id()));
    let site = folder.join("site");
    std::fs::create_dir_all(&site).map_err(|error| format!("{}: {error}", site.display()))?;
    let written = std::fs::write(site.join("page.txt"), "a page of a folder\n");
    let result = written.map_err(|error| error.to_string()).and_then(|()| talk(&built, &folder));
    let _ = std::fs::remove_dir_all(&folder);
    result
}

/// The folder of the built programs.
fn build() -> Result<PathBuf, String> {
    let (root, folder) = (shell::root(), shell::root().join(FOLDER));
    short(&folder.join("src/bin"))?;
    shell::run(cargo().args(["fmt", "--check"]).current_dir(&folder))?;
    lock::follow(&root.join("Cargo.lock"), &folder.join("Cargo.lock"))?;
    let target = shell::target_dir()?;
    let [option, profile] = shell::profile();
    let mut build = cargo();
    // `--examples`, of which there are none, switches the dev-dependencies on.
    build.args(["build", "--quiet", "--bins", "--examples", option, profile]).current_dir(&folder);
    shell::run(build.env("CARGO_TARGET_DIR", &target))?;
    shell::programs_of(profile)
}

/// Refuses programs that are long: what they do must be easy.
fn short(folder: &Path) -> Result<(), String> {
    let unreadable = |error: io::Error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let lines = code_lines(&std::fs::read_to_string(&file).map_err(unreadable)?);
        if lines >= MOST_LINES {
            return Err(format!("{}: {lines} lines of code, not under {MOST_LINES}", file.display()));
        }
    }
    Ok(())
}

/// Lines that are neither empty nor a comment alone.
fn code_lines(text: &str) -> usize {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

fn talk(built: &Path, folder: &Path) -> Result<(), String> {
    // The server's certificate is made by an authority that lies in there.
    let data = folder.join("data");
    let authority = data.join("godwit/ca.pem").display().to_string();
    let start = |name: &str, arguments: &[&str]| {
        let mut command = Command::new(built.join(name));
        command.args(arguments).env("XDG_DATA_HOME", &data);
        Process::start(&command, folder, name)
    };
    let output = |name: &str, arguments: &[&str]| {
        let ended = start(name, arguments)?.finish(LIMIT)?;
        if ended.status.success() { Ok(ended.output) } else { Err(ended.story) }
    };

    let site = folder.join("site").display().to_string();
    let mut front = start("front_door", &[&site])?;
    let address =
        front.wait_for(LIMIT, |text| Some(text.lines().next()?.strip_prefix("listening on ")?.to_owned()))?;
    let port = address.rsplit(':').next().unwrap_or_default();

    let (proxy, asked) = proxy().map_err(|error| format!("the proxy: {error}"))?;
    let proxy = format!("http://{proxy}");
    for (path, wanted) in [
        ("page.txt", "HTTP/2.0 200 OK\na page of a folder\n"),
        ("hello", "HTTP/2.0 200 OK\nhello, GET over HTTP/2.0 with 0 bytes\n"),
        ("none", "HTTP/2.0 404 Not Found\n"),
    ] {
        let url = format!("https://localhost:{port}/{path}");
        let answer = output("through_a_proxy", &[&proxy, &authority, &url])?;
        expect(answer.starts_with(wanted), "through_a_proxy", &answer)?;
        let tunnel = asked.try_recv().unwrap_or_default();
        expect(tunnel == format!("CONNECT localhost:{port} HTTP/1.1"), "the proxy was asked for", &tunnel)?;
    }

    let answer = output("own_controller", &[&authority, &address])?;
    let samples = answer.strip_prefix("200 OK with ").and_then(|rest| rest.split(' ').next()?.parse().ok());
    expect(samples.is_some_and(|samples: u64| samples > 0), "own_controller", &answer)?;

    let answer = output("own_observer", &[&authority, &address])?;
    let states = ["HandshakeComplete", "200 OK", "Closing"].map(|word| answer.find(word));
    expect(states.iter().all(Option::is_some) && states.is_sorted(), "own_observer", &answer)?;

    let answer = output("own_data_path", &[&authority, &address])?;
    let lost = answer.strip_prefix("200 OK\n").and_then(|rest| rest.split(' ').next()?.parse().ok());
    expect(lost.is_some_and(|lost: u64| lost > 0), "own_data_path", &answer)?;

    let identity = data.join("godwit");
    services::Stage {
        start: &start,
        output: &output,
        authority: &authority,
        identity: &identity,
        site: &folder.join("site"),
        proxy: &proxy,
    }
    .play()?;

    let ended = front.interrupt(LIMIT)?;
    expect(ended.status.success() && ended.output.ends_with("served\n"), "front_door", &ended.story)
}

fn expect(is_so: bool, who: &str, said: &str) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(format!("{who}: {said}")) }
}

/// A proxy for HTTPS at a port of its own, for as long as this process lives; the request line of each tunnel comes out
/// of the channel.
fn proxy() -> io::Result<(SocketAddr, Receiver<String>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (sender, asked) = channel();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let sender = sender.clone();
            thread::spawn(move || tunnel(client, &sender));
        }
    });
    Ok((address, asked))
}

/// Connects the client with whom it asks for (RFC 9110 section 9.3.6).
fn tunnel(mut client: TcpStream, asked: &Sender<String>) -> io::Result<()> {
    let mut from_client = BufReader::new(client.try_clone()?);
    let mut request = String::new();
    from_client.read_line(&mut request)?;
    let mut header = String::new();
    while from_client.read_line(&mut header)? > 2 {
        header.clear();
    }
    let _ = asked.send(request.trim_end().to_owned());
    let server = TcpStream::connect(request.split(' ').nth(1).unwrap_or_default())?;
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let (mut to_server, mut from_server) = (server.try_clone()?, server);
    thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    io::copy(&mut from_server, &mut client)?;
    client.shutdown(Shutdown::Write)
}

#[cfg(test)]
mod tests {
    use super::code_lines;

    #[test]
    fn comments_and_empty_lines_are_no_code() {
        assert_eq!(code_lines("//! What it is.\n\nfn main() {\n    // Why.\n    run(); // here\n}\n"), 3);
    }
}
