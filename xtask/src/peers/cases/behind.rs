//! nginx and Caddy behind `godwit serve --proxy`, configured as the documentation says.

use super::{Case, READY, Stage};
use crate::peers::install::Peer;
use crate::shell;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Instant;

const PAGE: &str = "docs/in-front-of-your-site.md";
const CONTENT: &str = "a page from behind\n";

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("docs: nginx behind godwit", Peer::Nginx, |stage| {
            behind(stage, "nginx", |stage, site| {
                let folder = stage.logs.display();
                let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                    .iter()
                    .map(|what| format!("{what}_temp_path {folder}/{what};\n"))
                    .collect();
                // What stands around a site in everybody's nginx.conf.
                let text = format!(
                    "daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{}}\n\
                     http {{\naccess_log {folder}/access.log;\n{temporary}{site}\n}}\n"
                );
                let mut command = Peer::Nginx.command();
                command.arg("-p").arg(&stage.logs).arg("-c").arg(write(stage, "nginx.conf", &text)?);
                Ok(command)
            })
        }),
        Case::new("docs: Caddy behind godwit", Peer::Caddy, |stage| {
            behind(stage, "caddyfile", |stage, site| {
                let mut command = Peer::Caddy.command();
                command.args(["run", "--adapter", "caddyfile", "--config"]);
                command.arg(write(stage, "Caddyfile", site)?);
                command.env("HOME", &stage.logs).env("XDG_DATA_HOME", &stage.logs);
                Ok(command)
            })
        }),
    ]
}

fn behind(
    stage: &mut Stage<'_>,
    language: &str,
    command: impl Fn(&Stage<'_>, &str) -> Result<Command, String>,
) -> Result<String, String> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.map_err(|error| format!("no free port: {error}"))?.port();
    fs::create_dir_all(stage.logs.join("www")).map_err(|error| error.to_string())?;
    write(stage, "www/index.html", CONTENT)?;
    let site = example(language)?
        .replace("/srv/www", &stage.logs.join("www").display().to_string())
        .replace(":8080", &format!(":{port}"));
    let _server = stage.start("behind", &command(stage, &site)?)?;
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if start.elapsed() > READY {
            return Err("the server behind does not listen".to_owned());
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let target = format!("http://localhost:{port}");
    let mut serve = stage.godwit(&["serve", "--quiet", "--proxy", &target]);
    let (_proxy, port) = stage.serve(&mut serve)?;
    for protocol in ["--http1.1", "--http2", "--http3"] {
        let url = format!("https://localhost:{port}/");
        let mut get = stage.godwit(&["get", protocol, "--no-alt-svc", &url, "--cacert"]);
        let seen = stage.run(get.arg(stage.authority()))?;
        if seen != CONTENT {
            return Err(format!("{protocol}: expected the page, came {seen:?}"));
        }
    }
    Ok("the page over three protocols".to_owned())
}

/// The first example of a language in the documentation.
fn example(language: &str) -> Result<String, String> {
    let path = shell::root().join(PAGE);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let opening = format!("```{language}\n");
    let example = text.split_once(&opening).and_then(|(_, rest)| rest.split_once("```"));
    example.map(|(example, _)| example.to_owned()).ok_or(format!("{PAGE} has no example for {language}"))
}

fn write(stage: &Stage<'_>, name: &str, text: &str) -> Result<std::path::PathBuf, String> {
    let path = stage.logs.join(name);
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}
