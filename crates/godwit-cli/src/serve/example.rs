//! The example site inside the program, served when no folder is given.

use godwit_layers::files::Page;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! page {
    ($name:literal, $content_type:expr) => {
        Page::new(
            concat!("/", $name),
            $content_type,
            include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/site/", $name)),
        )
    };
}

/// All of its files.
pub(super) static PAGES: [Page; 8] = [
    page!("index.html", HTML),
    page!("style.css", CSS),
    page!("app.js", SCRIPT),
    page!("images/godwit.svg", SVG),
    page!("images/route.svg", SVG),
    page!("images/streams.svg", SVG),
    page!("images/handshake.svg", SVG),
    page!("images/migration.svg", SVG),
];

#[cfg(test)]
mod tests {
    use godwit_layers::files::Embedded;
    use http::{Request, StatusCode};

    use super::*;

    #[test]
    fn every_file_that_the_pages_mention_is_there() {
        let site = Embedded::new(&PAGES);
        let mut mentioned = 0;
        for page in PAGES.iter().filter(|page| page.content_type != SVG) {
            let text = std::str::from_utf8(page.content).unwrap();
            for word in text.split(['"', '\'', '(', ')', '`']) {
                let is_file = [".css", ".js", ".svg"].iter().any(|suffix| word.ends_with(suffix));
                if is_file && !word.contains(char::is_whitespace) && !word.contains('$') {
                    mentioned += 1;
                    let path = format!("/{}", word.trim_start_matches("./").trim_start_matches('/'));
                    let answer = site.respond(&Request::get(&path).body(()).unwrap());
                    assert_eq!(answer.status(), StatusCode::OK, "{path} in {}", page.path);
                }
            }
        }
        assert!(mentioned >= 7, "only {mentioned} files mentioned");
    }

    #[test]
    fn pages_need_nothing_from_elsewhere() {
        for Page { path, content, .. } in PAGES {
            let text = std::str::from_utf8(content).unwrap();
            for pattern in ["src=\"http", "href=\"http", "src=\"//", "url(http", "@import", "fetch(\"http"] {
                assert!(!text.contains(pattern), "{path} has {pattern}");
            }
        }
    }
}
