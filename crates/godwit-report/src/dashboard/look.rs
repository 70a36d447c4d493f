//! The frame of every page of a dashboard: its style, the way to the other pages, links to commits and files.

use std::fmt::{self, Write};

use super::read::Recorded;
use super::site::{Setup, Site};
use crate::page::{self, escaped};

/// What is added to the style of all pages. Lines differ in colour and in the shape of their points, so that the colour
/// is not needed; `s0` is Godwit's.
const CSS: &str = "\
:root{--s0:#0b62c4;--s1:#c2570c;--s2:#7a3fb3;--s3:#0f7a3d;--s4:#b0256b;--s5:#7a5b00;--s6:#00707a;--barbox:#e4e8ec}\
@media(prefers-color-scheme:dark){:root{--s0:#6cb2ff;--s1:#f29b52;--s2:#c49bf5;--s3:#5fd08c;--s4:#ff8fc0;--s5:#e0c050;\
--s6:#5fd0d8;--barbox:#2a323b}}\
a{color:var(--s0);text-underline-offset:3px}a:focus-visible,.scroll:focus-visible,summary:focus-visible{outline:3px solid var(--s0);outline-offset:2px}\
main{max-width:1120px}\
nav{display:flex;flex-wrap:wrap;gap:4px 20px;border-bottom:1px solid var(--line);padding-bottom:10px;margin-bottom:20px;font-size:15px}\
nav a{padding:4px 0}nav a[aria-current]{color:var(--ink);font-weight:650;text-decoration:none}\
.s0{--c:var(--s0)}.s1{--c:var(--s1)}.s2{--c:var(--s2)}.s3{--c:var(--s3)}.s4{--c:var(--s4)}.s5{--c:var(--s5)}.s6{--c:var(--s6)}\
svg .l{stroke:var(--c);stroke-width:2}svg .ours.l{stroke-width:3.5}svg .point{fill:var(--c);stroke:var(--paper);stroke-width:1}\
svg .band{fill:var(--c);opacity:.12}svg .ours.band{opacity:.2}svg a text{fill:var(--s0)}\
svg .fill{fill:var(--c);opacity:.55}svg .whisker{stroke:var(--ink);stroke-width:2}svg text.strong{font-weight:650}\
svg.spark{width:132px;height:30px;display:inline-block;vertical-align:middle}svg.spark .l{stroke-width:2}\
ul.keys{list-style:none;display:flex;flex-wrap:wrap;gap:4px 18px;padding:0;margin:10px 0;font-size:14px}\
svg.key{width:30px;height:14px;background:none;margin:0 6px -2px 0!important;display:inline-block}\
td.wrap{white-space:normal;min-width:24em;text-align:left}th.left,td.left{text-align:left}\
td.wins b{color:var(--good)}td.loses b{color:var(--bad)}tr.loses>*{background:var(--warnbox)}\
tr.group th{padding-top:14px}\
.bar{display:inline-block;width:110px;height:10px;border-radius:3px;background:var(--barbox);margin-right:8px;overflow:hidden}\
.bar i{display:block;height:100%;background:var(--s0)}\
.beside{display:block;white-space:normal;max-width:24em;margin-left:auto}\
details.small{margin-top:4px}details.small summary{font-weight:500}details.small p{max-width:80ch}\
footer{margin-top:48px;border-top:1px solid var(--line);padding-top:10px;color:var(--dim);font-size:14px}\
.pairs{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(400px,100%),1fr));gap:0 28px}\
.pairs>div{min-width:0}.pairs .bar{width:44px}\
@media(max-width:900px){table.look thead{display:none}table.look,table.look tbody{display:block}\
table.look tr{display:grid;grid-template-columns:1fr 1fr;gap:2px 12px;border-top:1px solid var(--line);padding:8px 10px}\
table.look tr:first-child{border-top:0}\
table.look th,table.look td{border:0;padding:1px 0;text-align:left;white-space:normal;position:static;background:none}\
.beside{margin-left:0}table.look tr.loses{background:var(--warnbox)}table.look th,table.look td.wide{grid-column:1/3}\
table.look td[data-label]::before{content:attr(data-label);display:block;color:var(--dim);font-size:13px}}";

/// The pages that stand beside those of figures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Overview,
    Latencies,
    Networks,
    Counts,
    Figure,
}

impl Place {
    const BESIDE: [Place; 4] = [Place::Overview, Place::Latencies, Place::Networks, Place::Counts];

    pub(super) fn file(self) -> &'static str {
        match self {
            Place::Overview | Place::Figure => "index.html",
            Place::Latencies => "latencies.html",
            Place::Networks => "networks.html",
            Place::Counts => "counts.html",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Place::Overview | Place::Figure => "Overview",
            Place::Latencies => "Latencies",
            Place::Networks => "Emulated networks",
            Place::Counts => "Instruction counts",
        }
    }
}

/// What stands in a line or two, in bytes.
const FEW_WORDS: usize = 200;

/// The folder of the files that pages are made from.
pub(super) const DATA: &str = "data";

pub(super) fn begin(out: &mut String, title: &str, place: Place) -> fmt::Result {
    page::begin_with(out, title, CSS)?;
    out.write_str("<nav aria-label=\"Pages\">")?;
    for beside in Place::BESIDE {
        let current = if beside == place { " aria-current=\"page\"" } else { "" };
        write!(out, "<a href=\"{}\"{current}>{}</a>", beside.file(), beside.title())?;
    }
    out.write_str("</nav>\n")
}

/// The heading. Its class is `good`, `bad` or `open`.
pub(super) fn head(out: &mut String, over: &str, class: &str, title: &str, about: &str) -> fmt::Result {
    writeln!(
        out,
        "<header><p class=\"over\">{}</p><h1 class=\"{class}\">{}</h1><p class=\"small\">{}</p></header>",
        escaped(over),
        escaped(title),
        escaped(about)
    )
}

pub(super) fn end(out: &mut String) -> fmt::Result {
    out.write_str(
        "<footer><p>Made by <code>godwit dashboard</code>. Figures are medians; in brackets, and as bands in charts, \
         stand the least and the most of all runs. Figures are only compared with others of the same measurement.</p></footer>",
    )?;
    out.write_str(page::END)
}

/// How something was measured. Where that takes many words, they are folded away.
pub(super) fn conditions(out: &mut String, setup: &Setup<'_>) -> fmt::Result {
    let (kernel, conditions) = (escaped(&setup.machine.kernel), escaped(setup.conditions));
    if conditions.len() <= FEW_WORDS {
        return write!(out, "<p class=\"small\">Kernel {kernel}; {conditions}</p>");
    }
    write!(
        out,
        "<details class=\"small\"><summary>Kernel {kernel}; conditions</summary><p>{conditions}</p></details>"
    )
}

/// A commit's first digits, as a link to it where that is known.
pub(super) fn commit(out: &mut String, site: &Site<'_>, file: &Recorded) -> fmt::Result {
    let short = escaped(file.measurement.short());
    match commit_address(site, file) {
        Some(address) => write!(out, "<a href=\"{}\"><code>{short}</code></a>", escaped(&address)),
        None => write!(out, "<code>{short}</code>"),
    }
}

pub(super) fn commit_address(site: &Site<'_>, file: &Recorded) -> Option<String> {
    site.repository.map(|repository| repository.commit(&file.measurement.commit))
}

/// Where a file lies, seen from a page.
pub(super) fn file_address(file: &Recorded) -> String {
    format!("{DATA}/{}", file.name)
}

/// The columns that hold words and begin at the left.
const LEFT: [&str; 6] =
    ["verdict", "times as good", "over commits", "file", "in their order", "what the commit does"];

/// Opens what is folded away where a chart has shown it already.
pub(super) fn all_values(out: &mut String, is_drawn: bool) -> fmt::Result {
    let open = if is_drawn { "" } else { " open" };
    write!(out, "<details{open}><summary>All values</summary>")
}

/// Opens a table that scrolls sideways in narrow windows.
pub(super) fn table(out: &mut String, name: &str, class: &str, columns: &[&str]) -> fmt::Result {
    let name = escaped(name);
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{name}\"><table role=\"table\"{class}>\
         <thead><tr>"
    )?;
    for column in columns {
        let class = if LEFT.contains(column) { " class=\"left\"" } else { "" };
        write!(out, "<th scope=\"col\"{class}>{}</th>", escaped(column))?;
    }
    out.write_str("</tr></thead><tbody>")
}

pub(super) const END_TABLE: &str = "</tbody></table></div>\n";
