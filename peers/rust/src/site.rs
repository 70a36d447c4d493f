//! Makes the files that the tests fetch.

use anyhow::{Result, ensure};
use aws_lc_rs::digest::{Context, SHA256};
use clap::Args;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

const CHUNK: usize = 64 << 10;
const INDEX: &str = "\
<!doctype html>
<html lang=\"en\">
<head><meta charset=\"utf-8\"><title>A page</title>
<link rel=\"icon\" href=\"icon.svg\"><link rel=\"stylesheet\" href=\"style.css\"><script src=\"app.js\" defer></script></head>
<body><h1>A page</h1><p>Loaded over <b id=\"protocol\">an unknown protocol</b>.</p></body>
</html>
";
const STYLE: &str = "body { font: 20px sans-serif; margin: 3em; }\n";
const SCRIPT: &str = "\
const [page] = performance.getEntriesByType(\"navigation\");
document.getElementById(\"protocol\").textContent = page.nextHopProtocol;
";
const ICON: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 8 8\"><circle cx=\"4\" cy=\"4\" r=\"3\"/></svg>\n";

#[derive(Args)]
pub struct Options {
    folder: PathBuf,
    /// Files of 10,000 bytes, in `small/`
    #[arg(long, default_value_t = 1000)]
    small: u64,
    /// Large files, in MiB each: `SIZE.bin`
    #[arg(long, value_delimiter = ',')]
    large: Vec<u64>,
}

/// Writes a page with what belongs to it, `1.bin` of 1 MiB, the other files and `SHA256SUMS`.
pub fn make(options: &Options) -> Result<()> {
    std::fs::create_dir_all(options.folder.join("small"))?;
    let mut sums = String::new();
    for (name, text) in [("index.html", INDEX), ("style.css", STYLE), ("app.js", SCRIPT), ("icon.svg", ICON)]
    {
        add(options, &mut sums, name, text.len() as u64, |chunk, at| {
            chunk.copy_from_slice(&text.as_bytes()[at as usize..][..chunk.len()]);
        })?;
    }
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut noise = |chunk: &mut [u8], _: u64| fill(&mut state, chunk);
    add(options, &mut sums, "1.bin", 1 << 20, &mut noise)?;
    for size in &options.large {
        ensure!(*size > 1, "1.bin is always there");
        add(options, &mut sums, &format!("{size}.bin"), size << 20, &mut noise)?;
    }
    for index in 0..options.small {
        add(options, &mut sums, &format!("small/{index}"), 10_000, &mut noise)?;
    }
    Ok(std::fs::write(options.folder.join("SHA256SUMS"), sums)?)
}

fn add(
    options: &Options,
    sums: &mut String,
    name: &str,
    size: u64,
    mut content: impl FnMut(&mut [u8], u64),
) -> Result<()> {
    let mut file = BufWriter::new(File::create(options.folder.join(name))?);
    let mut hash = Context::new(&SHA256);
    let mut chunk = vec![0; CHUNK];
    let mut at = 0;
    while at < size {
        let part = &mut chunk[..(size - at).min(CHUNK as u64) as usize];
        content(part, at);
        hash.update(part);
        file.write_all(part)?;
        at += part.len() as u64;
    }
    file.flush()?;
    for byte in hash.finish().as_ref() {
        write!(sums, "{byte:02x}")?;
    }
    Ok(writeln!(sums, "  {name}")?)
}

/// The same noise every time (xorshift): it only must not repeat within a file.
fn fill(state: &mut u64, chunk: &mut [u8]) {
    for word in chunk.chunks_mut(8) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
    }
}
