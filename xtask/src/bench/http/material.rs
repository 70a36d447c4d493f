//! What servers are given: a certificate, and files in a folder that ends with the value.

use super::work::{LARGE, SMALL};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct Material {
    folder: PathBuf,
    /// Whether the folder is ours to remove.
    made: bool,
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

impl Material {
    /// Makes the files, with the certificate that is in `certificates`.
    pub(super) fn make(certificates: &Path) -> Result<Self, String> {
        let certificates = std::path::absolute(certificates).map_err(|error| error.to_string())?;
        let name = format!("godwit-bench-http-{}", std::process::id());
        let mut material = Self::at(std::env::temp_dir().join(name), &certificates);
        material.made = true;
        let site = material.site();
        fs::create_dir_all(&site).map_err(|error| format!("{}: {error}", site.display()))?;
        for bytes in [SMALL, LARGE] {
            write(&site.join(file(bytes)), &"x".repeat(bytes))?;
        }
        Ok(material)
    }

    /// Of files that are there already.
    pub(super) fn at(folder: PathBuf, certificates: &Path) -> Self {
        let (certificate, key) = (certificates.join("leaf.pem"), certificates.join("leaf.key"));
        Self { folder, made: false, certificate, key }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder that is served.
    pub(super) fn site(&self) -> PathBuf {
        self.folder.join("site")
    }

    /// Writes a configuration.
    pub(super) fn configuration(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        write(&path, text)?;
        Ok(path)
    }
}

impl Drop for Material {
    fn drop(&mut self) {
        if self.made {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// The name of a file with so many bytes.
pub(super) fn file(bytes: usize) -> String {
    format!("{bytes}.html")
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
