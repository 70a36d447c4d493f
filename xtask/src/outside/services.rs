//! Programs with services that others wrote: axum's router, the layers of tower-http, a service of hyper.

use super::{LIMIT, expect};
use crate::peers::process::Process;
use std::fs;
use std::path::Path;

/// A file that is worth compressing.
const LONG: usize = 100_000;

/// Does something with a program by its name, and its arguments.
type With<'a, T> = &'a dyn Fn(&str, &[&str]) -> Result<T, String>;

/// How programs are started here, and what they need.
pub(super) struct Stage<'a> {
    /// Starts a program by its name.
    pub(super) start: With<'a, Process>,
    /// Runs one to its end, and gives what it printed.
    pub(super) output: With<'a, String>,
    /// The file of the authority that clients trust.
    pub(super) authority: &'a str,
    /// The folder of a server's certificate and key.
    pub(super) identity: &'a Path,
    /// A folder to serve.
    pub(super) site: &'a Path,
    /// A proxy, for clients that shall come over TCP.
    pub(super) proxy: &'a str,
}

/// A server that runs, and its port.
struct Server(Process, String);

impl Stage<'_> {
    /// Has requests answered by each, and checks the answers.
    pub(super) fn play(&self) -> Result<(), String> {
        let long = "the same line, over and over\n".repeat(LONG / 29);
        fs::write(self.site.join("long.txt"), long).map_err(|error| format!("long.txt: {error}"))?;
        self.axum_router()?;
        self.axum_front()?;
        self.layered()?;
        self.hyper_service()
    }

    /// Starts a server with a certificate and these further arguments.
    fn server(&self, name: &str, further: &[&str]) -> Result<Server, String> {
        let [chain, key] =
            ["localhost.pem", "localhost.key"].map(|file| self.identity.join(file).display().to_string());
        self.listening(name, &[&[chain.as_str(), key.as_str()], further].concat())
    }

    fn listening(&self, name: &str, arguments: &[&str]) -> Result<Server, String> {
        let mut process = (self.start)(name, arguments)?;
        let port = process.wait_for(LIMIT, |text| {
            Some(text.lines().next()?.strip_prefix("listening on ")?.rsplit(':').next()?.to_owned())
        })?;
        Ok(Server(process, port))
    }

    /// Fetches over HTTP/3, and compares what is printed: by GET, or by POST with a body.
    fn answers(&self, server: &Server, path: &str, body: Option<&str>, wanted: &str) -> Result<(), String> {
        let url = format!("https://localhost:{}{path}", server.1);
        let mut arguments = vec![self.authority, &url];
        arguments.extend(body);
        let answer = (self.output)("fetch", &arguments)?;
        expect(answer.starts_with(wanted), &url, &answer)
    }

    fn axum_router(&self) -> Result<(), String> {
        let server = self.server("axum_router", &[])?;
        self.answers(&server, "/greet/world", None, "HTTP/3.0 200 OK plain\n13 bytes: hello, world\n")?;
        self.answers(
            &server,
            "/greet/moon?word=good+night",
            None,
            "HTTP/3.0 200 OK plain\n17 bytes: good night, moon\n",
        )?;
        self.answers(&server, "/reverse", Some("abc"), "HTTP/3.0 200 OK plain\n3 bytes: cba\n")?;
        self.answers(&server, "/reverse", Some(""), "HTTP/3.0 422 Unprocessable Entity plain\n")?;
        self.answers(&server, "/reverse", None, "HTTP/3.0 405 Method Not Allowed plain\n")?;
        self.answers(&server, "/none", None, "HTTP/3.0 404 Not Found plain\n")
    }

    fn axum_front(&self) -> Result<(), String> {
        let server = self.listening("axum_front", &[&self.site.display().to_string()])?;
        self.answers(&server, "/visits", None, "HTTP/3.0 200 OK plain\n22 bytes: visit 1 over HTTP/3.0\n")?;
        let url = format!("https://localhost:{}/visits", server.1);
        let answer = (self.output)("through_a_proxy", &[self.proxy, self.authority, &url])?;
        expect(answer == "HTTP/2.0 200 OK\nvisit 2 over HTTP/2.0\n", &url, &answer)?;
        self.answers(&server, "/page.txt", None, "HTTP/3.0 200 OK plain\n19 bytes: a page of a folder\n")?;
        self.answers(&server, "/long.txt", None, "HTTP/3.0 200 OK gzip\n")?;
        let ended = server.0.interrupt(LIMIT)?;
        expect(ended.status.success(), "axum_front", &ended.story)
    }

    fn layered(&self) -> Result<(), String> {
        let server = self.server("layered", &[&self.site.display().to_string()])?;
        self.answers(&server, "/long.txt", None, "HTTP/3.0 200 OK gzip\n")?;
        self.answers(&server, "/page.txt", None, "HTTP/3.0 200 OK plain\n19 bytes: a page of a folder\n")?;
        self.answers(&server, "/none", None, "HTTP/3.0 504 Gateway Timeout plain\n")?;
        let Server(mut process, _) = server;
        process.wait_for(LIMIT, |text| {
            let noted: Vec<&str> =
                text.lines().skip(1).filter_map(|line| line.split_once(" after ")).map(|it| it.0).collect();
            (noted == ["200 OK", "200 OK", "504 Gateway Timeout"]).then_some(())
        })
    }

    fn hyper_service(&self) -> Result<(), String> {
        let server = self.server("hyper_service", &[])?;
        self.answers(
            &server,
            "/a",
            Some("some text"),
            "HTTP/3.0 200 OK plain\n22 bytes: POST /a had: some text\n",
        )?;
        self.answers(&server, "/b", None, "HTTP/3.0 200 OK plain\n12 bytes: GET /b had:")
    }
}
