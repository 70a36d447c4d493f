//! What the cases need besides programs: certificates, and a folder of files whose hashes are known.

use super::install::Peer;
use crate::shell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Number of small files in the folder.
pub(crate) const SMALL_FILES: u64 = 1000;

/// Certificates and files.
pub(crate) struct Material {
    pub(crate) authority: PathBuf,
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
    /// Base64 of the SHA-256 of the leaf's public key.
    pub(crate) pin: String,
    /// The folder that is served.
    pub(crate) site: PathBuf,
    /// SHA-256 in hexadecimal digits by name.
    sums: BTreeMap<String, String>,
}

impl Material {
    /// Makes everything anew in `folder`, with a file of each of the sizes `large` (MiB).
    pub(crate) fn make(folder: &Path, large: &[u64]) -> Result<Self, String> {
        let (certificates, site) = (folder.join("certificates"), folder.join("site"));
        shell::output(Peer::Quinn.command().arg("make-certs").arg(&certificates))?;
        let large = large.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let small = SMALL_FILES.to_string();
        let mut make_site = Peer::Quinn.command();
        shell::output(make_site.arg("make-site").arg(&site).args(["--large", &large, "--small", &small]))?;
        let read =
            |path: &Path| fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
        let list = read(&site.join("SHA256SUMS"))?;
        let sums = list.lines().filter_map(|line| line.split_once("  "));
        Ok(Self {
            authority: certificates.join("ca.pem"),
            chain: certificates.join("leaf.pem"),
            key: certificates.join("leaf.key"),
            pin: read(&certificates.join("leaf.pin"))?,
            sums: sums.map(|(hash, name)| (name.to_owned(), hash.to_owned())).collect(),
            site,
        })
    }

    /// The hash that the file of a path must have.
    pub(crate) fn hash(&self, path: &str) -> Result<&str, String> {
        let name = file_name(path);
        self.sums.get(name).map(String::as_str).ok_or_else(|| format!("there is no hash of {name:?}"))
    }

    /// Compares a file, byte for byte, with that of a path.
    pub(crate) fn compare(&self, path: &str, received: &Path) -> Result<(), String> {
        let wanted = self.site.join(file_name(path));
        match same(&wanted, received) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("{path}: {} is not what was served", received.display())),
            Err(error) => Err(format!("{path}: {}: {error}", received.display())),
        }
    }
}

fn same(left: &Path, right: &Path) -> io::Result<bool> {
    let (mut left, mut right) = (BufReader::new(File::open(left)?), BufReader::new(File::open(right)?));
    loop {
        let (one, other) = (left.fill_buf()?, right.fill_buf()?);
        let common = one.len().min(other.len());
        if one[..common] != other[..common] || (common == 0 && one.len() != other.len()) {
            return Ok(false);
        }
        if common == 0 {
            return Ok(true);
        }
        left.consume(common);
        right.consume(common);
    }
}

/// The name of the file that answers a path.
fn file_name(path: &str) -> &str {
    match path.trim_start_matches('/') {
        "" => "index.html",
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_the_same_only_byte_for_byte() {
        let folder = std::env::temp_dir().join(format!("xtask-material-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let long = vec![7; 100_000];
        let mut other = long.clone();
        other[99_999] = 8;
        let write = |name: &str, content: &[u8]| {
            let path = folder.join(name);
            fs::write(&path, content).unwrap();
            path
        };
        let path = write("long", &long);
        assert!(same(&path, &write("copy", &long)).unwrap());
        assert!(!same(&path, &write("other", &other)).unwrap());
        assert!(!same(&path, &write("short", &long[..65_536])).unwrap());
        assert!(!same(&write("empty", b""), &path).unwrap());
        fs::remove_dir_all(&folder).unwrap();
    }
}
