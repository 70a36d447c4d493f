//! The same site over HTTP/2 and HTTP/3 behind the same bad link, side by side.
//!
//! - `testbed` is what everything runs on: `site` is what is visited, by `godwit serve` as everybody runs it; the link is one
//!   for each visit (`preset`, `godwit-relay`), between two network namespaces, over the kernel's own TCP.
//! - `visitors` load the site, `samples` records how long that takes, `table`, `live`, `html` and `json` show it.
//!
//! Both protocols are treated alike: the same server, certificate, files, order of requests, number of visitors and
//! chances of loss. Nothing is left out of the figures; what was not answered counts with the time it was waited for.

mod chart;
mod html;
mod json;
mod live;
mod preset;
mod samples;
mod setting;
mod site;
mod table;
mod testbed;
mod visitors;

pub use live::LiveTable;
pub use preset::{Conditions, Preset};
pub use samples::Figures;
pub use setting::Setting;
pub use testbed::{Options, Testbed};
pub use visitors::Visitors;

use godwit_text::Style;

impl Setting {
    /// What is demonstrated, before anything is measured.
    #[must_use]
    pub fn heading(&self, style: Style) -> String {
        table::heading(self, style)
    }

    /// What came out, in sentences of a line each.
    #[must_use]
    pub fn conclusion(&self, figures: &Figures) -> String {
        table::conclusion(figures, self).iter().map(|line| format!("{line}\n")).collect()
    }

    /// The result as one HTML page that needs nothing else.
    #[must_use]
    pub fn page(&self, figures: &Figures) -> String {
        html::page(self, figures)
    }

    /// The result as one object of JSON.
    #[must_use]
    pub fn json(&self, figures: &Figures) -> String {
        json::text(self, figures)
    }
}

impl Figures {
    /// Times by kind and percentile, 78 columns wide.
    #[must_use]
    pub fn table(&self, style: Style) -> String {
        table::table(self, style)
    }

    /// One line for where there is no terminal to draw on.
    #[must_use]
    pub fn progress(&self, seconds: u64) -> String {
        table::progress(self, seconds)
    }
}
