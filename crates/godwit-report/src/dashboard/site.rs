//! What all pages of a dashboard have in common: which pages there are, which machines, and whose lines look how.

use std::collections::BTreeSet;

use super::history::{Better, Figure, Machine, Measurement};
use super::networks::NetworkTable;
use super::read::{History, Recorded};
use super::repository::Repository;

/// Everything that pages are made of.
pub(super) struct Site<'a> {
    pub(super) history: &'a History,
    pub(super) repository: Option<&'a Repository>,
    pub(super) networks: &'a [NetworkTable],
    /// The one that was measured last comes first.
    pub(super) setups: Vec<Setup<'a>>,
    pub(super) figures: Vec<FigurePage<'a>>,
    /// Ours first, then those that are compared, by name.
    programs: Vec<&'a str>,
}

/// A machine under some conditions. Figures of different ones have nothing to do with each other.
pub(super) struct Setup<'a> {
    pub(super) machine: &'a Machine,
    pub(super) conditions: &'a str,
    /// The oldest commit first.
    pub(super) files: Vec<&'a Recorded>,
}

/// What a figure is a figure of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Subject<'a> {
    pub(super) scenario: &'a str,
    pub(super) figure: &'a str,
    pub(super) unit: &'a str,
    pub(super) better: Better,
}

/// A figure, and the page about it.
pub(super) struct FigurePage<'a> {
    pub(super) subject: Subject<'a>,
    pub(super) file: String,
}

impl<'a> Subject<'a> {
    pub(super) fn of(figure: &'a Figure) -> Subject<'a> {
        Subject {
            scenario: &figure.scenario,
            figure: &figure.figure,
            unit: &figure.unit,
            better: figure.better,
        }
    }

    pub(super) fn title(&self) -> String {
        format!("{}: {}", self.scenario, self.figure)
    }

    /// `more is better`, or `less is better`.
    pub(super) fn direction(&self) -> &'static str {
        match self.better {
            Better::More => "more is better",
            Better::Less => "less is better",
        }
    }

    /// This figure of a program in a file.
    pub(super) fn in_file<'b>(&self, measurement: &'b Measurement, program: &str) -> Option<&'b Figure> {
        let this = |figure: &&Figure| figure.program == program && Subject::of(figure) == *self;
        measurement.figures.iter().find(this)
    }
}

impl Setup<'_> {
    /// `Processor, 2 cores`.
    pub(super) fn title(&self) -> String {
        let Machine { cpu, cores, .. } = self.machine;
        format!("{cpu}, {cores} {}", if *cores == 1 { "core" } else { "cores" })
    }
}

impl<'a> Site<'a> {
    pub(super) fn new(
        history: &'a History,
        repository: Option<&'a Repository>,
        networks: &'a [NetworkTable],
    ) -> Site<'a> {
        let setups = setups(history);
        let (figures, programs) = (figure_pages(history), programs(history));
        Site { history, repository, networks, setups, figures, programs }
    }

    /// The last file.
    pub(super) fn newest(&self) -> Option<&'a Recorded> {
        self.history.files().last()
    }

    /// The page about a figure.
    pub(super) fn page_of(&self, subject: &Subject<'_>) -> Option<&FigurePage<'a>> {
        self.figures.iter().find(|page| page.subject == *subject)
    }

    /// The number that a program's line has everywhere.
    pub(super) fn look_of(&self, program: &str) -> usize {
        self.programs.iter().position(|known| *known == program).unwrap_or(0)
    }
}

fn setups(history: &History) -> Vec<Setup<'_>> {
    let mut setups: Vec<Setup<'_>> = Vec::new();
    for file in history.files() {
        let Measurement { machine, conditions, .. } = &file.measurement;
        let same = |setup: &&mut Setup<'_>| setup.machine == machine && setup.conditions == conditions;
        match setups.iter_mut().find(same) {
            Some(setup) => setup.files.push(file),
            None => setups.push(Setup { machine, conditions, files: vec![file] }),
        }
    }
    let last = |setup: &Setup<'_>| {
        setup.files.last().map(|file| (file.measurement.time.clone(), file.measurement.measured.clone()))
    };
    setups.sort_by_key(|setup| std::cmp::Reverse(last(setup)));
    setups
}

/// Those of the newest file come first.
fn figure_pages(history: &History) -> Vec<FigurePage<'_>> {
    let mut pages: Vec<FigurePage<'_>> = Vec::new();
    let (mut seen, mut names) = (BTreeSet::new(), BTreeSet::new());
    for figure in history.files().iter().rev().flat_map(|file| &file.measurement.figures) {
        let subject = Subject::of(figure);
        if !seen.insert(subject) {
            continue;
        }
        let stem = file_stem(&subject);
        let numbered = (2_u64..).map(|number| format!("{stem}-{number}"));
        let unused = std::iter::once(stem.clone()).chain(numbered).find(|name| !names.contains(name));
        let name = unused.unwrap_or(stem);
        pages.push(FigurePage { subject, file: format!("{name}.html") });
        names.insert(name);
    }
    pages
}

/// A file's name that is one everywhere, whatever the figure is called.
fn file_stem(subject: &Subject<'_>) -> String {
    let mut stem = String::from("figure");
    for word in [subject.scenario, subject.figure] {
        stem.push('-');
        for character in word.chars().take(60) {
            match character.to_ascii_lowercase() {
                character @ ('a'..='z' | '0'..='9') => stem.push(character),
                _ if stem.ends_with('-') => {}
                _ => stem.push('-'),
            }
        }
    }
    stem.trim_end_matches('-').to_owned()
}

fn programs(history: &History) -> Vec<&str> {
    let figures = history.files().iter().flat_map(|file| &file.measurement.figures);
    let rank = |figure: &Figure| if figure.ours { 0 } else { 2 - u8::from(figure.is_peer()) };
    let mut programs: Vec<(u8, &str)> =
        figures.map(|figure| (rank(figure), figure.program.as_str())).collect();
    let latencies = history.files().iter().flat_map(|file| &file.measurement.latencies);
    programs.extend(latencies.map(|latency| (2, latency.program.as_str())));
    programs.sort_unstable();
    programs.dedup();
    let mut seen = BTreeSet::new();
    programs.into_iter().map(|(_, program)| program).filter(|program| seen.insert(*program)).collect()
}
