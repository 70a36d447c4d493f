//! The servers: what they are called, which versions of HTTP they speak, and how each is started.

use super::super::about::About;
use super::super::options::Options;
use super::super::process::{Server, on_core};
use super::configuration::{self, Content};
use super::material::Material;
use crate::peers::install::find_program;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
    Three,
}

impl Version {
    /// As `godwit perf http` has it.
    pub(super) const fn option(self) -> &'static str {
        match self {
            Version::One => "--h1",
            Version::Two => "--h2",
            Version::Three => "--h3",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Version::One => "HTTP/1.1",
            Version::Two => "HTTP/2",
            Version::Three => "HTTP/3",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Software {
    Godwit,
    Nginx,
    Caddy,
    Hyper,
    QuicGo,
}

/// Any port that is free.
const ANY: &str = "127.0.0.1:0";

const ALL: [Software; 5] =
    [Software::Godwit, Software::Nginx, Software::Caddy, Software::Hyper, Software::QuicGo];

/// A server as it is measured.
#[derive(Debug, Clone)]
pub(super) struct Program {
    /// As tables have it.
    pub(super) name: String,
    pub(super) software: Software,
    pub(super) version: Version,
    file: PathBuf,
}

/// What can be measured here.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) there: Vec<Program>,
    /// The nginx that is behind those that pass requests on.
    pub(super) nginx: Option<PathBuf>,
    /// A line for each that is not there.
    pub(super) missing: Vec<String>,
}

/// Looks for everything that is wanted.
pub(super) fn there(folder: &Path, about: &About, options: &Options) -> Programs {
    let nginx = find_program("nginx");
    let mut programs = Programs { there: Vec::new(), nginx, missing: Vec::new() };
    for software in ALL.into_iter().filter(|software| options.takes_program(software.name())) {
        match software.file(folder) {
            Some(file) => programs.there.extend(of(software, &file, about)),
            None => {
                let name = software.name();
                programs
                    .missing
                    .push(format!("{name} is not there ({}), and is left out", software.source()));
            }
        }
    }
    if programs.nginx.is_none() {
        programs
            .missing
            .push("nothing is passed on: the server behind is an nginx, which is not there".to_owned());
    }
    programs
}

/// A program for each version of HTTP that it speaks.
fn of(software: Software, file: &Path, about: &About) -> Vec<Program> {
    let name = software.with_version(file, about);
    let one = |version: Version| Program {
        name: format!("{name}, {}", version.name()),
        software,
        version,
        file: file.to_owned(),
    };
    software.versions().iter().copied().map(one).collect()
}

impl Software {
    const fn name(self) -> &'static str {
        match self {
            Software::Godwit => "godwit",
            Software::Nginx => "nginx",
            Software::Caddy => "Caddy",
            Software::Hyper => "hyper",
            Software::QuicGo => "quic-go",
        }
    }

    /// Where it comes from.
    const fn source(self) -> &'static str {
        match self {
            Software::Nginx | Software::Caddy => "Debian has a package of it",
            _ => "`cargo xtask bench --build-only DIR` builds it",
        }
    }

    const fn versions(self) -> &'static [Version] {
        match self {
            Software::Godwit | Software::Caddy => &[Version::One, Version::Two, Version::Three],
            Software::Nginx | Software::Hyper => &[Version::One, Version::Two],
            Software::QuicGo => &[Version::Three],
        }
    }

    fn file(self, folder: &Path) -> Option<PathBuf> {
        let built = |name: &str| Some(folder.join(name)).filter(|file| file.is_file());
        match self {
            Software::Godwit => built("godwit"),
            Software::Nginx => find_program("nginx"),
            Software::Caddy => find_program("caddy"),
            Software::Hyper => built("peer-tcp"),
            Software::QuicGo => built("peer-quic-go"),
        }
    }

    fn with_version(self, file: &Path, about: &About) -> String {
        let said = |word: &str| {
            let output = Command::new(file).arg(word).output();
            output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default()
        };
        let version = match self {
            Software::Godwit => return self.name().to_owned(),
            Software::Nginx => number(&String::from_utf8_lossy(&said("-v"))),
            Software::Caddy => number(&String::from_utf8_lossy(&said("version"))),
            Software::Hyper => Some(about.version("hyper").to_owned()),
            Software::QuicGo => Some(about.version("quic-go").to_owned()),
        };
        version.map_or_else(|| self.name().to_owned(), |version| format!("{} {version}", self.name()))
    }
}

/// The first number of a version in what a program says.
fn number(text: &str) -> Option<String> {
    let rest = text.get(text.find(|letter: char| letter.is_ascii_digit())?..)?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
    rest.get(..end).map(str::to_owned)
}

impl Program {
    /// Whether it can answer with this.
    pub(super) fn takes(&self, content: Content<'_>) -> bool {
        content == Content::Files || !matches!(self.software, Software::Hyper | Software::QuicGo)
    }

    /// What to ask for so many bytes, if it is no file.
    pub(super) fn path(&self, bytes: usize) -> Option<String> {
        (self.software == Software::Hyper).then(|| bytes.to_string())
    }

    /// Starts it on core 0.
    pub(super) fn start(&self, material: &Material, content: Content<'_>) -> Result<Server, String> {
        match self.software {
            Software::Godwit => {
                // What it prints names the upstream, too.
                let address = free()?;
                Server::told(on_core("0", &self.file, &self.words(material, content, &address)), &address)
            }
            Software::Hyper => Server::telling(on_core("0", &self.file, &self.words(material, content, ANY))),
            Software::QuicGo => {
                let mut command = on_core("0", &self.file, &self.words(material, content, ANY));
                command.env("GOMAXPROCS", "1");
                Server::telling(command)
            }
            Software::Nginx => {
                let address = free()?;
                let text = configuration::nginx(material, &address, self.version == Version::Two, content);
                nginx("0", &self.file, material, &address, &text)
            }
            Software::Caddy => {
                let address = free()?;
                let text = configuration::caddy(material, &address, content);
                let file = material.configuration(&format!("Caddyfile-{}", port(&address)), &text)?;
                let words = ["run", "--adapter", "caddyfile", "--config"].map(str::to_owned);
                let words = [&words[..], &[file.to_string_lossy().into_owned()]].concat();
                let mut command = on_core("0", &self.file, &words);
                for name in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
                    command.env(name, material.folder());
                }
                command.env("GOMAXPROCS", "1");
                Server::told(command, &address)
            }
        }
    }

    /// The words of those that are told everything by words.
    fn words(&self, material: &Material, content: Content<'_>, listen: &str) -> Vec<String> {
        let site = material.site().to_string_lossy().into_owned();
        let mut words: Vec<String> = match (self.software, content) {
            (Software::Godwit, Content::Files) => vec!["serve".into(), site],
            (Software::Godwit, Content::From(address)) => {
                vec!["serve".into(), "--proxy".into(), format!("http://{address}")]
            }
            (Software::QuicGo, _) => vec!["h3-server".into(), "--root".into(), site],
            (_, _) if self.version == Version::One => vec!["h1-server".into()],
            (_, _) => vec!["h2-server".into()],
        };
        if self.software == Software::Godwit {
            words.extend(["--quiet", "--shards", "1"].map(str::to_owned));
        }
        let file = |file: &Path| file.to_string_lossy().into_owned();
        words.extend(["--listen".into(), listen.to_owned()]);
        words.extend(["--cert".into(), file(&material.certificate), "--key".into(), file(&material.key)]);
        words
    }
}

/// Starts the nginx behind on core 1, where the requests come from.
pub(super) fn upstream(file: &Path, material: &Material, bytes: usize) -> Result<Server, String> {
    let address = free()?;
    nginx("1", file, material, &address, &configuration::upstream(material, &address, bytes))
}

fn nginx(core: &str, file: &Path, material: &Material, address: &str, text: &str) -> Result<Server, String> {
    let name = format!("nginx-{}.conf", port(address));
    let configuration = material.configuration(&name, text)?.to_string_lossy().into_owned();
    let words = ["-e".to_owned(), "stderr".to_owned(), "-c".to_owned(), configuration];
    Server::told(on_core(core, file, &words), address)
}

/// An address that nobody has.
fn free() -> Result<String, String> {
    let free = TcpListener::bind(ANY).and_then(|listener| listener.local_addr());
    free.map(|address| address.to_string()).map_err(|error| format!("no free port: {error}"))
}

fn port(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(_, port)| port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(software: Software, version: Version, content: Content<'_>) -> String {
        let program = Program { name: String::new(), software, version, file: PathBuf::new() };
        program.words(&Material::at("/m".into(), "/c".as_ref()), content, ANY).join(" ")
    }

    #[test]
    fn each_is_told_in_its_own_words() {
        let rest = "--listen 127.0.0.1:0 --cert /c/leaf.pem --key /c/leaf.key";
        let words = |software, version| words(software, version, Content::Files);
        assert_eq!(words(Software::Godwit, Version::Two), format!("serve /m/site --quiet --shards 1 {rest}"));
        assert_eq!(words(Software::Hyper, Version::One), format!("h1-server {rest}"));
        assert_eq!(words(Software::Hyper, Version::Two), format!("h2-server {rest}"));
        assert_eq!(words(Software::QuicGo, Version::Three), format!("h3-server --root /m/site {rest}"));
    }

    #[test]
    fn godwit_passes_on_what_the_upstream_has() {
        let words = words(Software::Godwit, Version::Three, Content::From("127.0.0.1:2"));
        assert!(words.starts_with("serve --proxy http://127.0.0.1:2 --quiet --shards 1 "), "{words}");
    }

    #[test]
    fn each_speaks_its_versions_and_three_pass_requests_on() {
        let all: Vec<Program> = ALL
            .into_iter()
            .flat_map(|software| of(software, Path::new("/nowhere"), &About::default()))
            .collect();
        assert_eq!(all.len(), 11);
        assert_eq!(all.iter().filter(|program| program.takes(Content::From("a"))).count(), 8);
        let hyper = all.iter().find(|program| program.software == Software::Hyper).unwrap();
        assert_eq!(hyper.path(100).as_deref(), Some("100"));
        assert_eq!(hyper.name, "hyper of unknown version, HTTP/1.1");
    }

    #[test]
    fn what_is_not_there_has_a_line() {
        let options = Options::read(&["--http", "--only", "hyper"]).unwrap();
        let programs = there(Path::new("/nowhere"), &About::default(), &options);
        assert!(programs.there.is_empty());
        let missing = |name: &str| programs.missing.iter().any(|line| line.starts_with(name));
        assert!(missing("godwit is not there (") && missing("hyper is not there ("));
        assert!(!missing("quic-go"));
    }

    #[test]
    fn versions_stand_in_what_programs_say() {
        assert_eq!(number("nginx version: nginx/1.22.1\n").as_deref(), Some("1.22.1"));
        assert_eq!(number("v2.8.4 h1:q3pe\n").as_deref(), Some("2.8.4"));
        assert_eq!(number("unknown"), None);
    }
}
