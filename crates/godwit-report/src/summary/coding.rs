//! A summary as a file, for reports of many machines.
//!
//! The file is `GODWITSK`, a byte for the version, sections, and a checksum of everything before it in the last 8
//! bytes. A section is a tag, a length and that many bytes. Readers skip sections with unknown tags, so that later
//! programs may add some; a change of the meaning of those here needs a new version. The same counters give the
//! same bytes.

use std::fmt;

use super::{Summary, Table};
use crate::dimension::Metric;
use crate::sketch::{Sketch, read_varint, write_varint};

/// What every sketch file starts with.
pub const SKETCH_FILE_START: &[u8; 8] = b"GODWITSK";

const VERSION: u8 = 1;
const CHECKSUM: usize = 8;
const COUNTERS: u64 = 1;
const TABLE: u64 = 2;

/// Why a sketch file cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// It does not begin as sketch files do.
    NotASketch,
    /// A later program wrote it.
    Newer(u8),
    /// It was cut off or changed after it was written.
    Damaged,
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::NotASketch => formatter.write_str("this is no sketch file"),
            Refused::Newer(version) => {
                write!(formatter, "a later version of the program wrote it (format {version})")
            }
            Refused::Damaged => formatter.write_str("the sketch file is cut off or damaged"),
        }
    }
}

impl std::error::Error for Refused {}

impl Summary {
    /// The bytes of the sketch file.
    pub fn encode(&self) -> Vec<u8> {
        let mut file = SKETCH_FILE_START.to_vec();
        file.push(VERSION);
        let mut section = Vec::new();
        let mut copy = self.clone_counters();
        for number in copy.numbers() {
            write_varint(&mut section, *number);
        }
        write_section(&mut file, COUNTERS, &section);
        let mut tables: Vec<&Table> = self.tables.iter().collect();
        tables.sort_by_key(|table| table.metric);
        for table in tables {
            section.clear();
            write_table(&mut section, table);
            write_section(&mut file, TABLE, &section);
        }
        let sum = checksum(&file);
        file.extend_from_slice(&sum.to_le_bytes());
        file
    }

    /// Reads a sketch file.
    pub fn decode(file: &[u8]) -> Result<Summary, Refused> {
        let rest = file.strip_prefix(SKETCH_FILE_START).ok_or(Refused::NotASketch)?;
        let version = *rest.first().ok_or(Refused::Damaged)?;
        if version != VERSION {
            return Err(Refused::Newer(version));
        }
        let (covered, sum) = file.split_last_chunk::<CHECKSUM>().ok_or(Refused::Damaged)?;
        if checksum(covered) != u64::from_le_bytes(*sum) {
            return Err(Refused::Damaged);
        }
        let sections = covered.get(SKETCH_FILE_START.len() + 1..).ok_or(Refused::Damaged)?;
        read_sections(sections).ok_or(Refused::Damaged)
    }

    fn clone_counters(&self) -> Summary {
        Summary { protocols: self.protocols.clone(), tables: Vec::new(), ..*self }
    }

    /// Every counter, in the order of the file. New ones go to the end.
    fn numbers(&mut self) -> impl Iterator<Item = &mut u64> {
        let Summary { lines, broken, first, last, protocols, why_not, .. } = self;
        let protocols = protocols.iter_mut().flat_map(super::Counters::all);
        [lines, broken, first, last].into_iter().chain(protocols).chain(why_not)
    }
}

fn write_section(file: &mut Vec<u8>, tag: u64, bytes: &[u8]) {
    write_varint(file, tag);
    write_varint(file, bytes.len() as u64);
    file.extend_from_slice(bytes);
}

fn read_sections(mut bytes: &[u8]) -> Option<Summary> {
    let mut summary = Summary::new(&[]);
    while !bytes.is_empty() {
        let tag = read_varint(&mut bytes)?;
        let length = usize::try_from(read_varint(&mut bytes)?).ok()?;
        let (mut section, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        match tag {
            COUNTERS => {
                for number in summary.numbers() {
                    *number = read_varint(&mut section)?;
                }
            }
            TABLE => {
                let table = read_table(&mut section)?;
                if summary.table(table.metric).is_some() {
                    return None;
                }
                summary.tables.push(table);
            }
            _ => {}
        }
    }
    Some(summary)
}

/// The metric, then each list: the sketches that hold something, each with its distance from the one before.
fn write_table(bytes: &mut Vec<u8>, table: &Table) {
    write_varint(bytes, table.metric.index() as u64);
    for sketches in table.parts() {
        write_varint(bytes, sketches.iter().filter(|sketch| !sketch.is_empty()).count() as u64);
        let mut next = 0;
        for (place, sketch) in sketches.iter().enumerate().filter(|(_, sketch)| !sketch.is_empty()) {
            write_varint(bytes, (place - next) as u64);
            sketch.encode(bytes);
            next = place + 1;
        }
    }
}

fn read_table(bytes: &mut &[u8]) -> Option<Table> {
    let metric = *Metric::ALL.get(usize::try_from(read_varint(bytes)?).ok()?)?;
    let mut table = Table::new(metric);
    for sketches in table.parts_mut() {
        let mut next = 0_usize;
        for _ in 0..read_varint(bytes)? {
            let place = next.checked_add(usize::try_from(read_varint(bytes)?).ok()?)?;
            *sketches.get_mut(place)? = Sketch::decode(bytes)?;
            next = place + 1;
        }
    }
    Some(table)
}

/// FNV-1a over eight bytes at a time, against accidents.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let word = chunk.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        hash = (hash ^ word).wrapping_mul(0x0100_0000_01b3);
        hash ^= hash >> 29;
    }
    hash
}

/// What the version stands for, besides the code here.
const _: () = assert!(
    crate::sketch::BINS == 1388
        && super::Cell::COUNT == 9720
        && super::UserCell::COUNT == 27_000
        && super::HANDSHAKES == 9,
    "other tables need another version of the file"
);
