//! Single words and sentences: of a shell, of the operating system.

use std::borrow::Cow;

/// `text` as one word of a POSIX shell.
#[must_use]
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,[]".contains(c);
    if !text.is_empty() && text.chars().all(safe) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
    }
}

/// What a library says, without the address of its manual at the end: that is for who programs with it.
#[must_use]
pub fn without_manual(text: &str) -> &str {
    let ends = [": https://", ": http://"].into_iter().filter_map(|link| text.find(link));
    ends.min().and_then(|end| text.get(..end)).unwrap_or(text)
}

/// An operating system's error in words, without Rust's "(os error 2)", or that of a library, [`without_manual`].
#[must_use]
pub fn plain_error(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = without_manual(text.split(" (os error").next().unwrap_or(&text));
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_lowercase().chain(characters).collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_when_needed() {
        assert_eq!(shell_word("/tmp/a-b_c.pem"), "/tmp/a-b_c.pem");
        assert_eq!(shell_word("/tmp/my files/it's"), r"'/tmp/my files/it'\''s'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn errors_of_the_system_are_words() {
        let error = std::io::Error::from_raw_os_error(2);
        assert_eq!(plain_error(&error), "no such file or directory");
    }

    #[test]
    fn manuals_of_libraries_are_left_out() {
        let text = "peer closed connection without sending TLS close_notify: https://docs.rs/rustls/x#unexpected-eof";
        let error = std::io::Error::new(std::io::ErrorKind::UnexpectedEof, text);
        assert_eq!(plain_error(&error), "peer closed connection without sending TLS close_notify");
        assert_eq!(without_manual("see http://a.example/ for x"), "see http://a.example/ for x");
        assert_eq!(without_manual(""), "");
    }
}
