//! Everything a report needs to know of any number of log lines, in memory that does not grow with them.
//!
//! Counters, and for each metric a table of sketches by class of request and one by group of users. Summaries of
//! parts merge into exactly the summary of the whole, in any order.

mod coding;
#[cfg(test)]
mod tests;

use crate::dimension::{BUCKETS, Cell, Metric, Protocol, Reuse, Size, Tls, UserCell, WhyNot};
use crate::line::Facts;
use crate::sketch::{Sketch, bin_of};

pub use coding::{Refused, SKETCH_FILE_START};

/// What was counted of a protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests in all.
    pub requests: u64,
    /// Responses with a status of 400 or more, which are left out of the latencies.
    pub errors: u64,
    /// Requests that did not end well, which are left out of the latencies.
    pub unfinished: u64,
    /// Tunnels and WebSockets, which are left out of the latencies.
    pub tunnels: u64,
    /// Requests that are in the latencies.
    pub kept: u64,
    /// Requests among those kept whose delivery to the client is known.
    pub delivered: u64,
}

impl Counters {
    fn all(&mut self) -> [&mut u64; 6] {
        let Counters { requests, errors, unfinished, tunnels, kept, delivered } = self;
        [requests, errors, unfinished, tunnels, kept, delivered]
    }
}

/// The sketches of one metric.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) metric: Metric,
    /// By [`Cell::index`].
    pub(crate) cells: Vec<Sketch>,
    /// By [`UserCell::index`].
    pub(crate) users: Vec<Sketch>,
    /// First requests on a connection, by protocol and then by handshake.
    pub(crate) handshakes: Vec<Sketch>,
}

pub(crate) const HANDSHAKES: usize = Protocol::COUNT * Tls::COUNT;

impl Table {
    pub(crate) fn new(metric: Metric) -> Table {
        Table {
            metric,
            cells: vec![Sketch::new(); Cell::COUNT],
            users: vec![Sketch::new(); UserCell::COUNT],
            handshakes: vec![Sketch::new(); HANDSHAKES],
        }
    }

    /// Its lists of sketches.
    pub(crate) fn parts(&self) -> [&Vec<Sketch>; 3] {
        [&self.cells, &self.users, &self.handshakes]
    }

    pub(crate) fn parts_mut(&mut self) -> [&mut Vec<Sketch>; 3] {
        [&mut self.cells, &mut self.users, &mut self.handshakes]
    }

    fn merge(&mut self, other: &Table) {
        for (mine, theirs) in self.parts_mut().into_iter().zip(other.parts()) {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                mine.merge(theirs);
            }
        }
    }

    /// The sketch of all requests whose cell is wanted.
    pub(crate) fn gather(&self, wanted: impl Fn(Cell) -> bool) -> Sketch {
        let mut sum = Sketch::new();
        for (cell, sketch) in Cell::all().zip(&self.cells) {
            if !sketch.is_empty() && wanted(cell) {
                sum.merge(sketch);
            }
        }
        sum
    }
}

/// What is known of any number of log lines.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Lines read, broken ones too.
    pub lines: u64,
    /// Lines that are not of the log's format.
    pub broken: u64,
    /// The earliest time, as in [`Facts::time`]; 0 if there is none.
    pub first: u64,
    /// The latest time.
    pub last: u64,
    /// By [`Protocol::index`].
    pub protocols: [Counters; Protocol::COUNT],
    /// Requests by reason for not coming by HTTP/3.
    pub why_not: [u64; WhyNot::COUNT],
    tables: Vec<Table>,
}

impl Summary {
    /// A summary of nothing that will hold these metrics.
    pub fn new(metrics: &[Metric]) -> Summary {
        Summary {
            lines: 0,
            broken: 0,
            first: 0,
            last: 0,
            protocols: Default::default(),
            why_not: Default::default(),
            tables: metrics.iter().map(|&metric| Table::new(metric)).collect(),
        }
    }

    /// The metrics whose sketches it holds.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> + '_ {
        self.tables.iter().map(|table| table.metric)
    }

    pub(crate) fn table(&self, metric: Metric) -> Option<&Table> {
        self.tables.iter().find(|table| table.metric == metric)
    }

    /// Counts one line, without its line end. Whether it was a line of the log.
    pub fn add_line(&mut self, line: &[u8]) -> bool {
        self.lines += 1;
        let Some(facts) = Facts::read(line) else {
            self.broken += 1;
            return false;
        };
        self.add(&facts);
        true
    }

    /// Counts one request.
    pub fn add(&mut self, facts: &Facts) {
        self.extend_period(facts.time, facts.time);
        if let Some(count) = facts.why_not.and_then(|why| self.why_not.get_mut(why.index())) {
            *count += 1;
        }
        let Some(counters) = self.protocols.get_mut(facts.protocol.index()) else { return };
        counters.requests += 1;
        let left_out = match () {
            () if facts.tunnel => &mut counters.tunnels,
            () if facts.status >= 400 => &mut counters.errors,
            () if !facts.finished => &mut counters.unfinished,
            () => &mut counters.kept,
        };
        *left_out += 1;
        if facts.tunnel || facts.status >= 400 || !facts.finished {
            return;
        }
        let known = |metric: Metric| facts.times.get(metric.index()).is_some_and(Option::is_some);
        counters.delivered += u64::from(known(Metric::Delivered) || known(Metric::LastMile));
        self.add_times(facts);
    }

    fn add_times(&mut self, facts: &Facts) {
        let Facts { protocol, family, reuse, arm, .. } = *facts;
        let size = Size::of(facts.size);
        let cell = Cell { protocol, size, family, reuse, arm, hour: facts.hour() }.index();
        let bucket = (facts.user % BUCKETS as u64) as u8;
        let user = UserCell { bucket, protocol, arm, reuse, size }.index();
        let handshake = protocol.index() * Tls::COUNT + facts.tls.index();
        for table in &mut self.tables {
            let Some(micros) = facts.times.get(table.metric.index()).copied().flatten() else { continue };
            let bin = bin_of(micros);
            let first = table.handshakes.get_mut(handshake).filter(|_| reuse == Reuse::First);
            let sketches = [table.cells.get_mut(cell), table.users.get_mut(user), first];
            for sketch in sketches.into_iter().flatten() {
                sketch.add(bin, 1);
            }
        }
    }

    fn extend_period(&mut self, first: u64, last: u64) {
        if first != 0 && (self.first == 0 || first < self.first) {
            self.first = first;
        }
        self.last = self.last.max(last);
    }

    /// Adds everything that `other` counted. Metrics that only one of them holds are dropped: what is left
    /// describes the same requests.
    pub fn merge(&mut self, other: &Summary) {
        self.extend_period(other.first, other.last);
        self.lines = self.lines.saturating_add(other.lines);
        self.broken = self.broken.saturating_add(other.broken);
        for (mine, theirs) in self.protocols.iter_mut().zip(&other.protocols) {
            for (mine, theirs) in mine.all().into_iter().zip(theirs.clone().all()) {
                *mine = mine.saturating_add(*theirs);
            }
        }
        for (mine, theirs) in self.why_not.iter_mut().zip(other.why_not) {
            *mine = mine.saturating_add(theirs);
        }
        self.tables.retain(|table| other.table(table.metric).is_some());
        for table in &mut self.tables {
            if let Some(theirs) = other.table(table.metric) {
                table.merge(theirs);
            }
        }
    }
}
