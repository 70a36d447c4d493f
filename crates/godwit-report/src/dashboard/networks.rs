//! What was reached in emulated networks: the tables of comma-separated values that `godwit wan` writes.

use std::path::Path;

use super::history::Usage;
use super::read::{HistoryError, listed, read_file};

/// The most lines of a table.
const MOST_ROWS: usize = 20_000;
/// The most tables of a folder.
const MOST_FILES: usize = 50;
/// The most bytes of a table's name.
const LONGEST_NAME: usize = 60;

/// A network, and how much of it is used.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Network {
    /// Rate in Mbit/s, round-trip time in ms, queue in bandwidth-delay products, one packet of so many lost, one of so many
    /// late, and by how many ms: in the order of [`Network::FACTORS`].
    pub(super) factors: [f64; 6],
    /// The part of the rate that is used, 0 to 1.
    pub(super) used: f64,
}

impl Network {
    /// The names of the columns that make a network.
    pub(super) const FACTORS: [&'static str; 6] =
        ["NetMbps", "RttMs", "QueueRatio", "Loss", "Reorder", "DelayMs"];
}

/// Requests over a network.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Requests {
    pub(super) kind: String,
    pub(super) number: u64,
    /// P50, P95 and P99 in ms.
    pub(super) ms: [f64; 3],
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rows {
    Networks(Vec<Network>),
    Requests(Vec<Requests>),
}

/// A table of what was reached in emulated networks.
#[derive(Clone, Debug)]
pub struct NetworkTable {
    name: String,
    pub(super) rows: Rows,
}

impl NetworkTable {
    /// Reads every `wan-*.csv` of a folder.
    ///
    /// # Errors
    /// If there is none, or one cannot be read or is not right.
    pub fn read_all(folder: &Path) -> Result<Vec<NetworkTable>, HistoryError> {
        let paths = listed(folder, "wan-", ".csv", MOST_FILES)?;
        if paths.is_empty() {
            return Err(HistoryError::new(folder, "holds no wan-*.csv; cargo xtask wan --bless writes them"));
        }
        let table = |path: &std::path::PathBuf| {
            let text = read_file(path)?;
            let text = std::str::from_utf8(&text).map_err(|_| HistoryError::new(path, "is not text"))?;
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let name = stem.strip_prefix("wan-").unwrap_or(&stem);
            NetworkTable::parse(name, text).map_err(|problem| HistoryError::new(path, problem))
        };
        paths.iter().map(table).collect()
    }

    /// Reads a table. Its name is that of the controller, or of the network over which requests were made; `baseline` is
    /// the controller that is the default.
    ///
    /// # Errors
    /// What is wrong with it and where, as the rest of a sentence that begins with the file's name.
    pub fn parse(name: &str, text: &str) -> Result<NetworkTable, String> {
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Err(format!("has a name that is not of 1 to {LONGEST_NAME} bytes"));
        }
        let mut lines = text.lines();
        let columns: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let lines: Vec<&str> = lines.collect();
        if lines.is_empty() || lines.len() > MOST_ROWS {
            return Err(format!("has {} lines of figures, not 1 to {MOST_ROWS}", lines.len()));
        }
        let rows = if columns.contains(&"Usage") {
            Rows::Networks(each(&lines, &columns, network)?)
        } else {
            Rows::Requests(each(&lines, &columns, requests)?)
        };
        Ok(NetworkTable { name: name.to_owned(), rows })
    }

    /// What was tried, in words.
    pub(super) fn label(&self) -> &str {
        if self.name == "baseline" { "default" } else { &self.name }
    }

    /// What a history keeps of it.
    #[must_use]
    pub fn usage(&self) -> Vec<Usage> {
        match &self.rows {
            Rows::Networks(networks) => {
                let count = networks.len();
                let mut usage = Usage::new(format!("{}, {count} networks", self.label()));
                usage.networks = Some(count as u64);
                let mean = mean(networks.iter().map(|network| network.used));
                usage.used = Some((mean * 1e4).round() / 1e4);
                vec![usage]
            }
            Rows::Requests(rows) => rows.iter().map(|row| self.usage_of_requests(row)).collect(),
        }
    }

    fn usage_of_requests(&self, row: &Requests) -> Usage {
        let mut usage = Usage::new(format!("{}, {} requests", self.label(), row.kind));
        let [p50, _, p99] = row.ms;
        (usage.p50_ms, usage.p99_ms) = (Some(p50), Some(p99));
        usage
    }
}

/// The mean; 0 of nothing.
pub(super) fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let number = values.len().max(1) as f64;
    values.sum::<f64>() / number
}

/// A line, by the names of its columns.
struct Line<'a> {
    columns: &'a [&'a str],
    values: Vec<&'a str>,
}

impl Line<'_> {
    fn text(&self, name: &str) -> Result<&str, String> {
        let place = self.columns.iter().position(|column| *column == name);
        let value = place.and_then(|place| self.values.get(place)).copied();
        value.ok_or_else(|| format!("has no {name}"))
    }

    fn number(&self, name: &str) -> Result<f64, String> {
        let text = self.text(name)?;
        let number = text.parse::<f64>().ok().filter(|number| (0.0..=1e15).contains(number));
        number.ok_or_else(|| format!("{name} is no number from 0 on"))
    }
}

fn each<T>(
    lines: &[&str],
    columns: &[&str],
    read: impl Fn(&Line<'_>) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let one = |(number, line): (usize, &&str)| {
        let line = Line { columns, values: line.split(',').collect() };
        read(&line).map_err(|problem| format!("is not right: line {}: {problem}", number.saturating_add(2)))
    };
    lines.iter().enumerate().map(one).collect()
}

fn network(line: &Line<'_>) -> Result<Network, String> {
    let mut factors = [0.0; 6];
    for (factor, name) in factors.iter_mut().zip(Network::FACTORS) {
        *factor = line.number(name)?;
    }
    Ok(Network { factors, used: line.number("Usage")? / 100.0 })
}

fn requests(line: &Line<'_>) -> Result<Requests, String> {
    let kind = line.text("Kind")?;
    if kind.is_empty() || kind.len() > LONGEST_NAME {
        return Err(format!("Kind is not of 1 to {LONGEST_NAME} bytes"));
    }
    let ms = [line.number("P50")?, line.number("P95")?, line.number("P99")?];
    Ok(Requests { kind: kind.to_owned(), number: line.number("Requests")? as u64, ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_their_names() {
        let text = "Usage,RttMs,NetMbps,QueueRatio,Loss,Reorder,DelayMs,More\n\
                    90.0,5,10,1,0,1000,5,x\n80.0,50,10,1,0,0,0,x\n";
        let table = NetworkTable::parse("baseline", text).unwrap();
        let Rows::Networks(networks) = &table.rows else { panic!("{table:?}") };
        assert_eq!(networks[0], Network { factors: [10.0, 5.0, 1.0, 0.0, 1000.0, 5.0], used: 0.9 });
        let mut usage = Usage::new("default, 2 networks");
        (usage.networks, usage.used) = (Some(2), Some(0.85));
        assert_eq!(table.usage(), [usage]);
    }

    #[test]
    fn requests_have_percentiles() {
        let text = "Profile,Kind,Requests,Seed,P50,P95,P99\nuber-a,cold,20000,1,704.725,794.214,1185.364\n";
        let mut usage = Usage::new("uber-a, cold requests");
        (usage.p50_ms, usage.p99_ms) = (Some(704.725), Some(1185.364));
        assert_eq!(NetworkTable::parse("uber-a", text).unwrap().usage(), [usage]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let head = "NetMbps,RttMs,QueueRatio,Loss,Reorder,DelayMs,Usage\n";
        for (text, problem) in [
            (String::new(), "0 lines"),
            (head.to_owned(), "0 lines"),
            (format!("{head}1,2,3,4,5,6,7\n1,2,3,4,5,6\n"), "line 3: has no Usage"),
            (format!("{head}1,2,3,4,5,6,NaN\n"), "line 2: Usage is no number"),
            (format!("{head}1,2,3,4,5,6,-1\n"), "line 2: Usage is no number"),
            ("a,b\n1,2\n".to_owned(), "line 2: has no Kind"),
        ] {
            let error = NetworkTable::parse("cubic", &text).unwrap_err();
            assert!(error.contains(problem), "{text:?}: {error}");
        }
    }
}
