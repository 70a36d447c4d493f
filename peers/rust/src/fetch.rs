//! What a client notes of an answer, and prints of it.

use anyhow::Result;
use aws_lc_rs::digest::{Context, SHA256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

/// One answer on its way in.
pub struct Answer {
    path: String,
    pub status: Option<u16>,
    pub declared: Option<String>,
    size: u64,
    hash: Context,
    file: Option<File>,
}

impl Answer {
    pub fn new(url: &http::Uri, out: Option<&Path>) -> Result<Self> {
        let path = url.path().to_owned();
        let file = out.map(|out| File::create(out.join(crate::files::name(&path)))).transpose()?;
        Ok(Self { path, status: None, declared: None, size: 0, hash: Context::new(&SHA256), file })
    }

    pub fn add(&mut self, bytes: &[u8]) -> Result<()> {
        self.size += bytes.len() as u64;
        self.hash.update(bytes);
        if let Some(file) = &mut self.file {
            file.write_all(bytes)?;
        }
        Ok(())
    }

    /// `STATUS SIZE SHA256 CONTENT-LENGTH PATH`, with `-` for what the protocol does not tell.
    pub fn line(self) -> String {
        let status = self.status.map_or("-".to_owned(), |status| status.to_string());
        let declared = self.declared.unwrap_or("-".to_owned());
        let mut hash = String::new();
        for byte in self.hash.finish().as_ref() {
            let _ = write!(hash, "{byte:02x}");
        }
        format!("{status} {} {hash} {declared} {}", self.size, self.path)
    }
}
