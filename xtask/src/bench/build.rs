//! Building everything into a folder, from which it can be measured on another machine as well.

use super::about::About;
use crate::peers::install;
use crate::shell::{self, cargo};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the programs, makes the certificate and puts this program beside them. Without another's program, which may
/// need what is not installed, the rest is measured.
pub(super) fn build(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    shell::run(cargo().args(["build", "--quiet", "--profile", "dist"]))?;
    copy(&shell::target_dir()?.join("dist/godwit"), folder, "godwit")?;
    let quinn = install::build_for_figures("rust")?;
    copy(&quinn, folder, "peer-quinn")?;
    for (name, built) in others() {
        if let Err(why) = built.and_then(|program| copy(&program, folder, name)) {
            let _ = fs::remove_file(folder.join(name));
            eprintln!("xtask: {name} is left out: {why}");
        }
    }
    let certificates = std::path::absolute(folder).map_err(|error| error.to_string())?;
    shell::output(Command::new(&quinn).arg("make-certs").arg(certificates))?;
    let myself = std::env::current_exe().map_err(|error| error.to_string())?;
    copy(&myself, folder, "xtask")?;
    About::of_source()?.write(folder)
}

fn others() -> [(&'static str, Result<PathBuf, String>); 6] {
    [
        ("peer-polled", install::build_for_figures("polled")),
        ("peer-s2n", install::build_for_figures("s2n")),
        ("peer-quiche", install::build_for_figures("quiche")),
        ("peer-tquic", install::build_for_figures("tquic")),
        ("peer-tcp", install::build_for_figures("tcp")),
        ("peer-quic-go", install::build_quic_go()),
    ]
}

/// By way of another name: one that runs is not written to.
fn copy(program: &Path, folder: &Path, name: &str) -> Result<(), String> {
    let (place, beside) = (folder.join(name), folder.join(format!("{name}.new")));
    let copied = fs::copy(program, &beside).and_then(|_| fs::rename(&beside, &place));
    copied.map_err(|error| format!("{} to {}: {error}", program.display(), place.display()))
}
