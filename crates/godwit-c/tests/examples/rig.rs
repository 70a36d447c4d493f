//! What programs in C are compiled with and run in: a compiler, the library under its real name, and a certificate.

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Warnings that an application may have switched on.
const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"];

/// A folder with the library and a certificate.
pub(crate) struct Rig {
    folder: TempDir,
}

/// A program that was built.
pub(crate) struct Program {
    file: PathBuf,
    library: PathBuf,
}

impl Program {
    /// Runs it, with arguments still to be given.
    pub(crate) fn command(&self) -> Command {
        let mut command = match std::env::var_os("GODWIT_VALGRIND") {
            Some(_) => {
                let mut command = Command::new("valgrind");
                command.args(["--quiet", "--error-exitcode=99", "--leak-check=no"]).arg(&self.file);
                command
            }
            None => Command::new(&self.file),
        };
        // What the library's threads have until the process ends is no leak.
        command.env("LD_LIBRARY_PATH", &self.library).env("ASAN_OPTIONS", "detect_leaks=0");
        command
    }
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The library lies beside this program.
fn built_library() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program
        .ancestors()
        .skip(1)
        .map(|folder| folder.join("libgodwit_c.so"))
        .find(|file| file.exists())
        .unwrap()
}

impl Rig {
    /// `None` where there is no C compiler.
    pub(crate) fn new() -> Option<Rig> {
        if Command::new(compiler("cc")).arg("--version").output().is_err() {
            assert!(std::env::var_os("CI").is_none(), "there has to be a C compiler here");
            eprintln!("SKIPPED: there is no C compiler, so that nothing was compiled");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        for name in ["libgodwit.so", "libgodwit.so.0"] {
            std::os::unix::fs::symlink(built_library(), folder.path().join(name)).unwrap();
        }
        let made =
            rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        std::fs::write(folder.path().join("chain.pem"), made.cert.pem()).unwrap();
        std::fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        Some(Rig { folder })
    }

    /// Files of a certificate for localhost and 127.0.0.1, and its key.
    pub(crate) fn certificate(&self) -> (PathBuf, PathBuf) {
        (self.folder.path().join("chain.pem"), self.folder.path().join("key.pem"))
    }

    /// Builds one of the examples.
    pub(crate) fn build(&self, name: &str) -> Program {
        self.build_c(&format!("examples/{name}.c"))
    }

    /// Builds a program in C, named by its place in this crate.
    pub(crate) fn build_c(&self, source: &str) -> Program {
        let file = self.folder.path().join(Path::new(source).file_stem().unwrap());
        let mut command = Command::new(compiler("cc"));
        command.args(STRICT).arg("-std=c11").arg("-I").arg(here().join("include"));
        command.arg(here().join(source));
        command.arg("-L").arg(self.folder.path()).arg("-lgodwit").arg("-o").arg(&file);
        run(command);
        Program { file, library: self.folder.path().to_owned() }
    }

    /// Builds a program in C++, named by its place in this crate.
    pub(crate) fn build_cpp(&self, source: &str, options: &[&str]) -> Program {
        let file = self.folder.path().join(Path::new(source).file_stem().unwrap());
        let mut command = Command::new(compiler("c++"));
        command.args(STRICT).args(["-std=c++20", "-Wshadow", "-O0"]).args(options).arg("-I");
        command.arg(here().join("include")).arg(here().join(source));
        command.arg("-L").arg(self.folder.path()).arg("-lgodwit").arg("-o").arg(&file);
        run(command);
        Program { file, library: self.folder.path().to_owned() }
    }

    /// Compiles the inside of a coroutine in C++, in which the README's names are there.
    pub(crate) fn compile_cpp_block(&self, name: &str, block: &str) {
        let source = self.folder.path().join(format!("{name}.cpp"));
        let text = if block.contains("#include") {
            block.to_owned()
        } else {
            format!(
                "#include <godwit.hpp>\n#include <iostream>\ngodwit::task<> {name}(godwit::loop &loop, godwit::client &client, \
                 godwit::connection &connection);\ngodwit::task<> {name}([[maybe_unused]] godwit::loop &loop, \
                 [[maybe_unused]] godwit::client &client, [[maybe_unused]] godwit::connection &connection) {{\n{block}\n\
                 co_return;\n}}\n"
            )
        };
        std::fs::write(&source, text).unwrap();
        let mut command = Command::new(compiler("c++"));
        command.args(["-std=c++20", "-Wall", "-Werror", "-I"]).arg(here().join("include"));
        command.arg("-c").arg(&source).arg("-o").arg(self.folder.path().join(format!("{name}.o")));
        run(command);
    }

    /// Compiles the inside of a function, in which the README's names are there.
    pub(crate) fn compile_block(&self, name: &str, block: &str) {
        let source = self.folder.path().join(format!("{name}.c"));
        let text = if block.contains("#include") {
            block.to_owned()
        } else {
            let names = "godwit_queue queue, godwit_client client, godwit_server server, godwit_exchange exchange, \
                         godwit_endpoint endpoint, godwit_connection connection, godwit_stream stream, \
                         godwit_event *event, godwit_error error";
            format!("#include \"godwit.h\"\nvoid {name}({names});\nvoid {name}({names}) {{\n{block}\n}}\n")
        };
        std::fs::write(&source, text).unwrap();
        let mut command = Command::new(compiler("cc"));
        command.args(["-std=c11", "-Wall", "-Werror", "-I"]).arg(here().join("include"));
        command.arg("-c").arg(&source).arg("-o").arg(self.folder.path().join(format!("{name}.o")));
        run(command);
    }

    /// Compiles the header alone.
    pub(crate) fn compile_header(&self, which: &str, options: &[&str]) {
        if Command::new(compiler(which)).arg("--version").output().is_err() {
            eprintln!("SKIPPED: there is no {which}");
            return;
        }
        let source = self.folder.path().join("header.c");
        std::fs::write(&source, "#include \"godwit.h\"\nint main(void) { return 0; }\n").unwrap();
        let mut command = Command::new(compiler(which));
        command.args(STRICT).args(options).arg("-I").arg(here().join("include"));
        command.arg("-c").arg(&source).arg("-o").arg(self.folder.path().join("header.o"));
        run(command);
    }
}

fn compiler(which: &str) -> String {
    let variable = if which == "cc" { "CC" } else { "CXX" };
    std::env::var(variable).unwrap_or_else(|_| which.into())
}

fn run(mut command: Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}
