//! What every page has: its look, its sections, and letters that are safe in it.
//!
//! A page needs nothing else: no network, no fonts, no scripts. It follows the reader's light or dark theme and is
//! legible on a phone. Whatever is written goes to a string, which does not fail.

use std::fmt::{self, Write};

/// The page's style sheet, for other pages that want to look alike. `--a` is the control's colour, `--b` HTTP/3's.
pub const CSS: &str = "\
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--dim:#5c6670;--line:#d7dce1;--box:#f4f6f8;\
--a:#c2570c;--b:#0b62c4;--good:#0f7a3d;--bad:#b3261e;--warn:#8a5a00;--warnbox:#fff5df}\
@media(prefers-color-scheme:dark){:root{--paper:#14181d;--ink:#e7ebef;--dim:#9aa6b2;--line:#323a43;--box:#1d232a;\
--a:#f29b52;--b:#6cb2ff;--good:#5fd08c;--bad:#ff8a80;--warn:#f0c060;--warnbox:#2d2614}}\
*{box-sizing:border-box}\
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}\
main{max-width:1040px;margin:0 auto;padding:20px 16px 48px}\
h1{font-size:clamp(20px,3.2vw,30px);line-height:1.3;margin:8px 0;font-weight:650;border-left:5px solid var(--dim);padding-left:14px}\
h1.good{border-color:var(--good)}h1.bad{border-color:var(--bad)}\
h2{font-size:20px;margin:0 0 4px}h3{font-size:16px;margin:20px 0 6px}\
section{margin-top:40px}p{margin:4px 0}\
.over{color:var(--dim);font-size:15px}.small{color:var(--dim);font-size:14px}\
.cards{display:grid;grid-template-columns:repeat(3,1fr);gap:12px;margin-top:24px}\
.card{background:var(--box);border-radius:10px;padding:14px 16px;font-size:14px}\
.card p{color:var(--dim)}.card strong{font-size:30px;line-height:1.3}\
.card.good strong{color:var(--good)}.card.bad strong{color:var(--bad)}\
@media(max-width:600px){.cards{grid-template-columns:1fr}.card{display:grid;grid-template-columns:1fr auto;gap:0 12px}\
.card strong{grid-column:2;grid-row:1/4;align-self:center}}\
.legend{font-size:14px;margin:10px 0}.key{display:inline-block;width:14px;height:14px;border-radius:3px;margin:0 6px -2px 14px}\
.key:first-child{margin-left:0}.key.a{background:var(--a)}.key.b{background:var(--b)}\
svg{display:block;width:100%;height:auto}svg.narrow{display:none}\
@media(max-width:600px){svg.wide{display:none}svg.narrow{display:block}}\
svg text{fill:var(--dim);font-size:13px;font-family:inherit}svg text.ink{fill:var(--ink)}\
svg .grid{stroke:var(--line);stroke-width:1}svg .la{stroke:var(--a)}svg .lb{stroke:var(--b)}\
svg .l{fill:none;stroke-width:3;stroke-linejoin:round;stroke-linecap:round}svg .faint{opacity:.38}\
svg .dash{stroke-dasharray:3 6}svg .fa{fill:var(--a)}svg .fb{fill:var(--b)}\
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:8px;margin:8px 0 4px}\
table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums;width:100%}\
th,td{padding:5px 10px;text-align:right;white-space:nowrap;border-top:1px solid var(--line)}\
tr:first-child>*{border-top:0}\
th:first-child{text-align:left;position:sticky;left:0;background:var(--paper);font-weight:500}\
thead th{color:var(--dim);font-weight:500}tr.group th{font-weight:650}tr.d>*{border-top:0}\
tr.d th,tr.d td{color:var(--dim)}tr.d td.good{color:var(--good);font-weight:650}tr.d td.bad{color:var(--bad);font-weight:650}\
td.faint,tr.d td.faint{color:var(--dim);opacity:.75}\
th .key{margin:0 6px -2px 0;width:11px;height:11px}\
table.plain{width:auto}\
.notes{padding:0;list-style:none}.notes li{background:var(--box);border-radius:8px;padding:10px 14px;margin:8px 0}\
.notes li.warning{background:var(--warnbox)}.notes b{color:var(--warn)}\
dt{font-weight:650;margin-top:12px}dd{margin:0;color:var(--dim)}\
details{margin-top:12px}summary{cursor:pointer;font-weight:600}";

/// Opens a page.
///
/// # Errors
/// If it cannot be written.
pub fn begin(out: &mut impl Write, title: &str) -> fmt::Result {
    begin_with(out, title, "")
}

/// The same with more in its style sheet, which is trusted.
///
/// # Errors
/// If it cannot be written.
pub fn begin_with(out: &mut impl Write, title: &str, style: &str) -> fmt::Result {
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{}</title><style>{CSS}{style}</style></head><body><main>",
        escaped(title)
    )
}

/// Closes a page.
pub const END: &str = "</main></body></html>\n";

/// Opens a section.
///
/// # Errors
/// If it cannot be written.
pub fn section(out: &mut impl Write, title: &str, about: &str) -> fmt::Result {
    write!(out, "<section><h2>{}</h2><p class=\"small\">{}</p>", escaped(title), escaped(about))
}

/// Closes a section.
pub const END_SECTION: &str = "</section>\n";

/// What the two colours stand for.
///
/// # Errors
/// If it cannot be written.
pub fn legend(out: &mut impl Write, [first, second]: [&str; 2]) -> fmt::Result {
    write!(
        out,
        "<p class=\"legend\"><span class=\"key a\"></span>{} <span class=\"key b\"></span>{}</p>",
        escaped(first),
        escaped(second)
    )
}

/// A difference, large.
#[derive(Clone, Copy, Debug)]
pub struct Card<'a> {
    /// `good`, `bad` or `open`.
    pub class: &'a str,
    /// What differs.
    pub title: &'a str,
    /// By how much.
    pub change: &'a str,
    /// What that means.
    pub word: &'a str,
    /// The figures themselves.
    pub from_to: [&'a str; 2],
}

/// Differences, next to each other.
///
/// # Errors
/// If they cannot be written.
pub fn cards<'a>(out: &mut impl Write, cards: impl IntoIterator<Item = Card<'a>>) -> fmt::Result {
    out.write_str("<div class=\"cards\">")?;
    for Card { class, title, change, word, from_to: [from, to] } in cards {
        write!(
            out,
            "<div class=\"card {class}\"><p>{title}</p><strong>{change}</strong><p>{word}</p><p>{from} &rarr; {to}</p></div>",
        )?;
    }
    out.write_str("</div>\n")
}

/// `text` for use in HTML, in attributes too.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            character => safe.push(character),
        }
    }
    safe
}
