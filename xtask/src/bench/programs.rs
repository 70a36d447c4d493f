//! What is measured, and how each program is told what to do.

use super::about::About;
use super::options::Options;
use super::scenarios::Work;
use std::path::{Path, PathBuf};

/// What carries the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carrier {
    Quic,
    /// TLS over TCP, and nothing or an HTTP on it.
    Tcp,
    /// Datagrams, and nothing else.
    Datagrams,
}

/// How a program is told what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    /// As `godwit perf` is.
    Perf,
    /// As the programs of `peers/` are, by these commands.
    Peers { server: &'static str, client: &'static str },
}

const PEERS: Words = Words::Peers { server: "perf-server", client: "perf-client" };

/// A program as it is measured.
#[derive(Debug, Clone)]
pub(super) struct Program {
    /// As tables have it, with its version.
    pub(super) name: String,
    pub(super) carrier: Carrier,
    pub(super) ours: bool,
    pub(super) file: PathBuf,
    words: Words,
    /// When it looks for datagrams before it sleeps.
    spin: Option<&'static str>,
    /// Whether it checks what it downloads.
    checked: bool,
}

/// Everything that can be measured, in the order of the tables.
pub(super) fn all(folder: &Path, about: &About) -> Vec<Program> {
    let other = |package: &str, file: &str| Program {
        name: format!("{package} {}", about.version(package)),
        carrier: Carrier::Quic,
        ours: false,
        file: folder.join(file),
        words: PEERS,
        spin: None,
        checked: false,
    };
    let ours = |name: &str, spin, checked| Program {
        name: name.to_owned(),
        carrier: Carrier::Quic,
        ours: true,
        file: folder.join("godwit"),
        words: Words::Perf,
        spin,
        checked,
    };
    // In a program of the same shape as those of stacks that leave the loop to the program.
    let polled =
        Program { words: PEERS, file: folder.join("peer-polled"), ..ours("godwit, polled", None, false) };
    let kernel = |name: String, carrier, server, client| Program {
        name,
        carrier,
        ours: false,
        file: folder.join("peer-tcp"),
        words: Words::Peers { server, client },
        spin: None,
        checked: false,
    };
    let (hyper, rustls) = (about.version("hyper"), about.version("rustls"));
    vec![
        ours("godwit", None, false),
        ours("godwit, spinning", Some("always"), false),
        ours("godwit, checked", None, true),
        polled,
        other("quinn", "peer-quinn"),
        other("s2n-quic", "peer-s2n"),
        other("quiche", "peer-quiche"),
        other("tquic", "peer-tquic"),
        other("quic-go", "peer-quic-go"),
        kernel(format!("TCP, TLS by rustls {rustls}"), Carrier::Tcp, "tcp-server", "tcp-client"),
        kernel(format!("HTTP/1.1 by hyper {hyper}"), Carrier::Tcp, "h1-server", "h1-client"),
        kernel(format!("HTTP/2 by hyper {hyper}"), Carrier::Tcp, "h2-server", "h2-client"),
        kernel("bare UDP".to_owned(), Carrier::Datagrams, "udp-server", "udp-client"),
    ]
}

impl Program {
    /// Whether it takes part in a scenario at all.
    pub(super) fn takes(&self, work: Work) -> bool {
        let one_request = matches!(work, Work::Requests { streams: 1 });
        match self.carrier {
            Carrier::Quic if self.checked => work == Work::Download,
            Carrier::Quic => self.spin.is_none() || one_request,
            Carrier::Tcp => match work {
                Work::Handshakes { .. } | Work::Idle => {
                    matches!(self.words, Words::Peers { server: "tcp-server", .. })
                }
                _ => true,
            },
            Carrier::Datagrams => matches!(work, Work::Requests { .. }),
        }
    }

    /// How its server is started, with the certificate of a folder.
    pub(super) fn serve(&self, folder: &Path, options: &Options) -> Vec<String> {
        let mut words: Vec<String> = match self.words {
            Words::Perf => vec!["perf".into(), "server".into()],
            Words::Peers { server, .. } => vec![server.into()],
        };
        let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
        words.extend(["--listen".into(), "127.0.0.1:0".into()]);
        words.extend(["--cert".into(), file("leaf.pem"), "--key".into(), file("leaf.key")]);
        if options.cipher != super::options::Cipher::Aes128 {
            words.extend(["--cipher".into(), options.cipher.word().into()]);
        }
        words.extend(self.like_others().chain(self.spinning()));
        words
    }

    /// Whether it is `godwit perf`.
    pub(super) fn is_perf(&self) -> bool {
        self.words == Words::Perf
    }

    /// What Godwit does otherwise by itself: a post-quantum key exchange, which not all others have.
    fn like_others(&self) -> impl Iterator<Item = String> {
        let words = self.is_perf().then(|| ["--key-exchange".to_owned(), "x25519".to_owned()]);
        words.into_iter().flatten()
    }

    fn spinning(&self) -> impl Iterator<Item = String> {
        self.spin.into_iter().flat_map(|when| ["--spin".to_owned(), when.to_owned()])
    }

    /// How its client is started. The number of idle connections follows.
    pub(super) fn measure(&self, address: &str, work: Work, options: &Options) -> Vec<String> {
        let mut words: Vec<String> = match self.words {
            Words::Perf => vec!["perf".into(), "client".into()],
            Words::Peers { client, .. } => vec![client.into()],
        };
        words.extend([address.to_owned(), "--insecure".into(), "--json".into()]);
        words.extend(self.like_others().chain(self.spinning()));
        let time = format!("{}{}", options.seconds, if self.is_perf() { "s" } else { "" });
        let at_once = if self.is_perf() { "--concurrency" } else { "--streams" };
        words.extend(match work {
            Work::Download => {
                let checked = self.checked.then(|| "--verify".to_owned());
                ["--download".into(), time].into_iter().chain(checked).collect()
            }
            Work::Upload => vec!["--upload".into(), time],
            Work::Requests { streams } => {
                let streams = streams.to_string();
                vec!["--rps".into(), "--streams".into(), streams, "--duration".into(), time]
            }
            Work::Handshakes { at_once: number } => {
                vec!["--hps".into(), at_once.into(), number.to_string(), "--duration".into(), time]
            }
            Work::Idle => vec!["--idle".into()],
        });
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Program {
        let all = all(Path::new("dir"), &About::default());
        all.into_iter().find(|program| program.name.starts_with(name)).unwrap()
    }

    #[test]
    fn each_is_told_in_its_own_words() {
        let options = Options::default();
        let words = |name, work| named(name).measure("a:1", work, &options).join(" ");
        let one = Work::Requests { streams: 1 };
        assert_eq!(
            words("godwit", Work::Download),
            "perf client a:1 --insecure --json --key-exchange x25519 --download 2s"
        );
        assert_eq!(
            words("godwit, checked", Work::Download),
            "perf client a:1 --insecure --json --key-exchange x25519 --download 2s --verify"
        );
        assert_eq!(words("quinn", Work::Upload), "perf-client a:1 --insecure --json --upload 2");
        assert_eq!(words("godwit, polled", Work::Upload), words("quinn", Work::Upload));
        assert_eq!(
            words("godwit, spinning", one),
            "perf client a:1 --insecure --json --key-exchange x25519 --spin always --rps --streams 1 --duration 2s"
        );
        assert_eq!(
            words("HTTP/2", Work::Handshakes { at_once: 8 }),
            "h2-client a:1 --insecure --json --hps --streams 8 --duration 2"
        );
        assert!(
            named("godwit")
                .serve(Path::new("dir"), &options)
                .join(" ")
                .ends_with("--key dir/leaf.key --key-exchange x25519")
        );
        assert!(
            named("godwit, polled").serve(Path::new("dir"), &options).join(" ").ends_with("dir/leaf.key")
        );
    }

    #[test]
    fn who_checks_is_measured_with_downloads_alone() {
        let checked = named("godwit, checked");
        assert!(checked.takes(Work::Download));
        for work in [Work::Upload, Work::Requests { streams: 1 }, Work::Handshakes { at_once: 1 }, Work::Idle]
        {
            assert!(!checked.takes(work), "{work:?}");
        }
    }

    #[test]
    fn what_is_polled_takes_part_in_everything() {
        let polled = named("godwit, polled");
        assert!(polled.ours && polled.file.ends_with("peer-polled"));
        for work in
            [Work::Download, Work::Requests { streams: 100 }, Work::Handshakes { at_once: 8 }, Work::Idle]
        {
            assert!(polled.takes(work), "{work:?}");
        }
    }

    #[test]
    fn who_spins_is_measured_with_one_request_alone() {
        assert!(named("godwit, spinning").takes(Work::Requests { streams: 1 }));
        assert!(!named("godwit, spinning").takes(Work::Requests { streams: 100 }));
        assert!(!named("godwit, spinning").takes(Work::Download));
        assert!(named("bare").takes(Work::Requests { streams: 20 }) && !named("bare").takes(Work::Upload));
        assert!(named("TCP").takes(Work::Idle) && !named("HTTP/1.1").takes(Work::Idle));
    }
}
