//! Writing JSON (RFC 8259): a visitor that cannot leave a bracket open.

use godwit_base::event::Visitor;
use std::io::Write;
use std::time::Duration;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Writes one object at a time into a buffer that is used again.
#[derive(Debug)]
pub(super) struct JsonWriter {
    out: Vec<u8>,
    /// Something stands before in the same object or list.
    comma: bool,
    /// We are in a list, where values have no names.
    in_list: bool,
}

impl JsonWriter {
    pub(super) fn new() -> Self {
        JsonWriter { out: Vec::with_capacity(512), comma: false, in_list: false }
    }

    /// Begins an object, after `prefix`.
    pub(super) fn begin(&mut self, prefix: u8) {
        self.out.clear();
        self.out.extend([prefix, b'{']);
        (self.comma, self.in_list) = (false, false);
    }

    /// Ends the object, with `suffix`.
    pub(super) fn end(&mut self, suffix: u8) -> &[u8] {
        self.out.extend([b'}', suffix]);
        &self.out
    }

    /// Text of two parts with a colon between.
    pub(super) fn qualified(&mut self, name: &str, namespace: &str, word: &str) {
        self.key(name);
        self.out.push(b'"');
        self.escaped(namespace);
        self.out.push(b':');
        self.escaped(word);
        self.out.push(b'"');
    }

    fn key(&mut self, name: &str) {
        if std::mem::replace(&mut self.comma, true) {
            self.out.push(b',');
        }
        if !self.in_list {
            self.quoted(name);
            self.out.push(b':');
        }
    }

    fn quoted(&mut self, text: &str) {
        self.out.push(b'"');
        self.escaped(text);
        self.out.push(b'"');
    }

    fn escaped(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                b'"' | b'\\' => self.out.extend([b'\\', byte]),
                0..0x20 | 0x7f => {
                    self.out.extend_from_slice(b"\\u00");
                    self.hex(byte);
                }
                _ => self.out.push(byte),
            }
        }
    }

    fn hex(&mut self, byte: u8) {
        let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0');
        self.out.extend([digit(byte >> 4), digit(byte & 0xf)]);
    }

    fn nested(&mut self, is_list: bool, brackets: [u8; 2], content: &dyn Fn(&mut dyn Visitor)) {
        let [open, close] = brackets;
        self.out.push(open);
        let in_list = std::mem::replace(&mut self.in_list, is_list);
        self.comma = false;
        content(self);
        (self.comma, self.in_list) = (true, in_list);
        self.out.push(close);
    }

    /// Formats straight into the buffer, which takes everything.
    fn print(&mut self, arguments: std::fmt::Arguments<'_>) {
        let written = self.out.write_fmt(arguments);
        debug_assert!(written.is_ok(), "a vector takes everything");
    }
}

impl Visitor for JsonWriter {
    fn flag(&mut self, name: &str, value: bool) {
        self.key(name);
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    fn number(&mut self, name: &str, value: u64) {
        self.key(name);
        self.print(format_args!("{value}"));
    }

    /// In milliseconds, to the microsecond.
    fn duration(&mut self, name: &str, value: Duration) {
        self.key(name);
        let micros = value.as_micros();
        let (millis, rest) = (micros / 1000, micros % 1000);
        if rest == 0 {
            self.print(format_args!("{millis}"));
        } else {
            self.print(format_args!("{millis}.{rest:03}"));
        }
    }

    fn text(&mut self, name: &str, value: &str) {
        self.key(name);
        self.quoted(value);
    }

    fn bytes(&mut self, name: &str, value: &[u8]) {
        self.key(name);
        self.out.push(b'"');
        value.iter().for_each(|byte| self.hex(*byte));
        self.out.push(b'"');
    }

    fn group(&mut self, name: &str, fields: &dyn Fn(&mut dyn Visitor)) {
        self.key(name);
        self.nested(false, *b"{}", fields);
    }

    fn list(&mut self, name: &str, items: &dyn Fn(&mut dyn Visitor)) {
        self.key(name);
        self.nested(true, *b"[]", items);
    }
}
