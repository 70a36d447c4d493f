//! `godwit perf` beside other stacks and beside TCP, in one interleaved run: each scenario goes round the programs,
//! and each round begins with another one.
//!
//! Every server runs on core 0 and every client on core 1, one thread of work each. What counts are the medians and,
//! on a machine that does other things as well, the spread beside them. A program that fails a scenario is shown as
//! failed, and the others go on.

mod about;
mod build;
mod figures;
mod http;
mod idle;
mod measure;
mod options;
mod outcome;
mod pairs;
mod process;
mod programs;
mod scenarios;
mod syscalls;
mod table;

use options::Options;
use std::path::PathBuf;

/// Builds and measures, or one of both.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let options = Options::read(words)?;
    if let Some(folder) = &options.build_only {
        return build::build(folder);
    }
    let folder = match &options.programs {
        Some(folder) => folder.clone(),
        None => built()?,
    };
    let about = about::About::read(&folder)?;
    if options.http {
        return http::run(&folder, &about, &options);
    }
    let results = measure::all(&folder, &about, &options)?;
    print!("{}", table::report(&results, &options));
    match &options.json {
        Some(file) => figures::write(file, &about, &results, &options.conditions()),
        None => Ok(()),
    }
}

fn built() -> Result<PathBuf, String> {
    let folder = crate::shell::target_dir()?.join("bench");
    build::build(&folder)?;
    Ok(folder)
}
