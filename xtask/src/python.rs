//! The Python package: a wheel of it, built from the workspace as it is, installed into an environment of its own, and
//! its tests there.
//!
//! The environment lies in the target folder and is made once for each list of versions. maturin builds into our target
//! folder with our profile: what the package is built on is mostly there.

use crate::peers::install::{find_program, unless_stamped};
use crate::shell::{self, cargo};
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDER: &str = "crates/godwit-python";
/// What is installed, and at which versions.
const REQUIREMENTS: &str = "requirements.txt";
/// How a wheel for others is built.
const FOR_OTHERS: [&str; 2] = ["--profile", "dist"];

/// As one command: builds, installs and tests; with `--wheel DIR` the wheel is one for others, and left there.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let environment = Environment::prepare()?;
    match words {
        [] => environment.test(shell::profile(), None),
        ["--wheel", folder] | ["--", "--wheel", folder] => {
            environment.test(FOR_OTHERS, Some(&shell::root().join(folder)))
        }
        words => Err(format!("python: expected --wheel DIR or nothing, got {}", words.join(" "))),
    }
}

/// As a stage of the tests: where there is no Python, or no network the first time, nothing is tested unless it is CI.
pub(crate) fn test() -> Result<(), String> {
    match Environment::prepare() {
        Ok(environment) => environment.test(shell::profile(), None),
        Err(why) if std::env::var_os("CI").is_some() => Err(why),
        Err(why) => {
            eprintln!("xtask: the Python package is not tested: {why}");
            Ok(())
        }
    }
}

/// An environment with what builds and tests the package.
struct Environment {
    folder: PathBuf,
    package: PathBuf,
    target: PathBuf,
}

impl Environment {
    fn prepare() -> Result<Self, String> {
        let target = shell::target_dir()?;
        let one = Self { folder: target.join("python"), package: shell::root().join(FOLDER), target };
        find_program("python3").ok_or("Python (`python3`) is not installed")?;
        let wanted = one.package.join(REQUIREMENTS);
        unless_stamped(&wanted, &one.folder.join(REQUIREMENTS), || {
            let _ = std::fs::remove_dir_all(&one.folder);
            let made = shell::run(Command::new("python3").args(["-m", "venv"]).arg(&one.folder));
            made.map_err(|why| format!("{why} (the package python3-venv has the module)"))?;
            let mut pip = one.pip();
            shell::run(pip.args(["--no-deps", "--requirement"]).arg(&wanted))
        })?;
        Ok(one)
    }

    fn pip(&self) -> Command {
        let mut pip = Command::new(self.folder.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check"]);
        pip
    }

    /// Builds the wheel, installs it, and runs the tests against it and the program of our own profile.
    fn test(&self, profile: [&str; 2], place: Option<&Path>) -> Result<(), String> {
        let [option, ours] = shell::profile();
        shell::run(cargo().args(["build", "--quiet", option, ours, "--package", "godwit-cli"]))?;
        let built = self.target.join("python-wheel");
        let _ = std::fs::remove_dir_all(&built);
        let wheel = self.wheel(profile, &built)?;
        shell::run(self.pip().args(["--no-deps", "--force-reinstall"]).arg(&wheel))?;
        let mut tests = Command::new(self.folder.join("bin/python"));
        tests.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]).current_dir(&self.package);
        tests.env("GODWIT_PROGRAM", shell::programs_of(ours)?.join("godwit"));
        shell::run(tests.env("PYTHONDONTWRITEBYTECODE", "1"))?;
        let Some(place) = place else { return Ok(()) };
        let copy = place.join(wheel.file_name().unwrap_or_default());
        std::fs::create_dir_all(place)
            .and_then(|()| std::fs::copy(&wheel, &copy))
            .map_err(|error| format!("{}: {error}", copy.display()))?;
        println!("{}", copy.display());
        Ok(())
    }

    /// Builds the wheel into a folder where nothing else is.
    fn wheel(&self, [option, profile]: [&str; 2], folder: &Path) -> Result<PathBuf, String> {
        let mut maturin = Command::new(self.folder.join("bin/maturin"));
        maturin.args(["build", "--quiet", "--locked", option, profile, "--interpreter"]);
        maturin.arg(self.folder.join("bin/python")).arg("--out").arg(folder);
        shell::run(maturin.current_dir(&self.package).env("CARGO_TARGET_DIR", &self.target))?;
        let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut files = entries.flatten().map(|entry| entry.path());
        files
            .find(|file| file.extension().is_some_and(|extension| extension == "whl"))
            .ok_or_else(|| format!("{}: maturin has left no wheel", folder.display()))
    }
}
