//! The folder that a server serves.

use anyhow::Result;
use std::io::SeekFrom;
use std::path::{Component, Path, PathBuf};
use tokio::fs::File;
use tokio::io::AsyncSeekExt;

/// A file, or the part of it that was asked for.
pub struct Part {
    pub file: File,
    /// Bytes to read from where the file stands.
    pub length: u64,
    /// First byte, last byte and size of the whole, if a range was asked for.
    pub range: Option<(u64, u64, u64)>,
}

/// The file that a path means, `index.html` for a folder; none if there is none.
pub async fn open(root: &Path, path: &str, range: Option<&str>) -> Result<Option<Part>> {
    let Some(path) = inside(root, path) else { return Ok(None) };
    let Ok(mut file) = File::open(&path).await else { return Ok(None) };
    let size = file.metadata().await?.len();
    let Some((first, last)) = range.and_then(|range| bounds(range, size)) else {
        return Ok(Some(Part { file, length: size, range: None }));
    };
    file.seek(SeekFrom::Start(first)).await?;
    Ok(Some(Part { file, length: last - first + 1, range: Some((first, last, size)) }))
}

fn inside(root: &Path, path: &str) -> Option<PathBuf> {
    let relative = Path::new(path.trim_start_matches('/'));
    let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    let path = root.join(relative);
    plain.then(|| if path.is_dir() { path.join("index.html") } else { path })
}

/// `bytes=FIRST-LAST`, `bytes=FIRST-` or `bytes=-COUNT`; anything else is no range.
fn bounds(range: &str, size: u64) -> Option<(u64, u64)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let end = size.checked_sub(1)?;
    let (first, last) = match (first, last) {
        ("", count) => (size.saturating_sub(count.parse().ok()?), end),
        (first, "") => (first.parse().ok()?, end),
        (first, last) => (first.parse().ok()?, last.parse::<u64>().ok()?.min(end)),
    };
    (first <= last).then_some((first, last))
}

/// The last part of a path, under which an answer is kept.
pub fn name(path: &str) -> &str {
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("index.html")
}
