//! The dashboard: what was measured of every commit, beside other programs, as pages.
//!
//! Pages need nothing else: no network, no fonts, no scripts. Everything that comes from files is escaped. They are made
//! from a [`History`], a folder of files of which each holds what was measured of one commit.
//!
//! Figures are only compared with others of the same file. Over commits they form a line only as far as machine and
//! conditions are the same; what is counted or emulated in virtual time does not depend on these.

mod bars;
mod counts;
mod figure;
pub mod history;
mod latencies;
mod look;
mod networks;
mod numbers;
mod overview;
mod read;
mod repository;
mod scale;
mod site;
mod spark;
#[cfg(test)]
mod tests;
mod trend;
mod usage;
mod verdict;

use std::fmt;

pub use networks::NetworkTable;
pub use read::{History, HistoryError, Recorded};
pub use repository::Repository;

use look::Place;
use site::Site;

/// What is known besides the history.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// Where commits can be looked at. Without it they are no links.
    pub repository: Option<Repository>,
    /// What is reached in emulated networks now.
    pub networks: Vec<NetworkTable>,
}

/// A file of the dashboard.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// Its name within the dashboard's folder, perhaps with a folder: letters, digits, `.`, `-`, `_` and `/`. The first page
    /// is `index.html`.
    pub name: String,
    /// What stands in it.
    pub content: Vec<u8>,
}

/// Every file of the dashboard: its pages, the first of them first, and what they are made from.
#[must_use]
pub fn pages(history: &History, settings: &Settings) -> Vec<Page> {
    let site = Site::new(history, settings.repository.as_ref(), &settings.networks);
    let mut pages = vec![
        page(Place::Overview.file(), |out| overview::write(out, &site)),
        page(Place::Latencies.file(), |out| latencies::write(out, &site)),
        page(Place::Networks.file(), |out| usage::write(out, &site)),
        page(Place::Counts.file(), |out| counts::write(out, &site)),
    ];
    for one in &site.figures {
        pages.push(page(&one.file, |out| figure::write(out, &site, one)));
    }
    let files = history.files().iter();
    pages.extend(files.map(|file| Page { name: look::file_address(file), content: file.bytes.clone() }));
    pages
}

fn page(name: &str, write: impl FnOnce(&mut String) -> fmt::Result) -> Page {
    let mut content = String::with_capacity(64 << 10);
    // Writing to a string does not fail.
    let _ = write(&mut content);
    Page { name: name.to_owned(), content: content.into_bytes() }
}
