//! The fuzz targets under libFuzzer, which comes as a crate: neither cargo-fuzz nor a nightly compiler is needed.
//!
//! The code is instrumented by the compiler's own pass, which stable compilers have too. What they lack are the
//! sanitizers, which find little in code without `unsafe`; with a nightly compiler `cargo fuzz run TARGET` has them.
//!
//! What a run finds goes to `fuzz/target/corpus`, and is where the next begins; `--minimise` takes from there what adds
//! to the checked-in corpus.

use crate::shell::{self, cargo};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use toml::Table;

/// What libFuzzer wants to know of the code: which edges were taken, and what was compared with what.
const INSTRUMENTS: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
];

/// An input that takes longer is a finding, in seconds; so is memory beyond this, in MiB.
const SLOW: u32 = 10;
const MOST_MEMORY: u32 = 2048;

/// How the names of checked-in inputs begin that a fuzzer has found.
const FOUND: &str = "found-";

/// What is asked for.
struct Options<'a> {
    /// For each target.
    seconds: u64,
    /// What chance begins with: the same inputs in every run of the same code, as far as it gets.
    seed: Option<u32>,
    minimise: bool,
    /// All, if there is none.
    targets: Vec<&'a str>,
}

impl<'a> Options<'a> {
    fn read(words: &[&'a str]) -> Result<Self, String> {
        let mut options = Options { seconds: 30, seed: None, minimise: false, targets: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--minimise" => options.minimise = true,
                "--seconds" => {
                    let value = words.next().and_then(|text| text.parse().ok());
                    options.seconds = value.ok_or("--seconds needs a number")?;
                }
                "--seed" => {
                    let value = words.next().and_then(|text| text.parse().ok());
                    options.seed = Some(value.ok_or("--seed needs a number")?);
                }
                option if option.starts_with('-') => return Err(format!("fuzz knows no option {option}")),
                target => options.targets.push(target),
            }
        }
        Ok(options)
    }
}

/// What became of a target.
#[derive(Debug, Default, PartialEq, Eq)]
struct Figures {
    executions: u64,
    per_second: u64,
    /// Edges of the code that some input took.
    edges: u64,
    /// Inputs that were kept.
    corpus: u64,
    added: u64,
    /// MiB.
    memory: u64,
}

/// Runs targets, as many at once as there are processors, and prints a table; fails if there is a finding.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let options = Options::read(words)?;
    let fuzz = shell::root().join("fuzz");
    let mut targets = targets(&fuzz)?;
    if let Some(unknown) = options.targets.iter().find(|name| !targets.iter().any(|target| target == *name)) {
        return Err(format!("there is no target {unknown:?}; there are {}", targets.join(", ")));
    }
    targets.retain(|target| options.targets.is_empty() || options.targets.contains(&target.as_str()));
    let programs = build(&fuzz)?;
    if options.minimise {
        return targets.iter().try_for_each(|target| minimise(&fuzz, &programs, target));
    }
    println!("| target | executions | a second | edges | inputs kept | of them new | memory, MiB | |");
    println!("|---|---|---|---|---|---|---|---|");
    let (left, outcomes) = (Mutex::new(targets.iter()), Mutex::new(Vec::new()));
    let next = || left.lock().expect("nothing panics with it").next();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(target) = next() {
                    let outcome = fuzz_one(&fuzz, &programs, target, &options);
                    let outcome = outcome.map(|(figures, finding)| print_row(target, &figures, finding));
                    outcomes.lock().expect("nothing panics with it").push(outcome);
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().expect("nothing panicked with it");
    let outcomes: Vec<_> = outcomes.into_iter().collect::<Result<_, _>>()?;
    let all: u64 = outcomes.iter().map(|(executions, _)| executions).sum();
    let findings: Vec<String> = outcomes.into_iter().filter_map(|(_, finding)| finding).collect();
    println!("\n{all} executions of {} targets, {} findings", targets.len(), findings.len());
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n")) }
}

/// Returns how many executions there were, and the finding with the name of its target.
fn print_row(target: &str, figures: &Figures, finding: Option<String>) -> (u64, Option<String>) {
    let Figures { executions, per_second, edges, corpus, added, memory } = figures;
    let remark = if finding.is_some() { "**a finding**" } else { "" };
    println!(
        "| {target} | {executions} | {per_second} | {edges} | {corpus} | {added} | {memory} | {remark} |"
    );
    (*executions, finding.map(|finding| format!("{target}: {finding}")))
}

/// Names of all targets.
fn targets(fuzz: &Path) -> Result<Vec<String>, String> {
    let file = fuzz.join("Cargo.toml");
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let manifest: Table = text.parse().map_err(|error| format!("{}: {error}", file.display()))?;
    let programs = manifest.get("bin").and_then(toml::Value::as_array).into_iter().flatten();
    let mut names: Vec<String> =
        programs.filter_map(|program| Some(program.get("name")?.as_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}

/// Builds all targets, and returns the folder of their programs.
fn build(fuzz: &Path) -> Result<PathBuf, String> {
    let host = shell::output(Command::new("rustc").arg("-vV"))?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc names no host")?;
    let mut command = cargo();
    // With a target, what runs while building is not instrumented: nothing would count its edges.
    command.args(["build", "--quiet", "--release", "--bins", "--target", host]).current_dir(fuzz);
    command.env("RUSTFLAGS", INSTRUMENTS.join(" ")).env("CARGO_TARGET_DIR", fuzz.join("target"));
    // The fuzzer itself is among what `release` does not optimise.
    command.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3");
    shell::run(&mut command)?;
    Ok(fuzz.join("target").join(host).join("release"))
}

/// Where a target's finds are, and its checked-in inputs.
fn corpora(fuzz: &Path, target: &str) -> Result<(PathBuf, PathBuf), String> {
    let (found, seeds) = (fuzz.join("target/corpus").join(target), fuzz.join("corpus").join(target));
    for folder in [&found, &seeds] {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    Ok((found, seeds))
}

fn fuzz_one(
    fuzz: &Path,
    programs: &Path,
    target: &str,
    options: &Options<'_>,
) -> Result<(Figures, Option<String>), String> {
    let (found, seeds) = corpora(fuzz, target)?;
    let artifacts = fuzz.join("artifacts").join(target);
    fs::create_dir_all(&artifacts).map_err(|error| format!("{}: {error}", artifacts.display()))?;
    let mut command = Command::new(programs.join(target));
    command.arg(found).arg(seeds).arg(format!("-max_total_time={}", options.seconds));
    command.args(options.seed.map(|seed| format!("-seed={seed}")));
    command.arg(format!("-timeout={SLOW}")).arg(format!("-rss_limit_mb={MOST_MEMORY}"));
    command.arg("-print_final_stats=1").arg(format!("-artifact_prefix={}/", artifacts.display()));
    // Logs would be written with every input.
    let output = command.stdout(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot start {target}: {error}"))?;
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let finding = (!output.status.success()).then(|| finding(&log));
    Ok((figures(&log), finding))
}

/// Lines of a log that say what is wrong, and where the input is.
fn finding(log: &str) -> String {
    let telling = ["panicked at", "ERROR: libFuzzer", "Test unit written to"];
    let mut lines = log.lines().peekable();
    let mut said = Vec::new();
    while let Some(line) = lines.next() {
        if telling.iter().any(|words| line.contains(words)) {
            said.push(line.trim());
            // A panic's message is on the line below.
            said.extend(line.contains("panicked at").then(|| lines.peek().copied()).flatten());
        }
    }
    if said.is_empty() { "it ended without a word".to_owned() } else { said.join("\n  ") }
}

fn figures(log: &str) -> Figures {
    let stat = |name: &str| {
        let line = log.lines().rev().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name));
        line.and_then(|rest| rest.trim_start_matches(':').trim().parse().ok()).unwrap_or(0)
    };
    // `#1234 DONE   cov: 56 ft: 78 corp: 9/1234b …`
    let state = log.lines().rev().find(|line| line.starts_with('#') && line.contains(" cov: "));
    let word = |name: &str| {
        let mut words = state.unwrap_or_default().split_whitespace().skip_while(|word| *word != name);
        let value = words.nth(1).unwrap_or_default();
        value.split('/').next().and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    Figures {
        executions: stat("number_of_executed_units"),
        per_second: stat("average_exec_per_sec"),
        edges: word("cov:"),
        corpus: word("corp:"),
        added: stat("new_units_added"),
        memory: stat("peak_rss_mb"),
    }
}

/// Adds what was found to the checked-in corpus, as far as it takes edges that nothing else does, and removes what was
/// found earlier and is no longer needed. Seeds, which have names that mean something, stay.
fn minimise(fuzz: &Path, programs: &Path, target: &str) -> Result<(), String> {
    let (found, corpus) = corpora(fuzz, target)?;
    let work = fuzz.join("target/minimised").join(target);
    let (seeds, least) = (work.join("seeds"), work.join("least"));
    let failed = |error: std::io::Error| format!("{}: {error}", work.display());
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&seeds).map_err(failed)?;
    let mut earlier = Vec::new();
    for entry in fs::read_dir(&corpus).map_err(failed)?.flatten() {
        if is_find(&entry.file_name().to_string_lossy()) {
            earlier.push(entry.path());
        } else {
            fs::copy(entry.path(), seeds.join(entry.file_name())).map_err(failed)?;
        }
    }
    // What the first folder holds stays, and what the others add to it comes: edges count, and neither how often they are
    // taken nor what was compared, for which there would be thousands of inputs.
    copy_all(&seeds, &least).map_err(failed)?;
    let mut merge = Command::new(programs.join(target));
    merge.args(["-set_cover_merge=1", "-use_counters=0", "-use_cmp=0"]).arg(&least);
    merge.args([&corpus, &found]).stdout(Stdio::null()).stderr(Stdio::null());
    shell::run(&mut merge)?;
    for file in &earlier {
        fs::remove_file(file).map_err(failed)?;
    }
    let (mut kept, mut bytes) = (0, 0);
    for entry in fs::read_dir(&least).map_err(failed)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(short) = name.get(..16).filter(|_| is_find(&name)) {
            bytes += fs::copy(entry.path(), corpus.join(format!("{FOUND}{short}"))).map_err(failed)?;
            kept += 1;
        }
    }
    println!("{target}: {kept} inputs of {bytes} bytes beside the seeds, before {}", earlier.len());
    let _ = fs::remove_dir_all(&work);
    Ok(())
}

/// libFuzzer names inputs by their SHA-1; those that are checked in have the beginning of it.
fn is_find(name: &str) -> bool {
    name.starts_with(FOUND) || (name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn copy_all(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_at_the_end() {
        let log = "#2\tINITED cov: 5 ft: 6 corp: 1/1b exec/s: 0 rss: 40Mb\n\
                   #900\tREDUCE cov: 71 ft: 80 corp: 12/90b lim: 4 exec/s: 0 rss: 41Mb L: 9/9 MS: 1 X-\n\
                   #1000\tDONE   cov: 72 ft: 81 corp: 13/91b lim: 4 exec/s: 500 rss: 42Mb\n\
                   Done 1000 runs in 2 second(s)\nstat::number_of_executed_units: 1000\n\
                   stat::average_exec_per_sec:     500\nstat::new_units_added:          11\n\
                   stat::slowest_unit_time_sec:    0\nstat::peak_rss_mb:              42\n";
        let expected =
            Figures { executions: 1000, per_second: 500, edges: 72, corpus: 13, added: 11, memory: 42 };
        assert_eq!(figures(log), expected);
    }

    #[test]
    fn a_finding_says_what_and_where() {
        let log = "thread '<unnamed>' panicked at fuzz/src/wire.rs:7:5:\nattempt to add with overflow\nstack\n\
                   ==1== ERROR: libFuzzer: deadly signal\nTest unit written to artifacts/x/crash-1\n";
        let said = finding(log);
        for words in ["wire.rs:7:5", "attempt to add", "deadly signal", "crash-1"] {
            assert!(said.contains(words), "{said}");
        }
        assert!(!said.contains("stack"));
    }

    #[test]
    fn seeds_are_no_finds() {
        assert!(is_find("da39a3ee5e6b4b0d3255bfef95601890afd80709"));
        assert!(is_find("found-da39a3ee5e6b4b0d"));
        assert!(!is_find("ack_many_ranges"));
    }
}
