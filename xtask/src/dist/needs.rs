//! What a program or library needs of the system, as the linker has noted it in the file.

use crate::shell;
use std::path::Path;
use std::process::Command;

/// The Debian packages that have what this file needs, as a line of dependencies.
///
/// # Errors
/// If it needs a library whose package is not known here.
pub(super) fn debian_packages(file: &Path) -> Result<String, String> {
    packages(&libraries(file)?, &readelf("--version-info", file)?)
}

/// The names of the system's libraries that this file needs, as linkers take them.
pub(super) fn system_libraries(file: &Path) -> Result<Vec<String>, String> {
    let is_linked = |name: &String| !name.starts_with("ld-linux");
    let name = |name: String| Some(name.strip_prefix("lib")?.split(".so").next()?.to_owned());
    Ok(libraries(file)?.into_iter().filter(is_linked).filter_map(name).collect())
}

/// Whether a library can be loaded by programs that run, whatever else these have loaded: what belongs to threads must not be in
/// the room that is set aside when a program starts, of which there is little.
pub(super) fn loads_late(file: &Path) -> Result<bool, String> {
    Ok(!readelf("--dynamic", file)?.contains("STATIC_TLS"))
}

fn libraries(file: &Path) -> Result<Vec<String>, String> {
    let text = readelf("--dynamic", file)?;
    let needed = text.lines().filter(|line| line.contains("(NEEDED)"));
    let name = |line: &str| Some(line.split_once('[')?.1.split(']').next()?.to_owned());
    Ok(needed.filter_map(name).collect())
}

fn packages(libraries: &[String], versions: &str) -> Result<String, String> {
    let mut packages = Vec::new();
    for library in libraries {
        let package = match library.as_str() {
            "libc.so.6" | "libm.so.6" | "libdl.so.2" | "libpthread.so.0" | "librt.so.1" => {
                let (major, minor) = newest_glibc(versions);
                format!("libc6 (>= {major}.{minor})")
            }
            "libgcc_s.so.1" => "libgcc-s1".to_owned(),
            name if name.starts_with("ld-linux") => continue,
            other => return Err(format!("the Debian package with {other} is not known here")),
        };
        if !packages.contains(&package) {
            packages.push(package);
        }
    }
    Ok(packages.join(", "))
}

/// The newest version of the C library of which a symbol is needed.
fn newest_glibc(versions: &str) -> (u32, u32) {
    let version = |text: &str| {
        let digits =
            |part: &str| part.split(|c: char| !c.is_ascii_digit()).next().and_then(|part| part.parse().ok());
        let (major, minor) = text.split_once('.')?;
        Some((digits(major)?, digits(minor)?))
    };
    versions.split("GLIBC_").skip(1).filter_map(version).max().unwrap_or((2, 17))
}

fn readelf(what: &str, file: &Path) -> Result<String, String> {
    shell::output(Command::new("readelf").args([what, "--wide"]).arg(file).env("LC_ALL", "C"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_with_the_newest_version_that_is_needed() {
        let versions = "Name: GLIBC_2.4  Flags: none\n Name: GLIBC_2.34 Flags\n Name: GLIBC_2.17 Flags";
        let needed = |names: &[&str]| {
            packages(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(), versions)
        };
        let all = needed(&["libgcc_s.so.1", "libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2"]);
        assert_eq!(all.as_deref(), Ok("libgcc-s1, libc6 (>= 2.34)"));
        assert!(needed(&["libother.so.1"]).unwrap_err().contains("libother.so.1"));
    }

    #[test]
    fn this_program_needs_the_c_library() {
        let own = std::env::current_exe().unwrap();
        assert!(system_libraries(&own).unwrap().contains(&"c".to_owned()));
    }
}
