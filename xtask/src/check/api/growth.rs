//! What keeps a library's public face from growing: settings that others may write out field by field, and builders that
//! break their chain with a `Result`.

/// How the names of records of settings end.
const SETTINGS: [&str; 2] = ["Config", "Settings"];

/// What a crate's list has of it.
pub(super) fn findings(name: &str, list: &[String]) -> Vec<String> {
    let closed = list.iter().filter_map(|line| closed_settings(list, line)).map(|path| {
        format!("{name}: {path} has public fields and is not #[non_exhaustive]: no setting can be added")
    });
    let broken = list.iter().filter_map(|line| broken_chain(line)).map(|path| {
        format!("{name}: {path} takes a builder and gives a Result: let the last step say what did not fit")
    });
    closed.chain(broken).collect()
}

/// The path of settings with public fields that others may write out.
fn closed_settings<'a>(list: &[String], line: &'a str) -> Option<&'a str> {
    let rest = line.strip_prefix("struct ")?;
    let (path, attributes) = rest.split_once(' ').unwrap_or((rest, ""));
    let bare = path.split('<').next()?;
    let is_settings = SETTINGS.iter().any(|end| bare.ends_with(end));
    let field = format!("field {bare}.");
    let has_fields = list.iter().any(|line| line.starts_with(&field));
    (is_settings && has_fields && !attributes.contains("non_exhaustive")).then_some(bare)
}

/// The path of a method from `self` to `Result<Self>`.
fn broken_chain(line: &str) -> Option<&str> {
    let (path, signature) = line.strip_prefix("fn ")?.split_once(": ")?;
    let (_, arguments) = signature.split_once('(')?;
    let takes_itself = arguments.starts_with("self") || arguments.starts_with("mut self");
    (takes_itself && signature.contains("-> Result<Self")).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &[&str]) -> Vec<String> {
        findings("x", &lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn settings_can_grow() {
        let fields = ["field a::Settings.b: u8", "field Config.c: u8"];
        let closed = ["struct a::Settings", "struct Config #[derive(Debug)]"].map(str::to_owned);
        let open = closed.clone().map(|line| line + " #[non_exhaustive]");
        let with = |first: &[String; 2]| told(&[&first[0], &first[1], fields[0], fields[1]]);
        assert_eq!(with(&open), [""; 0]);
        let told_of = with(&closed);
        assert_eq!(told_of.len(), 2, "{told_of:?}");
        assert!(told_of[0].starts_with("x: a::Settings has public fields"), "{told_of:?}");
        assert_eq!(
            told(&["struct Config", "struct Page", "field Page.text: str"]),
            [""; 0],
            "nothing public"
        );
    }

    #[test]
    fn builders_chain() {
        let lines = [
            "fn B::key: fn key(mut self, key: &[u8]) -> Result<Self, E>",
            "fn B::read: fn read(path: &Path) -> Result<Self, E>",
            "fn B::build: fn build(self) -> Result<C, E>",
        ];
        let told_of = told(&lines);
        assert_eq!(told_of.len(), 1, "{told_of:?}");
        assert!(told_of[0].starts_with("x: B::key takes a builder"), "{told_of:?}");
    }
}
