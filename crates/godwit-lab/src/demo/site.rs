//! The site that is visited: a folder of made-up files, a certificate for this run, and `godwit serve` in front.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use godwit_base::{Rng, SeededRng};
use rustls::pki_types::CertificateDer;

use crate::Error;
use godwit_text::plain_error as plain;
use godwit_text::unix_now;

/// The name in the certificate.
pub(super) const NAME: &str = "localhost";
/// Small answers as an application asks for them, in bytes.
const API: [usize; 8] = [1_000, 2_000, 3_000, 1_500, 6_000, 10_000, 4_000, 8_000];
/// The page, and what it needs besides: files of these sizes in turn.
const PAGE: usize = 20_000;
const OBJECTS: [usize; 10] = [2_000, 3_000, 5_000, 8_000, 10_000, 12_000, 15_000, 20_000, 30_000, 40_000];
/// How many files a page needs besides if nobody says otherwise.
pub(super) const FEW_OBJECTS: u16 = OBJECTS.len() as u16;

/// Paths of the site.
pub(super) fn api(number: usize) -> String {
    format!("/api/{}.json", number % API.len())
}

pub(super) const PAGE_PATH: &str = "/page.html";

/// What a page needs besides.
pub(super) fn objects(count: u16) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("/object/{number}.bin"))
}

/// How large each of them is, in bytes.
fn object_sizes(count: u16) -> impl Iterator<Item = usize> {
    OBJECTS.into_iter().cycle().take(count.into())
}

/// A page with so many files on it: `11 files, 165 kB in all`.
pub(super) fn page_in_words(objects: u16) -> String {
    let kilobytes = (PAGE + object_sizes(objects).sum::<usize>()) / 1000;
    format!("{} files, {kilobytes} kB in all", objects + 1)
}

/// The folder on disk, removed with the value.
#[derive(Debug)]
pub(super) struct Site {
    folder: PathBuf,
    pub(super) certificate: CertificateDer<'static>,
}

impl Site {
    /// A site whose page needs so many files besides.
    pub(super) fn make(objects: u16) -> Result<Site, Error> {
        let name = format!("godwit-demo-{}-{}", std::process::id(), unix_now());
        let folder = std::env::temp_dir().join(name);
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()])
            .map_err(|error| Error::new(format!("cannot make a certificate: {error}")))?;
        let certificate = made.cert.der().clone();
        let site = Site { folder, certificate };
        let written = site.write(&made.cert.pem(), &made.signing_key.serialize_pem(), objects);
        written.map_err(|error| {
            let remedy = "make room there, or set TMPDIR to another folder";
            Error::file("cannot write the site into", &site.folder, plain(&error), remedy)
        })?;
        Ok(site)
    }

    fn write(&self, certificate: &str, key: &str, count: u16) -> std::io::Result<()> {
        let mut private = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut private, 0o700);
        private.create(&self.folder)?;
        std::fs::write(self.folder.join("cert.pem"), certificate)?;
        std::fs::write(self.folder.join("key.pem"), key)?;
        let root = self.root();
        std::fs::create_dir_all(root.join("api"))?;
        std::fs::create_dir_all(root.join("object"))?;
        let mut rng = SeededRng::new(1);
        let mut file = |path: &str, len: usize| {
            let mut content = vec![0; len];
            rng.fill(&mut content);
            std::fs::write(root.join(path.trim_start_matches('/')), content)
        };
        for (number, len) in API.into_iter().enumerate() {
            file(&api(number), len)?;
        }
        file(PAGE_PATH, PAGE)?;
        objects(count).zip(object_sizes(count)).try_for_each(|(path, len)| file(&path, len))
    }

    fn root(&self) -> PathBuf {
        self.folder.join("site")
    }

    /// Serves the folder there, by this program `godwit`.
    pub(super) fn serve(&self, program: &Path, address: SocketAddr) -> Result<Server, Error> {
        let failed = |problem: String| Error::new(format!("cannot start the server: {problem}"));
        let file = |name: &str| self.folder.join(name);
        let mut command = Command::new(program);
        // As the visitors are: what else the machine does is not to be measured.
        godwit_os::urgency::start_before_others(&mut command, 1);
        let mut process = command
            .args(["serve".as_ref(), self.root().as_path()])
            .args(["--listen", &address.to_string(), "--quiet", "--until-end-of-input"])
            .args(["--cert".as_ref(), file("cert.pem").as_path()])
            .args(["--key".as_ref(), file("key.pem").as_path()])
            // What a server keeps for its next run is of no use here.
            .env("XDG_DATA_HOME", &self.folder)
            .env_remove("RUST_LOG")
            // However this process ends, the server's input then ends too, and the server with it.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(plain(&error)))?;
        let mut banner = BufReader::new(process.stdout.take().ok_or_else(|| failed("no output".to_owned()))?);
        let mut line = String::new();
        // The banner comes when every port is bound.
        let ready = loop {
            line.clear();
            match banner.read_line(&mut line) {
                Ok(0) | Err(_) => break false,
                Ok(_) if line.contains("https://") => break true,
                Ok(_) => {}
            }
        };
        let mut server = Server { process, _banner: banner };
        if ready { Ok(server) } else { Err(failed(server.last_words())) }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

fn remove(folder: &Path) {
    if let Err(error) = std::fs::remove_dir_all(folder)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(folder = %folder.display(), %error, "the folder of the demonstration cannot be removed");
    }
}

/// A running `godwit serve`, ended with the value.
#[derive(Debug)]
pub(super) struct Server {
    process: Child,
    _banner: BufReader<ChildStdout>,
}

impl Server {
    /// What it said before it ended.
    fn last_words(&mut self) -> String {
        let _ = self.process.kill();
        let mut text = String::new();
        if let Some(stderr) = self.process.stderr.as_mut() {
            let _ = stderr.read_to_string(&mut text);
        }
        let text = text.trim().trim_start_matches("godwit: ");
        if text.is_empty() { "it ended without a word".to_owned() } else { text.to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing that is under way matters any more.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_site_is_written_and_removed() {
        let site = Site::make(12).unwrap();
        let (root, folder) = (site.root(), site.folder.clone());
        let object = |number: usize| (format!("/object/{number}.bin"), OBJECTS[number % 10]);
        for (path, len) in [(api(0), API[0]), (PAGE_PATH.to_owned(), PAGE), object(0), object(9), object(11)]
        {
            let written = std::fs::metadata(root.join(path.trim_start_matches('/'))).unwrap();
            assert_eq!(written.len(), len as u64, "{path}");
        }
        assert!(!root.join("object/12.bin").exists());
        drop(site);
        assert!(!folder.exists());
    }

    #[test]
    fn pages_are_described() {
        assert_eq!(page_in_words(FEW_OBJECTS), "11 files, 165 kB in all");
        assert_eq!(page_in_words(100), "101 files, 1470 kB in all");
    }
}
