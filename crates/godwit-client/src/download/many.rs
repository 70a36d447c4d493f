//! Many URLs that are fetched alike, perhaps again and again.

use std::io::Write;
use std::path::PathBuf;

use super::Download;
use super::batch::Rounds;
use super::sink::Destination;
use crate::target::Target;

/// Where a body shall go, each time that it is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// Nowhere.
    Nowhere,
    /// A file.
    File(PathBuf),
    /// The standard output.
    Stdout,
}

impl From<&Place> for Destination {
    fn from(place: &Place) -> Destination {
        match place {
            Place::Nowhere => Destination::Discard,
            Place::File(path) => Destination::File(path.clone()),
            Place::Stdout => Destination::Writer { name: "the standard output".to_owned(), to: stdout() },
        }
    }
}

/// What is to be fetched, with what is the same for all of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Many {
    /// The downloads but for their URLs and versions of HTTP.
    pub template: Download,
    /// The URLs, and where their bodies go.
    pub items: Vec<(Target, Place)>,
    /// In which order they are fetched, by which versions, and how often. Default: each once.
    pub rounds: Rounds,
}

impl Many {
    /// Fetches each of these once.
    #[must_use]
    pub fn new(template: Download, items: Vec<(Target, Place)>) -> Many {
        let rounds = Rounds::new(items.len());
        Many { template, items, rounds }
    }

    /// The URL of the download of this number, and where its body goes.
    #[must_use]
    pub fn item(&self, number: u64) -> Option<&(Target, Place)> {
        let (item, _) = self.rounds.get(number)?;
        self.items.get(item)
    }

    /// One of the downloads, by its number below [`Rounds::count`].
    #[must_use]
    pub fn download(&self, number: u64) -> Option<(Download, Destination)> {
        let (item, versions) = self.rounds.get(number)?;
        let (target, place) = self.items.get(item)?;
        let mut download = self.template.clone();
        (download.target, download.versions) = (target.clone(), versions);
        Some((download, place.into()))
    }
}

/// The standard output without Rust's line buffer, which would look for line ends in everything.
fn stdout() -> Box<dyn Write + Send> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        if let Ok(descriptor) = std::io::stdout().as_fd().try_clone_to_owned() {
            return Box::new(std::fs::File::from(descriptor));
        }
    }
    Box::new(std::io::stdout())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Versions;

    #[test]
    fn only_urls_and_versions_differ() {
        let target = |text| Target::parse(text).unwrap();
        let mut template = Download::new(target("https://a.example/"));
        template.alone = true;
        let file = Place::File("x".into());
        let items =
            vec![(target("https://a.example/1"), file), (target("https://a.example/2"), Place::Nowhere)];
        let mut many = Many::new(template, items);
        many.rounds.versions = vec![Versions::Http2, Versions::Http3];
        let (download, destination) = many.download(1).unwrap();
        assert_eq!((download.versions, download.alone), (Versions::Http3, true));
        assert_eq!(download.target.to_string(), "https://a.example/1");
        assert!(matches!(destination, Destination::File(path) if path == std::path::Path::new("x")));
        assert_eq!(many.item(3).map(|(_, place)| place), Some(&Place::Nowhere));
        assert!(many.item(4).is_none() && many.download(4).is_none());
    }
}
