//! Walks a TOML table key by key: each value is taken as a certain type, or a problem is noted; what nobody took is
//! an unknown key.
//!
//! A value that is missing and one that is wrong both read as `None`: a wrong one has been noted, so the caller goes
//! on with a default and further problems are found.

use std::cell::RefCell;
use std::fmt::Display;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problems::{Problems, closest};

/// A table that is being read.
pub(super) struct Table<'a> {
    /// As messages name it, such as `[limits]`; empty for the file's top level.
    name: &'static str,
    /// Where it begins.
    pub(super) at: usize,
    table: &'a DeTable<'a>,
    known: RefCell<Vec<&'static str>>,
    problems: &'a Problems,
}

/// A string with its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

/// Keys that people put into the wrong table, and where they belong.
const HOMES: [(&str, &str); 32] = [
    ("hosts", "[[site]]"),
    ("tls", "[[site]]"),
    ("advertise", "[[site]]"),
    ("compress", "[[site]]"),
    ("compress_with_credentials", "[[site]]"),
    ("response_headers", "[[site]]"),
    ("request_headers", "[[site]]"),
    ("server_timing", "[[site]]"),
    ("path", "[[site.route]]"),
    ("proxy", "[[site.route]]"),
    ("files", "[[site.route]]"),
    ("redirect", "[[site.route]]"),
    ("respond", "[[site.route]]"),
    ("strip_prefix", "[[site.route]]"),
    ("fallback", "[[site.route]]"),
    ("index", "[[site.route]]"),
    ("connect_timeout", "[site.route.upstream]"),
    ("response_timeout", "[site.route.upstream]"),
    ("body_timeout", "[site.route.upstream]"),
    ("retries", "[site.route.upstream]"),
    ("health", "[site.route.upstream]"),
    ("balance", "[site.route.upstream]"),
    ("trust_forwarded", "[site.route.upstream]"),
    ("cert", "[[certificate]]"),
    ("key", "[[certificate]]"),
    ("email", "[acme]"),
    ("body_size", "[limits]"),
    ("header_size", "[limits]"),
    ("connections", "[limits]"),
    ("listen", "the top of the file, before the first [section]"),
    ("redirect_http", "the top of the file, before the first [section]"),
    ("drain", "the top of the file, before the first [section]"),
];

impl<'a> Table<'a> {
    pub(super) fn new(
        name: &'static str,
        at: usize,
        table: &'a DeTable<'a>,
        problems: &'a Problems,
    ) -> Table<'a> {
        Table { name, at, table, known: RefCell::default(), problems }
    }

    /// Notes that `key` is wrong.
    pub(super) fn wrong(&self, at: usize, key: &str, message: impl Display) {
        self.problems.problem(at, format_args!("`{key}`: {message}"));
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    pub(super) fn is_empty_list(&self, key: &str) -> bool {
        let value = self.table.get(key).map(Spanned::get_ref);
        matches!(value, Some(DeValue::Array(list)) if list.is_empty())
    }

    /// Where a key stands, if it is there.
    pub(super) fn place(&self, key: &str) -> usize {
        self.table.get_key_value(key).map_or(self.at, |(key, _)| key.span().start)
    }

    fn value(&self, key: &'static str) -> Option<(&'a DeValue<'a>, usize)> {
        self.known.borrow_mut().push(key);
        self.table.get(key).map(|value| (value.get_ref(), value.span().start))
    }

    fn unexpected(&self, key: &str, at: usize, expected: impl Display, value: &DeValue<'_>) {
        self.wrong(at, key, format_args!("expected {expected}, found {}", found(value)));
    }

    /// Any string.
    pub(super) fn text(&self, key: &'static str, expected: &str) -> Option<Text<'a>> {
        match self.value(key)? {
            (DeValue::String(text), at) => Some(Text { text, at }),
            (other, at) => {
                self.unexpected(key, at, expected, other);
                None
            }
        }
    }

    /// A string, or a list of them.
    pub(super) fn texts(&self, key: &'static str, expected: &str) -> Option<Vec<Text<'a>>> {
        let list = match self.value(key)? {
            (DeValue::String(text), at) => return Some(vec![Text { text, at }]),
            (DeValue::Array(list), _) => list,
            (other, at) => {
                self.unexpected(key, at, expected, other);
                return None;
            }
        };
        let texts = list.iter().filter_map(|item| match item.get_ref() {
            DeValue::String(text) => Some(Text { text, at: item.span().start }),
            other => {
                self.unexpected(key, item.span().start, expected, other);
                None
            }
        });
        Some(texts.collect())
    }

    /// A string in some notation: `parse` says what it means, or what is wrong with it and what to do.
    pub(super) fn parsed<T>(
        &self,
        key: &'static str,
        expected: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(key, expected)?;
        self.parse(key, text, expected, parse)
    }

    /// As [`Table::parsed`], for a string or a list of them. Good ones are kept with their places.
    pub(super) fn all_parsed<T>(
        &self,
        key: &'static str,
        expected: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Vec<(T, usize)>> {
        let texts = self.texts(key, expected)?;
        let parsed =
            texts.into_iter().filter_map(|text| Some((self.parse(key, text, expected, &parse)?, text.at)));
        Some(parsed.collect())
    }

    fn parse<T>(
        &self,
        key: &str,
        text: Text<'_>,
        expected: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        match parse(text.text) {
            Ok(value) => Some(value),
            Err(why) => {
                self.wrong(text.at, key, format_args!("expected {expected}, found {:?}; {why}", text.text));
                None
            }
        }
    }

    /// A string in some notation, or a number where `of_number` takes it.
    pub(super) fn parsed_or_number<T>(
        &self,
        key: &'static str,
        expected: &str,
        parse: impl Fn(&str) -> Result<T, String>,
        of_number: impl Fn(u64) -> Result<T, String>,
    ) -> Option<T> {
        let (DeValue::Integer(number), at) = self.value(key)? else {
            return self.parsed(key, expected, parse);
        };
        let number_found = i128::from_str_radix(number.as_str(), number.radix()).ok();
        let outcome = match number_found.and_then(|number| u64::try_from(number).ok()) {
            Some(number) => of_number(number),
            None => Err("use a number that is not negative".to_owned()),
        };
        outcome
            .map_err(|why| self.wrong(at, key, format_args!("expected {expected}, found {number}; {why}")))
            .ok()
    }

    /// One of several words.
    pub(super) fn word<T: Copy>(&self, key: &'static str, words: &[(&'static str, T)]) -> Option<T> {
        let expected = one_of(words.iter().map(|(word, _)| *word));
        self.parsed(key, &expected, |text| self::word(text, words))
    }

    pub(super) fn boolean(&self, key: &'static str) -> Option<bool> {
        match self.value(key)? {
            (DeValue::Boolean(value), _) => Some(*value),
            (DeValue::String(text), at) if matches!(text.as_ref(), "true" | "false") => {
                self.wrong(at, key, format_args!("expected {text}, found \"{text}\"; leave the quotes out"));
                None
            }
            (other, at) => {
                self.unexpected(key, at, "true or false", other);
                None
            }
        }
    }

    /// Whether the value is a truth value; if so, it is taken.
    pub(super) fn boolean_or_else(&self, key: &'static str) -> Option<bool> {
        match self.value(key)? {
            (DeValue::Boolean(value), _) => Some(*value),
            _ => None,
        }
    }

    /// A whole number within bounds.
    pub(super) fn number(&self, key: &'static str, from: u64, to: u64) -> Option<u64> {
        let (value, at) = self.value(key)?;
        let expected = match to {
            u64::MAX if from == 0 => "a whole number".to_owned(),
            u64::MAX => format!("a whole number, {from} or more"),
            _ => format!("a whole number from {from} to {to}"),
        };
        let DeValue::Integer(number) = value else {
            let quotes = matches!(value, DeValue::String(text) if text.parse::<u64>().is_ok());
            let remedy = if quotes { "; leave the quotes out" } else { "" };
            self.wrong(at, key, format_args!("expected {expected}, found {}{remedy}", found(value)));
            return None;
        };
        let read = i128::from_str_radix(number.as_str(), number.radix()).ok();
        let fits = read.and_then(|number| u64::try_from(number).ok()).filter(|n| (from..=to).contains(n));
        if fits.is_none() {
            self.wrong(at, key, format_args!("expected {expected}, found {number}; change it"));
        }
        fits
    }

    /// A table within this one: `[name]` or `key = { … }`.
    pub(super) fn table(&self, key: &'static str, name: &'static str) -> Option<Table<'a>> {
        match self.value(key)? {
            (DeValue::Table(table), at) => Some(Table::new(name, at, table, self.problems)),
            (DeValue::Array(list), at) if list.iter().all(|item| item.get_ref().is_table()) => {
                self.wrong(
                    at,
                    key,
                    format_args!("expected one table, found a list of them; write {name} once"),
                );
                None
            }
            (other, at) => {
                self.unexpected(key, at, format_args!("a table {name}"), other);
                None
            }
        }
    }

    /// The tables of a list: `[[name]]`.
    pub(super) fn tables(&self, key: &'static str, name: &'static str) -> Vec<Table<'a>> {
        let list = match self.value(key) {
            None => return Vec::new(),
            Some((DeValue::Array(list), _)) => list,
            Some((DeValue::Table(_), at)) => {
                let single = &name[1..name.len() - 1];
                self.wrong(
                    at,
                    key,
                    format_args!("expected {name}, found {single}; there may be several: write {name}"),
                );
                return Vec::new();
            }
            Some((other, at)) => {
                self.unexpected(key, at, format_args!("tables {name}"), other);
                return Vec::new();
            }
        };
        let tables = list.iter().filter_map(|item| match item.get_ref() {
            DeValue::Table(table) => Some(Table::new(name, item.span().start, table, self.problems)),
            other => {
                self.unexpected(key, item.span().start, format_args!("a table {name}"), other);
                None
            }
        });
        tables.collect()
    }

    /// Every key with its string: for tables whose keys are the user's own.
    pub(super) fn entries(&self, expected: &str) -> Vec<(Text<'a>, Text<'a>)> {
        let entry = |(key, value): (&'a Spanned<_>, &'a Spanned<DeValue<'a>>)| {
            let name: &'a std::borrow::Cow<'a, str> = key.get_ref();
            let name = Text { text: name, at: key.span().start };
            match value.get_ref() {
                DeValue::String(text) => Some((name, Text { text, at: value.span().start })),
                other => {
                    self.unexpected(name.text, value.span().start, expected, other);
                    None
                }
            }
        };
        self.table.iter().filter_map(entry).collect()
    }

    /// Notes the keys that nobody has asked for.
    pub(super) fn finish(self) {
        let known = self.known.into_inner();
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let place = match self.name {
                "" => "at the top of the file".to_owned(),
                name => format!("in {name}"),
            };
            let home = HOMES.iter().find(|(known, _)| *known == name).map(|(_, home)| *home);
            let remedy = match (home, closest(name, known.iter().copied())) {
                (Some(home), _) => format!("it belongs into {home}"),
                (None, Some(meant)) => format!("did you mean `{meant}`?"),
                (None, None) => {
                    let mut known = known.clone();
                    known.sort_unstable();
                    known.dedup();
                    format!("there are {}", known.join(", "))
                }
            };
            self.problems
                .problem(key.span().start, format_args!("`{name}`: there is no such key {place}; {remedy}"));
        }
    }
}

/// Finds a word, or says which is meant.
pub(super) fn word<T: Copy>(text: &str, words: &[(&'static str, T)]) -> Result<T, String> {
    let known = words.iter().find(|(word, _)| *word == text);
    known.map(|(_, value)| *value).ok_or_else(|| {
        let meant = closest(text, words.iter().map(|(word, _)| *word));
        meant.map_or_else(|| "choose one of them".to_owned(), |meant| format!("did you mean {meant:?}?"))
    })
}

/// `"a", "b" or "c"`.
pub(super) fn one_of<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.map(|word| format!("{word:?}")).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// A value as it is named in "found …".
fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) if text.chars().count() > 60 => "a long text".to_owned(),
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(date) => format!("the date {date}"),
        DeValue::Array(list) if list.is_empty() => "an empty list".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
