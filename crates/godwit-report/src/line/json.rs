//! Just enough JSON to walk over the members of one object.

use memchr::memchr2;

/// How deep values of unknown keys may nest.
const DEPTH: u32 = 32;

/// A member's value as it stands in the line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// What stands between the quotes; escapes are left as they are.
    Text(&'a [u8]),
    Number(&'a [u8]),
    Other,
}

impl<'a> Value<'a> {
    pub(super) fn text(self) -> Option<&'a [u8]> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number that is not negative; a fraction is cut off.
    pub(super) fn whole(self) -> Option<u64> {
        self.scaled(0)
    }

    /// A decimal number in thousandths: the fourth digit after the point and those after it are cut off, and
    /// what is below 0 counts as 0.
    pub(super) fn thousandths(self) -> Option<u64> {
        self.scaled(3)
    }

    fn scaled(self, places: u32) -> Option<u64> {
        let Value::Number(digits) = self else { return None };
        let mut number = 0_u64;
        let mut rest = digits.iter();
        for &byte in rest.by_ref() {
            match byte {
                b'0'..=b'9' => number = number.saturating_mul(10).saturating_add(u64::from(byte - b'0')),
                b'.' => break,
                _ => return unusual(digits, places),
            }
        }
        let mut missing = places;
        for &byte in rest {
            match byte {
                b'0'..=b'9' if missing > 0 => {
                    number = number.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
                    missing -= 1;
                }
                b'0'..=b'9' => {}
                _ => return unusual(digits, places),
            }
        }
        Some(number.saturating_mul(10_u64.pow(missing)))
    }
}

/// Numbers with a sign or an exponent.
#[cold]
fn unusual(digits: &[u8], places: u32) -> Option<u64> {
    let number: f64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((number * 10_f64.powi(places as i32)) as u64)
}

/// Walks over the members of an object.
pub(super) struct Scanner<'a> {
    rest: &'a [u8],
    first: bool,
}

impl<'a> Scanner<'a> {
    /// A scanner behind the opening brace of `line`.
    pub(super) fn object(line: &'a [u8]) -> Option<Scanner<'a>> {
        let mut scanner = Scanner { rest: line, first: true };
        scanner.skip_space();
        scanner.take(b'{')?;
        Some(scanner)
    }

    /// The next member, `Some(None)` behind the last, `None` if the line is broken.
    #[expect(clippy::option_option, reason = "broken, finished and a member are three outcomes")]
    #[inline]
    pub(super) fn next_member(&mut self) -> Option<Option<(&'a [u8], Value<'a>)>> {
        self.skip_space();
        match self.rest.first()? {
            b'}' => {
                self.take(b'}')?;
                self.skip_space();
                return self.rest.is_empty().then_some(None);
            }
            b',' if !self.first => {
                self.take(b',')?;
                self.skip_space();
            }
            _ if self.first => {}
            _ => return None,
        }
        self.first = false;
        self.take(b'"')?;
        let key = self.key()?;
        self.skip_space();
        self.take(b':')?;
        self.skip_space();
        let value = self.value()?;
        Some(Some((key, value)))
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some((b' ' | b'\t' | b'\r', rest)) = self.rest.split_first() {
            self.rest = rest;
        }
    }

    #[inline]
    fn take(&mut self, wanted: u8) -> Option<()> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        (byte == wanted).then_some(())
    }

    /// A key is short: byte by byte is quicker than a search.
    #[inline]
    fn key(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|&byte| byte == b'"' || byte == b'\\')?;
        let (key, rest) = self.rest.split_at_checked(end)?;
        if rest.first() == Some(&b'\\') {
            return self.text();
        }
        self.rest = rest.get(1..)?;
        Some(key)
    }

    /// The rest of a string whose opening quote was taken.
    fn text(&mut self) -> Option<&'a [u8]> {
        let mut end = 0;
        loop {
            end += memchr2(b'"', b'\\', self.rest.get(end..)?)?;
            if self.rest.get(end) == Some(&b'"') {
                break;
            }
            end += 2;
        }
        let (text, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest.get(1..)?;
        Some(text)
    }

    #[inline]
    fn value(&mut self) -> Option<Value<'a>> {
        match self.rest.first()? {
            b'"' => {
                self.take(b'"')?;
                Some(Value::Text(self.text()?))
            }
            b'-' | b'0'..=b'9' => {
                let end = self
                    .rest
                    .iter()
                    .position(|byte| !matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'));
                let (digits, rest) = self.rest.split_at_checked(end?)?;
                self.rest = rest;
                Some(Value::Number(digits))
            }
            b'{' | b'[' => self.nested(),
            _ => self.literal(),
        }
    }

    fn literal(&mut self) -> Option<Value<'a>> {
        let literals: [&[u8]; 3] = [b"null", b"true", b"false"];
        self.rest = literals.iter().find_map(|literal| self.rest.strip_prefix(*literal))?;
        Some(Value::Other)
    }

    /// Skips an object or a list by its brackets.
    #[cold]
    fn nested(&mut self) -> Option<Value<'a>> {
        let mut depth = 0;
        loop {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            match byte {
                b'{' | b'[' if depth == DEPTH => return None,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                b'"' => _ = self.text()?,
                _ => {}
            }
            if depth == 0 {
                return Some(Value::Other);
            }
        }
    }
}
