//! SPDX licence expressions.

/// Whether a choice among the licences of an expression is permitted.
pub(super) fn satisfied(expression: &str, permitted: &mut dyn FnMut(&str) -> bool) -> Result<bool, String> {
    // Old packages write `MIT/Apache-2.0` for a choice.
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, permitted };
    let satisfied = parser.choice()?;
    match parser.words.first() {
        None => Ok(satisfied),
        Some(word) => Err(format!("{word:?} is too much")),
    }
}

struct Parser<'a, 'b> {
    words: &'a [&'a str],
    permitted: &'b mut dyn FnMut(&str) -> bool,
}

impl<'a> Parser<'a, '_> {
    fn choice(&mut self) -> Result<bool, String> {
        let mut satisfied = self.all()?;
        while self.take("OR") {
            satisfied |= self.all()?;
        }
        Ok(satisfied)
    }

    fn all(&mut self) -> Result<bool, String> {
        let mut satisfied = self.one()?;
        while self.take("AND") {
            satisfied &= self.one()?;
        }
        Ok(satisfied)
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.take("(") {
            let satisfied = self.choice()?;
            return if self.take(")") { Ok(satisfied) } else { Err("a parenthesis stays open".into()) };
        }
        let name = self.name()?;
        if self.take("WITH") {
            let exception = self.name()?;
            return Ok((self.permitted)(&format!("{name} WITH {exception}")));
        }
        Ok((self.permitted)(name))
    }

    fn name(&mut self) -> Result<&'a str, String> {
        let (name, rest) = self.words.split_first().ok_or("the name of a licence is missing")?;
        if ["AND", "OR", "WITH", "(", ")"].contains(name) {
            return Err(format!("{name:?} stands where a licence should"));
        }
        self.words = rest;
        Ok(name)
    }

    fn take(&mut self, word: &str) -> bool {
        let Some(rest) = self.words.split_first().filter(|(first, _)| **first == word) else { return false };
        self.words = rest.1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::satisfied;

    #[test]
    fn expressions_are_judged() {
        let judge = |expression: &str| satisfied(expression, &mut |name| name == "MIT" || name == "ISC");
        for good in
            ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "MIT AND ISC", "(X OR MIT) AND ISC", "X OR MIT AND ISC"]
        {
            assert_eq!(judge(good), Ok(true), "{good}");
        }
        for bad in ["X", "MIT AND X", "(MIT OR ISC) AND X", "MIT WITH Y", "X OR MIT AND Y"] {
            assert_eq!(judge(bad), Ok(false), "{bad}");
        }
        for broken in ["", "MIT OR", "(MIT", "MIT ISC", "AND"] {
            assert!(judge(broken).is_err(), "{broken}");
        }
    }
}
