//! The names of files in the making.

/// The longest file name that common file systems take, in bytes.
pub const MAX_NAME: usize = 255;

/// The name of the temporary file beside `name`. `mark` tells those of several programs apart.
pub(super) fn part_name(name: &str, mark: u32) -> String {
    let suffix = format!(".godwit-{mark:08x}.part");
    format!(".{}{suffix}", shorten(name, MAX_NAME - 1 - suffix.len()))
}

/// The name of a temporary file that a later run may continue.
pub(super) fn kept_part_name(name: &str) -> String {
    let suffix = ".godwit.part";
    format!(".{}{suffix}", shorten(name, MAX_NAME - 1 - suffix.len()))
}

/// At most `max` bytes of `name`, whole characters only.
pub(super) fn shorten(name: &str, max: usize) -> &str {
    name.get(..name.floor_char_boundary(max)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_the_file_system() {
        let long = "ü".repeat(127);
        let part = part_name(&long, 0xab);
        assert!(part.len() <= MAX_NAME && part.starts_with('.') && part.ends_with(".godwit-000000ab.part"));
        assert_eq!(part_name("x.txt", 1), ".x.txt.godwit-00000001.part");
        assert_eq!(kept_part_name("x.txt"), ".x.txt.godwit.part");
    }
}
