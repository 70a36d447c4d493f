//! A flame graph as one SVG file: a box for each function of each stack, as wide as the time that was spent in it and in what it
//! calls, above its caller. A browser shows the whole name and the share where the pointer is.

use super::stacks::Stacks;
use std::collections::BTreeMap;
use std::fmt::Write;

/// All in pixels: width, height of a box, room above and below, and the least width of a box that is drawn.
const WIDTH: f64 = 1600.0;
const HEIGHT: f64 = 17.0;
const MARGIN: f64 = 40.0;
const NARROWEST: f64 = 0.3;
/// How wide a letter is.
const LETTER: f64 = 6.6;

/// A function where it was called.
#[derive(Default)]
struct Node<'a> {
    total: u64,
    callees: BTreeMap<&'a str, Node<'a>>,
}

impl<'a> Node<'a> {
    fn of(stacks: &'a Stacks) -> Node<'a> {
        let mut root = Node::default();
        for (stack, count) in stacks {
            root.total += count;
            let mut at = &mut root;
            for name in stack {
                at = at.callees.entry(name).or_default();
                at.total += count;
            }
        }
        root
    }

    /// Boxes above one another.
    fn depth(&self) -> usize {
        1 + self.callees.values().map(Node::depth).max().unwrap_or(0)
    }
}

/// The drawing.
pub(super) fn graph(title: &str, stacks: &Stacks) -> String {
    let root = Node::of(stacks);
    let height = root.depth() as f64 * HEIGHT + 2.0 * MARGIN;
    let mut drawing = Drawing { total: root.total.max(1) as f64, height, svg: String::new() };
    let title = escape(title);
    drawing.line(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"monospace\" font-size=\"11\">"
    ));
    drawing.line(format_args!("<title>{title}</title><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>"));
    drawing.line(format_args!("<text x=\"8\" y=\"22\" font-size=\"15\">{title}</text>"));
    drawing.node("all", &root, 0.0, 0);
    drawing.line(format_args!("</svg>"));
    drawing.svg
}

struct Drawing {
    total: f64,
    height: f64,
    svg: String,
}

impl Drawing {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // A string takes whatever is written into it.
        let _ = writeln!(self.svg, "{line}");
    }

    fn node(&mut self, name: &str, node: &Node<'_>, left: f64, level: usize) {
        let share = node.total as f64 / self.total;
        let width = share * WIDTH;
        if width < NARROWEST {
            return;
        }
        let top = self.height - MARGIN - (level as f64 + 1.0) * HEIGHT;
        let (fill, whole) = (colour(name), escape(name));
        let (across, below) = (width - 0.2, top + 12.0);
        let shown: String = name.chars().take((width / LETTER) as usize).collect();
        let shown = if shown.len() < name.len() && shown.len() < 3 { String::new() } else { escape(&shown) };
        self.line(format_args!(
            "<g><title>{whole}: {:.2} %</title><rect x=\"{left:.1}\" y=\"{top}\" width=\"{across:.1}\" height=\"16\" \
             fill=\"{fill}\"/><text x=\"{:.1}\" y=\"{below}\">{shown}</text></g>",
            share * 100.0,
            left + 2.0
        ));
        let mut at = left;
        for (name, callee) in &node.callees {
            self.node(name, callee, at, level + 1);
            at += callee.total as f64 / self.total * WIDTH;
        }
    }
}

/// Our own functions are warm, the others cold; each has its own shade.
fn colour(name: &str) -> String {
    let hash = name.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    let hue = if name.contains("godwit") { 15 + hash % 30 } else { 190 + hash % 40 };
    format!("hsl({hue},70%,{}%)", 65 + hash / 64 % 15)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_as_wide_as_their_share_and_stand_on_their_callers() {
        let stack = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let stacks = Stacks::from([(stack("main a<b>"), 3), (stack("main c"), 1)]);
        let svg = graph("a & b", &stacks);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("<title>a &amp; b</title>"));
        assert!(
            svg.contains("<title>main: 100.00 %</title><rect x=\"0.0\" y=\"57\" width=\"1599.8\""),
            "{svg}"
        );
        assert!(svg.contains("<title>a&lt;b&gt;: 75.00 %</title><rect x=\"0.0\" y=\"40\" width=\"1199.8\""));
        assert!(svg.contains("<title>c: 25.00 %</title><rect x=\"1200.0\" y=\"40\" width=\"399.8\""));
        assert!(!svg.contains("<a<"), "names are escaped");
    }

    #[test]
    fn what_is_too_narrow_is_left_out() {
        let stacks = Stacks::from([(vec!["wide".to_owned()], 100_000), (vec!["narrow".to_owned()], 1)]);
        assert!(!graph("", &stacks).contains("narrow"));
    }
}
