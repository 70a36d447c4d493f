//! Automatic certificates from Pebble: issued, renewed, kept over a restart, and what happens when they cannot be had.

mod pebble;

use super::{Case, READY, Stage};
use crate::peers::install::Peer;
use crate::peers::process::Process;
use pebble::{Pebble, Ports, free_ports};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A life long enough for nothing to be renewed.
const LONG: u32 = 7 * 86_400;
/// A life short enough to see a renewal, which comes after 25 s at the latest.
const SHORT: u32 = 30;
/// For an order, on a busy machine.
const ORDER: Duration = Duration::from_secs(60);

pub(super) fn cases() -> Vec<Case> {
    type Act = fn(&mut Stage<'_>) -> Result<String, String>;
    let acts: [(&str, Act); 5] = [
        ("acme: renewal", renewal),
        ("acme: tls-alpn-01", |stage| issued(stage, "tls-alpn-01")),
        ("acme: http-01", |stage| issued(stage, "http-01")),
        ("acme: a name that leads elsewhere", wrong_name),
        ("acme: refusals", refusals),
    ];
    let case = |(name, act): (&str, Act)| {
        let mut case = Case::new(name, Peer::Pebble, act);
        case.needs.push(Peer::Aioquic);
        case
    };
    acts.into_iter().map(case).collect()
}

/// A server with a configuration file.
struct Site {
    ports: Ports,
    file: PathBuf,
}

impl Site {
    fn ports() -> Result<Ports, String> {
        free_ports().map(|[tls, http]| Ports { tls, http })
    }

    fn new(
        stage: &Stage<'_>,
        ports: Ports,
        directory: &str,
        hosts: &str,
        more: &str,
    ) -> Result<Self, String> {
        let file = stage.logs.join("godwit.toml");
        let Ports { tls, http } = ports;
        let (ca, folder) = (stage.authority().display(), stage.logs.join("acme"));
        let text = format!(
            "listen = [\"127.0.0.1:{tls}\"]\nredirect_http = [\"127.0.0.1:{http}\"]\n\
             [acme]\ndirectory = \"{directory}\"\nemail = \"admin@a.test\"\nca = \"{ca}\"\nfolder = \"{}\"\n{more}\n\
             [[site]]\nhosts = [{hosts}]\ntls = \"acme\"\n\
             [[site.route]]\npath = \"/*\"\nrespond = {{ status = 200, body = \"ok\" }}\n",
            folder.display(),
        );
        fs::write(&file, text).map_err(words)?;
        Ok(Self { ports, file })
    }

    fn start(&self, stage: &mut Stage<'_>) -> Result<Process, String> {
        let command = self.command(stage);
        let mut server = stage.start("server", &command)?;
        server.wait_for(READY, |text| text.contains(&format!(":{}", self.ports.tls)).then_some(()))?;
        Ok(server)
    }

    fn command(&self, stage: &Stage<'_>) -> Command {
        let mut command = stage.godwit(&["serve", "--config"]);
        command.arg(&self.file);
        command
    }

    /// The one certificate that is shown over the three protocols.
    fn shown(&self, stage: &mut Stage<'_>, root: &Path, name: &str) -> Result<String, String> {
        let mut show = python(&["show", "--name", name, &self.ports.tls.to_string(), "--ca"]);
        show.arg(root);
        let text = stage.run(&show)?;
        let hashes: Vec<_> = text.lines().filter_map(|line| line.split(' ').nth(1)).collect();
        match hashes.as_slice() {
            [one, two, three] if one == two && two == three => Ok((*one).to_owned()),
            _ => Err(format!("not the same certificate over all protocols:\n{text}")),
        }
    }
}

const ACCEPTED: &str = "accept_terms = true";

fn issued(stage: &mut Stage<'_>, challenge: &str) -> Result<String, String> {
    let ports = Site::ports()?;
    let pebble = Pebble::start(stage, ports, LONG)?;
    let more = format!("{ACCEPTED}\nchallenge = \"{challenge}\"");
    let site = Site::new(stage, ports, &pebble.directory, "\"a.test\", \"b.test\"", &more)?;
    let mut server = site.start(stage)?;
    server
        .wait_for_error(ORDER, |text| text.contains("certificate for a.test, b.test issued").then_some(()))?;
    let root = pebble.root.clone();
    let first = site.shown(stage, &root, "a.test")?;
    if site.shown(stage, &root, "b.test")? != first {
        return Err("b.test has another certificate".to_owned());
    }
    drop(server);
    drop(pebble);
    // Nobody is there to ask: what is stored is enough.
    let _server = site.start(stage)?;
    if site.shown(stage, &root, "a.test")? != first {
        return Err("after a restart it is another certificate".to_owned());
    }
    Ok("issued, the same over three protocols, kept over a restart".to_owned())
}

fn renewal(stage: &mut Stage<'_>) -> Result<String, String> {
    let ports = Site::ports()?;
    let pebble = Pebble::start(stage, ports, SHORT)?;
    let site = Site::new(stage, ports, &pebble.directory, "\"a.test\"", ACCEPTED)?;
    let mut server = site.start(stage)?;
    let times = |wanted: usize| {
        move |text: &str| (text.matches("certificate for a.test issued").count() >= wanted).then_some(())
    };
    server.wait_for_error(ORDER, times(1))?;
    let root = pebble.root.clone();
    let first = site.shown(stage, &root, "a.test")?;
    server.wait_for_error(ORDER, times(2))?;
    if site.shown(stage, &root, "a.test")? == first {
        return Err("the certificate was not renewed".to_owned());
    }
    // Without the server the old one stays.
    drop(pebble);
    server.wait_for_error(ORDER, |text| text.contains("the old one stays").then_some(()))?;
    site.shown(stage, &root, "a.test")?;
    Ok("renewed; with the server gone the old one stays".to_owned())
}

fn wrong_name(stage: &mut Stage<'_>) -> Result<String, String> {
    let ports = Site::ports()?;
    let pebble = Pebble::start(stage, ports, LONG)?;
    pebble.mislead(stage, "wrong.test")?;
    let site = Site::new(stage, ports, &pebble.directory, "\"wrong.test\"", ACCEPTED)?;
    let mut server = site.start(stage)?;
    let line = server.wait_for_error(ORDER, |text| {
        let (_, rest) = text.split_once("no certificate for wrong.test: ")?;
        rest.split_once('\n').map(|(line, _)| line.to_owned())
    })?;
    for part in ["the check of wrong.test failed", "port 443", "a self-signed one is shown meanwhile"] {
        if !line.contains(part) {
            return Err(format!("{part:?} is not in {line:?}"));
        }
    }
    Ok(line.chars().take(80).collect())
}

/// Servers that are not there, names that are not allowed, terms that are not accepted.
fn refusals(stage: &mut Stage<'_>) -> Result<String, String> {
    let ports = Site::ports()?;
    let [nobody] = free_ports()?;
    let site = Site::new(stage, ports, &format!("https://127.0.0.1:{nobody}/dir"), "\"a.test\"", ACCEPTED)?;
    let mut server = site.start(stage)?;
    server.wait_for_error(ORDER, |text| text.contains(": cannot ask https://127.0.0.1:").then_some(()))?;
    drop(server);

    let pebble = Pebble::start(stage, ports, LONG)?;
    let site = Site::new(stage, ports, &pebble.directory, "\"blocked.test\"", ACCEPTED)?;
    let mut server = site.start(stage)?;
    server.wait_for_error(ORDER, |text| text.contains("check the names of the site").then_some(()))?;
    drop(server);

    let site = Site::new(stage, ports, &pebble.directory, "\"a.test\"", "")?;
    let command = site.command(stage);
    let ended = stage.attempt(&command)?;
    if ended.status.success() || !ended.story.contains("accept_terms") {
        return Err(format!("terms that were not accepted: {}", ended.story));
    }
    Ok("no server, a blocked name, terms not accepted: each is said".to_owned())
}

fn python(arguments: &[&str]) -> Command {
    let mut command = Peer::Aioquic.script("certificate.py");
    command.args(arguments);
    command
}

fn words(error: std::io::Error) -> String {
    error.to_string()
}
