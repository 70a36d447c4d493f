//! Whether packages are of use: they are unpacked, and programs are built with nothing but what they hold, by the
//! compiler with pkg-config and by CMake, and run.

use super::built::Built;
use super::needs;
use super::tree::read;
use crate::shell;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is built with them.
const PROGRAMS: &str = "packaging/check";

/// Checks all packages in this folder.
pub(super) fn run(built: &Built, packages: &Path) -> Result<(), String> {
    let work = std::env::temp_dir().join(format!("godwit-packages-{}", std::process::id()));
    let result = fs::create_dir_all(&work)
        .map_err(|error| format!("{}: {error}", work.display()))
        .and_then(|()| unpack_and_use(built, packages, &work));
    let _ = fs::remove_dir_all(&work);
    result
}

fn unpack_and_use(built: &Built, packages: &Path, work: &Path) -> Result<(), String> {
    let (unpacked, installed) = (work.join("unpacked"), work.join("installed"));
    let mut debian = 0_u32;
    for package in files(packages, OsStr::new("gz"))? {
        fs::create_dir_all(&unpacked).map_err(|error| error.to_string())?;
        let mut tar = Command::new("tar");
        tar.args(["--strip-components=1", "--extract", "--file"])
            .arg(package)
            .arg("--directory")
            .arg(&unpacked);
        shell::run(&mut tar)?;
    }
    for package in files(packages, OsStr::new("deb"))? {
        shell::run(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&installed))?;
        debian = debian.saturating_add(1);
    }
    // A moved folder must do as well as where it was unpacked first.
    let moved = work.join("moved");
    fs::rename(&unpacked, &moved).map_err(|error| format!("{}: {error}", unpacked.display()))?;
    use_all(built, &moved, "lib", &work.join("with-tarball"))?;
    if debian > 0 {
        let lib = format!("lib/{}-linux-gnu", built.processor);
        use_all(built, &installed.join("usr"), &lib, &work.join("with-debian"))?;
    }
    eprintln!("xtask: the tarball and {debian} Debian packages are of use");
    Ok(())
}

/// Builds programs with what is below this prefix, in `work`.
fn use_all(built: &Built, prefix: &Path, lib: &str, work: &Path) -> Result<(), String> {
    let version = shell::output(Command::new(prefix.join("bin/godwit")).arg("--version"))?;
    expect(version.contains(&built.version), "godwit --version", &version)?;

    let libraries = prefix.join(lib);
    let source = work.join("source");
    fs::create_dir_all(&source).map_err(|error| format!("{}: {error}", source.display()))?;
    for name in ["CMakeLists.txt", "version.c", "version.cpp", "msquic.c"] {
        let text = built.fill(&read(&format!("{PROGRAMS}/{name}"))?, &[])?;
        fs::write(source.join(name), text).map_err(|error| format!("{name}: {error}"))?;
    }

    let mut flags = Command::new("pkg-config");
    flags.args(["--cflags", "--libs", "godwit"]).env("PKG_CONFIG_LIBDIR", libraries.join("pkgconfig"));
    let flags = shell::output(&mut flags)?;
    let by_hand = work.join("by-hand");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&by_hand)
        .arg(source.join("version.c"));
    shell::run(compiler.args(flags.split_whitespace()))?;
    runs(&by_hand, &libraries, &built.version)?;

    let build = work.join("build");
    let mut configure = Command::new("cmake");
    configure
        .arg("-S")
        .arg(&source)
        .arg("-B")
        .arg(&build)
        .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
    shell::output(&mut configure)?;
    shell::output(Command::new("cmake").arg("--build").arg(&build))?;
    for name in ["from_c", "from_c_static", "from_cpp"] {
        runs(&build.join(name), &libraries, &built.version)?;
    }

    for name in ["libgodwit.so", "libmsquic.so.2"] {
        let library = libraries.join(name);
        expect(
            needs::loads_late(&library)?,
            name,
            "is for programs that are linked with it only (STATIC_TLS)",
        )?;
    }
    let msquic = work.join("msquic");
    let mut compiler = Command::new("cc");
    compiler.arg("-o").arg(&msquic).arg(source.join("msquic.c")).arg("-ldl");
    shell::run(&mut compiler)?;
    runs(&msquic, &libraries, "opened")
}

/// Runs a program that finds the libraries, and looks at what it prints.
fn runs(program: &Path, libraries: &Path, wanted: &str) -> Result<(), String> {
    let printed = shell::output(Command::new(program).env("LD_LIBRARY_PATH", libraries))?;
    expect(printed.trim() == wanted, &program.display().to_string(), &printed)
}

fn expect(is_so: bool, who: &str, said: &str) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(format!("{who}: {said}")) }
}

/// The files in a folder with this ending.
fn files(folder: &Path, ending: &OsStr) -> Result<Vec<PathBuf>, String> {
    let problem = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(problem)? {
        let path = entry.map_err(problem)?.path();
        if path.extension() == Some(ending) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
