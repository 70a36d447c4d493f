//! What `cargo xtask bench` is told.

use std::path::PathBuf;

/// The cipher of all connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cipher {
    Aes128,
    Aes256,
}

impl Cipher {
    /// As an option has it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Cipher::Aes128 => "aes128",
            Cipher::Aes256 => "aes256",
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Cipher::Aes128 => "AES-128-GCM",
            Cipher::Aes256 => "AES-256-GCM",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Options {
    /// Runs of each scenario and program.
    pub(super) rounds: usize,
    /// How long each lasts.
    pub(super) seconds: f64,
    /// Programs whose names contain one of them, and Godwit; all, if there is none.
    pub(super) only: Vec<String>,
    /// Scenarios whose names contain one of them; all, if there is none.
    pub(super) scenarios: Vec<String>,
    pub(super) cipher: Cipher,
    /// Whether Godwit is measured with each other stack at the other end, too.
    pub(super) cross: bool,
    /// Whether system calls are counted in a run of its own.
    pub(super) syscalls: bool,
    /// Whether HTTP servers are measured, in place of all else.
    pub(super) http: bool,
    /// Connections that do nothing.
    pub(super) idle: usize,
    /// Where figures go for programs.
    pub(super) json: Option<PathBuf>,
    /// Where everything was built.
    pub(super) programs: Option<PathBuf>,
    /// Where everything is to be built, and nothing measured.
    pub(super) build_only: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rounds: 5,
            seconds: 2.0,
            only: Vec::new(),
            scenarios: Vec::new(),
            cipher: Cipher::Aes128,
            cross: false,
            syscalls: false,
            http: false,
            idle: 2000,
            json: None,
            programs: None,
            build_only: None,
        }
    }
}

impl Options {
    pub(super) fn read(words: &[&str]) -> Result<Self, String> {
        let (mut options, mut words) = (Options::default(), words.iter());
        while let Some(word) = words.next() {
            let mut value = || words.next().copied().ok_or_else(|| format!("{word} needs a value"));
            let list =
                |text: &str| text.split(',').map(|part| part.trim().to_lowercase()).collect::<Vec<_>>();
            match *word {
                "--rounds" => options.rounds = number(word, value()?)?,
                "--seconds" => options.seconds = number(word, value()?)?,
                "--idle" => options.idle = number(word, value()?)?,
                "--only" => options.only.extend(list(value()?)),
                "--scenario" => options.scenarios.extend(list(value()?)),
                "--cipher" => options.cipher = cipher(value()?)?,
                "--cross" => options.cross = true,
                "--syscalls" => options.syscalls = true,
                "--http" => options.http = true,
                "--json" => options.json = Some(value()?.into()),
                "--programs" => options.programs = Some(value()?.into()),
                "--build-only" => options.build_only = Some(value()?.into()),
                other => return Err(format!("bench knows no option {other}")),
            }
        }
        if options.http && (options.cross || options.syscalls) {
            return Err(
                "--cross and --syscalls are of the \"perf\" protocol, and --http measures servers".into()
            );
        }
        if options.rounds == 0 || options.idle < 2 || !(0.1..=600.0).contains(&options.seconds) {
            return Err(
                "bench takes 1 round at least, 0.1 to 600 seconds and 2 idle connections at least".into()
            );
        }
        Ok(options)
    }

    /// How everything was measured, in a sentence or two.
    pub(super) fn conditions(&self) -> String {
        let Options { rounds, seconds, cipher, idle, .. } = self;
        let cipher = cipher.name();
        format!(
            "Server on core 0, client on core 1, one thread of work each, over loopback; {rounds} interleaved rounds of \
             {seconds} s. For all: ECDSA P-256, {cipher}, X25519, full handshakes, UDP payloads of 1452 to 1472 bytes (TCP: \
             segments of 1448), CUBIC, windows of 16 MiB for a stream and 32 MiB for a connection, socket buffers of 4 MiB, \
             64 KiB for each write, at least 30 s of idle time and 1024 streams; built with optimisation 3 and thin LTO. \
             Requests of 512 B are answered with 8 KiB. Exceptions: quic-go has NewReno alone, and is built by Go; tquic's server \
             cannot but send session tickets; quiche and tquic do not pace; TCP sizes its buffers itself, and has a \
             connection for each request under way, but for HTTP/2, which has one. Godwit polled has a loop of its own, without \
             runtime and locks, in a program of the shape of quiche's and tquic's. What is checked reads every byte that it \
             downloads and holds it against what was sent. Idle: what each of {idle} connections \
             adds to the memory of a process, without the kernel's."
        )
    }

    /// Whether a program is wanted.
    pub(super) fn takes_program(&self, name: &str) -> bool {
        name.starts_with("godwit") || contains(&self.only, name)
    }

    /// Whether a scenario is wanted.
    pub(super) fn takes_scenario(&self, name: &str) -> bool {
        contains(&self.scenarios, name)
    }
}

fn contains(words: &[String], name: &str) -> bool {
    let name = name.to_lowercase();
    words.is_empty() || words.iter().any(|word| name.contains(word.as_str()))
}

fn number<T: std::str::FromStr>(word: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{word} needs a number, and got {text:?}"))
}

fn cipher(text: &str) -> Result<Cipher, String> {
    [Cipher::Aes128, Cipher::Aes256]
        .into_iter()
        .find(|cipher| cipher.word() == text)
        .ok_or_else(|| format!("--cipher is aes128 or aes256, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_five_rounds_of_two_seconds_of_everything() {
        let options = Options::read(&[]).unwrap();
        assert_eq!((options.rounds, options.seconds, options.cipher), (5, 2.0, Cipher::Aes128));
        assert!(options.takes_program("quinn 0.11.12") && options.takes_scenario("download"));
        assert!(!options.cross && options.json.is_none());
    }

    #[test]
    fn words_choose_by_a_part_of_the_name_and_godwit_is_always_there() {
        let options = Options::read(&["--only", "Quinn,go", "--scenario", "load"]).unwrap();
        assert!(options.takes_program("quinn 0.11.12") && options.takes_program("quic-go v0.65.0"));
        assert!(!options.takes_program("quiche 0.30.0"));
        let options = Options::read(&["--only", "quinn"]).unwrap();
        assert!(options.takes_program("godwit") && options.takes_program("godwit, spinning"));
        let options = Options::read(&["--scenario", "load"]).unwrap();
        assert!(options.takes_scenario("upload") && !options.takes_scenario("handshakes, 1 at a time"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for words in [
            &["--rounds", "0"][..],
            &["--seconds", "0"],
            &["--seconds", "x"],
            &["--rounds"],
            &["--cipher", "des"],
            &["--fast"],
            &["--http", "--cross"],
        ] {
            assert!(Options::read(words).is_err(), "{words:?}");
        }
    }
}
