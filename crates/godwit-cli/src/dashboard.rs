//! `godwit dashboard`: pages of what was measured. Reading, comparing and drawing are `godwit-report`'s; here are only the
//! command line and files.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::Args;
use godwit_front::Browser;
use godwit_report::dashboard::{self, History, NetworkTable, Page, Repository, Settings};

use crate::error::{Failure, plain};
use crate::output;

/// Show how figures went over commits, beside other programs
#[derive(Debug, Args)]
#[command(long_about = ABOUT, after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The folder of measurements: a file NAME.json for each measured commit
    #[arg(value_name = "DIR", default_value = "perf/history")]
    history: PathBuf,
    /// Write the pages into this folder, which is made if need be
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The repository's address, such as `https://example.com/owner/name`; commits become links to pages below it
    #[arg(long, value_name = "URL")]
    repository: Option<Repository>,
    /// Also show what is reached in emulated networks: a folder of wan-NAME.csv
    #[arg(long, value_name = "DIR")]
    wan: Option<PathBuf>,
    /// Open the first page in Chromium or Chrome
    #[arg(long)]
    open: bool,
}

const ABOUT: &str = "\
Show how figures went over commits, beside other programs

Makes a folder of HTML pages from a history of measurements. The first page shows how every figure of the newest commit \
fares against the best of the others, those that lose first; a page for each figure shows it over commits, with every \
value. The pages need nothing else: no network, no scripts.";

const EXAMPLES: &str = "\
Examples:
  godwit dashboard --out pages                     from perf/history
  godwit dashboard history --out pages --open
  godwit dashboard --out pages --wan xtask --repository https://example.com/owner/name

Exit codes: 0 if the pages were made, 1 if a file could not be read or written, 2 for wrong usage.";

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let browser = arguments.open.then(Browser::find).transpose();
    let browser = browser.map_err(|error| Failure::new(error.to_string()))?;
    let failed = |error: dashboard::HistoryError| Failure::new(error.to_string());
    let history = History::read(&arguments.history).map_err(failed)?;
    let mut settings = Settings::default();
    settings.repository = arguments.repository;
    if let Some(folder) = &arguments.wan {
        settings.networks = NetworkTable::read_all(folder).map_err(failed)?;
    }
    let pages = dashboard::pages(&history, &settings);
    for Page { name, content, .. } in &pages {
        write(&arguments.out.join(name), content)?;
    }
    let first = arguments.out.join("index.html");
    let number = history.files().len();
    let plural = if number == 1 { "measurement" } else { "measurements" };
    output::print(&format!("{number} {plural}: {}\n", first.display()))?;
    browser.map_or(Ok(()), |browser| open(&browser, &first))?;
    Ok(ExitCode::SUCCESS)
}

fn write(file: &Path, content: &[u8]) -> Result<(), Failure> {
    let folder = file.parent().unwrap_or(file);
    std::fs::create_dir_all(folder).map_err(|error| {
        Failure::file("cannot write into", folder, plain(&error), "give a folder that you may write into")
    })?;
    output::write(file, content)
}

/// Leaves the page to a browser of the user's own, which outlives this program.
fn open(browser: &Browser, page: &Path) -> Result<(), Failure> {
    let remedy = "leave --open out and open the page by hand";
    let failed = |error: std::io::Error| Failure::file("cannot open", page, plain(&error), remedy);
    let page = page.canonicalize().map_err(failed)?;
    let quiet = || Stdio::null();
    let mut command = Command::new(browser.path());
    command.arg(page).stdin(quiet()).stdout(quiet()).stderr(quiet());
    command.spawn().map(drop).map_err(failed)
}
