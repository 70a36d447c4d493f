//! The dashboard of `perf/history` in `target/dashboard`, and its picture for `docs`.

use crate::shell::{self, cargo};
use std::path::Path;
use std::process::Command;

/// Width and height of the picture, in points of the screen.
const WINDOW: &str = "--window-size=1120,860";
/// The most bytes of the picture: everybody who clones the repository has it.
const LARGEST: u64 = 200 << 10;
/// The browsers that can take it.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Reads the words after the command.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let picture = match words {
        [] => false,
        ["--picture"] => true,
        _ => return Err("expected nothing or --picture".to_owned()),
    };
    let [option, profile] = shell::profile();
    shell::run(cargo().args(["build", "--quiet", option, profile, "--package", "godwit-cli"]))?;
    let pages = shell::target_dir()?.join("dashboard");
    // Pages of figures that are no more would stay.
    match std::fs::remove_dir_all(&pages) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{}: {error}", pages.display()));
        }
        _ => {}
    }
    let mut command = Command::new(shell::programs_of(profile)?.join("godwit"));
    command.current_dir(shell::root()).args(["dashboard", "--wan", "xtask", "--out"]).arg(&pages);
    shell::run(&mut command)?;
    if picture { take(&pages.join("index.html")) } else { Ok(()) }
}

fn take(page: &Path) -> Result<(), String> {
    let file = shell::root().join("docs/dashboard.png");
    let works = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
    let browser = BROWSERS.iter().find(works);
    let browser = browser.ok_or_else(|| format!("none of {} is installed", BROWSERS.join(", ")))?;
    let mut command = Command::new(browser);
    // The page is our own and has no scripts: Chromium needs no sandbox for it, and has none where root runs it.
    command.args(["--headless", "--no-sandbox", "--hide-scrollbars", WINDOW]);
    command.arg(format!("--screenshot={}", file.display())).arg(format!("file://{}", page.display()));
    shell::output(&mut command)?;
    let size = std::fs::metadata(&file).map_err(|error| format!("{}: {error}", file.display()))?.len();
    if size > LARGEST {
        return Err(format!("{} has {size} bytes, more than {LARGEST}", file.display()));
    }
    println!("{}", file.display());
    Ok(())
}
