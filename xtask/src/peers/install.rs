//! Installing the peers: what is there is left alone, the rest comes from the package registries at the
//! versions that `peers/` pins.

use crate::shell::{self, cargo};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A program of another stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    Aioquic,
    Caddy,
    Chromium,
    /// grpc-go.
    GrpcGo,
    /// The `msquic` crate on our own library.
    Msquic,
    Nginx,
    /// An ACME server. Its programs are two, see [`pebble_program`].
    Pebble,
    /// For the interop runner's cases only.
    Quiche,
    QuicGo,
    Quinn,
    /// For the interop runner's cases only.
    S2n,
    /// tonic on Godwit.
    Tonic,
}

const ALL: [Peer; 10] = [
    Peer::QuicGo,
    Peer::GrpcGo,
    Peer::Pebble,
    Peer::Aioquic,
    Peer::Quinn,
    Peer::Msquic,
    Peer::Chromium,
    Peer::Nginx,
    Peer::Caddy,
    Peer::Tonic,
];
/// Under which names browsers of the Chromium family are installed.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

impl Peer {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Peer::Aioquic => "aioquic",
            Peer::Caddy => "Caddy",
            Peer::Chromium => "Chromium",
            Peer::GrpcGo => "grpc-go",
            Peer::Msquic => "msquic",
            Peer::Nginx => "nginx",
            Peer::Pebble => "Pebble",
            Peer::Quiche => "quiche",
            Peer::QuicGo => "quic-go",
            Peer::Quinn => "quinn",
            Peer::S2n => "s2n-quic",
            Peer::Tonic => "tonic",
        }
    }

    /// The program with the command line that `peers/README.md` describes; for the browser, what drives it.
    pub(crate) fn command(self) -> Command {
        match self {
            Peer::Aioquic => self.script("peer.py"),
            Peer::Chromium => self.script("chromium.mjs"),
            Peer::Caddy => Command::new("caddy"),
            Peer::GrpcGo => Command::new(go_program("grpc-go-peer")),
            Peer::Msquic => Command::new(msquic_program()),
            Peer::Nginx => Command::new("nginx"),
            Peer::Pebble => Command::new(pebble_program("pebble")),
            Peer::Quiche => Command::new(quiche_target().join("release/peer-quiche")),
            Peer::QuicGo => Command::new(go_program("quic-go-peer")),
            Peer::Quinn => Command::new(quinn_program()),
            Peer::S2n => Command::new(s2n_target().join("release/peer-s2n")),
            Peer::Tonic => Command::new(tonic_program()),
        }
    }

    /// A script from the peer's folder, run by its interpreter; the compiled peers have none.
    pub(crate) fn script(self, name: &str) -> Command {
        let (program, folder) = match self {
            Peer::Chromium => (PathBuf::from("node"), "node"),
            _ => (venv().join("bin/python"), "python"),
        };
        let mut command = Command::new(program);
        command.arg(peers().join(folder).join(name));
        command
    }

    fn install(self) -> Result<(), String> {
        match self {
            Peer::Aioquic => install_aioquic(),
            Peer::Caddy => from_debian(&["caddy"], "caddy").map(drop),
            Peer::Chromium => install_playwright(),
            Peer::GrpcGo => install_go("grpc", "grpc-go-peer"),
            Peer::Msquic => install_msquic(),
            Peer::Nginx => from_debian(&["nginx"], "nginx-light").map(drop),
            Peer::Pebble => install_pebble(),
            Peer::Quiche => install_quiche(),
            Peer::QuicGo => install_go("go", "quic-go-peer"),
            Peer::Quinn => build_rust_as(shell::profile()[1], "rust", quinn_target()),
            Peer::S2n => build_rust("s2n", s2n_target()),
            Peer::Tonic => install_tonic(),
        }
    }
}

/// What is there and what is not.
pub(crate) struct Installed {
    missing: Vec<(Peer, String)>,
    pub(crate) browser: Option<PathBuf>,
}

impl Installed {
    /// Installs these and no browser.
    pub(crate) fn prepare_only(peers: &[Peer]) -> Self {
        let missing = install_each(peers);
        for (peer, why) in &missing {
            eprintln!("xtask: peer {}: MISSING, its tests are skipped: {why}", peer.name());
        }
        Self { missing, browser: None }
    }

    /// Installs what can be installed.
    pub(crate) fn prepare() -> Self {
        let mut missing = install_each(&ALL);
        let browser = browser();
        if let Err(why) = &browser {
            missing.push((Peer::Chromium, why.clone()));
        }
        for (peer, why) in &missing {
            eprintln!("xtask: peer {}: MISSING, its tests are skipped: {why}", peer.name());
        }
        Self { missing, browser: browser.ok() }
    }

    /// Why a peer cannot be tested against, if that is so. Without quinn nothing can be: its program makes
    /// the certificates and files.
    pub(crate) fn why_missing(&self, peer: Peer) -> Option<&str> {
        let why =
            |wanted| self.missing.iter().find(|(missing, _)| *missing == wanted).map(|(_, why)| why.as_str());
        why(peer).or_else(|| why(Peer::Quinn))
    }

    /// In CI nothing may be missing.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        let Some((peer, why)) = self.missing.first().filter(|_| std::env::var_os("CI").is_some()) else {
            return Ok(());
        };
        Err(format!("{} is not installed, and in CI no peer may be skipped: {why}", peer.name()))
    }
}

/// Installs each of them, and returns those that could not be, with the reasons.
fn install_each(peers: &[Peer]) -> Vec<(Peer, String)> {
    let mut missing = Vec::new();
    for peer in peers {
        match peer.install() {
            Ok(()) => eprintln!("xtask: peer {}: ready", peer.name()),
            Err(why) => missing.push((*peer, why)),
        }
    }
    missing
}

fn peers() -> PathBuf {
    shell::root().join("peers")
}

fn venv() -> PathBuf {
    peers().join(".cache/venv")
}

fn go_program(name: &str) -> PathBuf {
    peers().join(".cache/bin").join(name)
}

fn msquic_target() -> PathBuf {
    peers().join(".cache/msquic-target")
}

fn msquic_program() -> PathBuf {
    let [_, profile] = shell::profile();
    msquic_target().join(if profile == "dev" { "debug" } else { profile }).join("peer-msquic")
}

/// `pebble`, or `pebble-challtestsrv`, which answers its questions about names.
pub(crate) fn pebble_program(name: &str) -> PathBuf {
    peers().join(".cache/bin").join(name)
}

/// Ours, for half of what it depends on we depend on too.
fn quinn_target() -> PathBuf {
    static TARGET: OnceLock<PathBuf> = OnceLock::new();
    TARGET.get_or_init(|| shell::target_dir().unwrap_or_else(|_| shell::root().join("target"))).clone()
}

/// Built as our tests are, so that it shares even more with them.
fn quinn_program() -> PathBuf {
    shell::programs_of(shell::profile()[1]).unwrap_or_else(|_| quinn_target()).join("peer")
}

fn s2n_target() -> PathBuf {
    peers().join(".cache/s2n-target")
}

fn quiche_target() -> PathBuf {
    peers().join(".cache/quiche-target")
}

/// It is linked with our library, which is built first.
fn install_msquic() -> Result<(), String> {
    let [option, profile] = shell::profile();
    shell::run(cargo().args(["build", "--quiet", option, profile, "--package", "godwit-libmsquic"]))?;
    let library = shell::programs_of(profile)?.join("libmsquic.so");
    let mut build = cargo();
    build.args(["build", option, profile, "--quiet", "--locked"]).current_dir(peers().join("msquic"));
    shell::run(build.env("CARGO_TARGET_DIR", msquic_target()).env("GODWIT_MSQUIC_LIBRARY", library))
}

/// The Go tool has a cache of its own: building again costs nothing.
fn install_go(folder: &str, program: &str) -> Result<(), String> {
    needs("go", "the Go toolchain")?;
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(go_program(program)).arg(".").current_dir(peers().join(folder));
    shell::run(&mut build)
}

/// Godwit is half of it: it is built as our tests are.
fn install_tonic() -> Result<(), String> {
    shell::run(crate::grpc::command("build").arg("--bins"))
}

fn tonic_program() -> PathBuf {
    shell::programs_of(shell::profile()[1]).unwrap_or_else(|_| quinn_target()).join("grpc_peer")
}

/// As it comes, at the version in `peers/acme`.
fn install_pebble() -> Result<(), String> {
    needs("go", "the Go toolchain")?;
    let module = "github.com/letsencrypt/pebble/v2/cmd";
    for program in ["pebble", "pebble-challtestsrv"] {
        let mut build = Command::new("go");
        build.args(["build", "-o"]).arg(pebble_program(program)).arg(format!("{module}/{program}"));
        shell::run(build.current_dir(peers().join("acme")))?;
    }
    Ok(())
}

/// The program of a folder, built as Godwit is built for figures.
pub(crate) fn build_for_figures(folder: &str) -> Result<PathBuf, String> {
    let (target, program) = match folder {
        "rust" => (quinn_target(), "peer".to_owned()),
        // They share their dependencies with that of quinn, or with Godwit.
        "polled" => (quinn_target(), "peer-polled".to_owned()),
        "tcp" => (quinn_target(), "peer-tcp".to_owned()),
        "s2n" => (s2n_target(), "peer-s2n".to_owned()),
        other => (peers().join(format!(".cache/{other}-target")), format!("peer-{other}")),
    };
    if matches!(folder, "quiche" | "tquic") {
        needs_boringssl()?;
    }
    build_rust_as("dist", folder, target.clone())?;
    Ok(target.join("dist").join(program))
}

/// quic-go's program.
pub(crate) fn build_quic_go() -> Result<PathBuf, String> {
    install_go("go", "quic-go-peer")?;
    Ok(go_program("quic-go-peer"))
}

/// The program of a folder that is a workspace of its own.
fn build_rust(folder: &str, target: PathBuf) -> Result<(), String> {
    build_rust_as("release", folder, target)
}

fn build_rust_as(profile: &str, folder: &str, target: PathBuf) -> Result<(), String> {
    let mut build = cargo();
    build.args(["build", "--profile", profile, "--quiet", "--locked"]).current_dir(peers().join(folder));
    if profile == "release" {
        // It optimises the crates that it names and no others; quiche and the like are not among them.
        build.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
    }
    shell::run(build.env("CARGO_TARGET_DIR", target))
}

/// BoringSSL comes with it: cmake builds it, and bindgen, which needs libclang, reads its headers.
fn install_quiche() -> Result<(), String> {
    needs_boringssl()?;
    let built = build_rust("quiche", quiche_target());
    built.map_err(|why| format!("{why} (bindgen needs Debian's libclang1 and libclang-common-dev)"))
}

fn needs_boringssl() -> Result<(), String> {
    needs("cmake", "CMake")?;
    needs("c++", "a C++ compiler")
}

fn install_aioquic() -> Result<(), String> {
    let wanted = peers().join("python/requirements.txt");
    let stamp = venv().join("requirements.txt");
    unless_stamped(&wanted, &stamp, || {
        needs("python3", "Python")?;
        let _ = fs::remove_dir_all(venv());
        let made = shell::run(Command::new("python3").args(["-m", "venv"]).arg(venv()));
        made.map_err(|why| format!("{why} (the package python3-venv has the module)"))?;
        let mut pip = Command::new(venv().join("bin/pip"));
        shell::run(pip.args(["install", "--quiet", "--requirement"]).arg(&wanted))
    })
}

fn install_playwright() -> Result<(), String> {
    needs("node", "Node")?;
    let wanted = peers().join("node/package-lock.json");
    let stamp = peers().join("node/node_modules/.stamp");
    unless_stamped(&wanted, &stamp, || {
        needs("npm", "npm")?;
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--prefix"]);
        shell::run(npm.arg(peers().join("node")))
    })
}

/// A browser of the Chromium family.
fn browser() -> Result<PathBuf, String> {
    from_debian(&BROWSERS, "chromium")
}

/// A program under any of its names; installed from Debian's packages if there is none and we may.
fn from_debian(names: &[&str], package: &str) -> Result<PathBuf, String> {
    if let Some(found) = names.iter().find_map(find_program) {
        return Ok(found);
    }
    let root = shell::output(Command::new("id").arg("-u")).is_ok_and(|user| user.trim() == "0");
    if !root || find_program("apt-get").is_none() {
        return Err(format!("it is not installed, and only root can install Debian's package `{package}`"));
    }
    let apt = |words: &[&str]| {
        shell::run(Command::new("apt-get").args(words).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update", "-qq"])?;
    apt(&["install", "-y", "-qq", "--no-install-recommends", package])?;
    let found = names.iter().find_map(find_program);
    found.ok_or(format!("the package `{package}` was installed, but there is no such program"))
}

fn needs(program: &str, what: &str) -> Result<(), String> {
    find_program(program).map(drop).ok_or(format!("{what} (`{program}`) is not installed"))
}

/// Where a program is that can be started by its name.
pub(crate) fn find_program(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let name = Path::new(name.as_ref());
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Runs `install` unless `stamp` says that it was run for just this list of versions.
pub(crate) fn unless_stamped(
    wanted: &Path,
    stamp: &Path,
    install: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let list = read(wanted)?;
    if read(stamp).is_ok_and(|done| done == list) {
        return Ok(());
    }
    install()?;
    fs::write(stamp, list).map_err(|error| format!("{}: {error}", stamp.display()))
}
