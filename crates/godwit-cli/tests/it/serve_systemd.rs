//! `godwit serve` under a service manager, whose part this test plays: it opens the sockets, listens to what it is
//! told, has the configuration read again, and ends it.
#![cfg(unix)]

use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::serve_support::{Server, run};
use tempfile::TempDir;

struct Manager {
    folder: TempDir,
    notifications: UnixDatagram,
    port: u16,
    process: Child,
}

impl Manager {
    fn start() -> Manager {
        let folder = tempfile::tempdir().unwrap();
        let notifications = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        notifications.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (tcp, udp, port) = sockets();
        let config = folder.path().join("godwit.toml");
        let text = format!(
            "listen = [\"127.0.0.1:{port}\"]\n[[site]]\nhosts = [\"*\"]\ntls = \"local\"\n\
             [[site.route]]\npath = \"/*\"\nrespond = {{ body = \"handed over\" }}\n"
        );
        std::fs::write(&config, text).unwrap();
        // The sockets arrive as descriptors 0 and 1, and become 3 and 4, as the protocol has it.
        let script = "exec 3<&0 4>&1 0</dev/null 1>log; LISTEN_FDS=2 LISTEN_PID=$$ exec \"$@\"";
        let mut command = Command::new("bash");
        command
            .args(["-c", script, "manager", env!("CARGO_BIN_EXE_godwit"), "serve", "--config"])
            .arg(&config);
        command.current_dir(folder.path()).env("XDG_DATA_HOME", folder.path());
        command.env("NOTIFY_SOCKET", folder.path().join("notify"));
        command.stdin(Stdio::from(OwnedFd::from(tcp))).stdout(Stdio::from(OwnedFd::from(udp)));
        let process = command.spawn().unwrap();
        Manager { folder, notifications, port, process }
    }

    /// What the server says next.
    fn told(&self) -> String {
        let mut buffer = [0; 1024];
        let length = self.notifications.recv(&mut buffer).expect("the server says how it stands");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    fn signal(&self, name: &str) {
        let killed = Command::new("kill").args(["-s", name, &self.process.id().to_string()]).status();
        assert!(killed.unwrap().success());
    }

    fn get(&self, protocol: &str) -> String {
        let authority = self.folder.path().join("godwit/ca.pem");
        let url = format!("https://127.0.0.1:{}/", self.port);
        let output =
            run(self.folder.path(), &["get", protocol, "--cacert", authority.to_str().unwrap(), &url]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Both sockets on one port.
fn sockets() -> (TcpListener, UdpSocket, u16) {
    loop {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        if let Ok(udp) = UdpSocket::bind(("127.0.0.1", port)) {
            return (tcp, udp, port);
        }
    }
}

#[test]
fn sockets_are_taken_over_and_the_manager_is_told() {
    let mut manager = Manager::start();
    let ready = manager.told();
    assert!(ready.contains("READY=1") && ready.contains("STATUS=serving"), "{ready}");
    for protocol in ["--http1.1", "--http2", "--http3"] {
        assert_eq!(manager.get(protocol), "handed over", "{protocol}");
    }
    manager.signal("HUP");
    let reloading = manager.told();
    assert!(reloading.contains("RELOADING=1") && reloading.contains("MONOTONIC_USEC="), "{reloading}");
    assert!(manager.told().contains("READY=1"));
    manager.signal("TERM");
    assert!(manager.told().contains("STOPPING=1"));
    assert!(manager.process.wait().unwrap().success());
}

#[cfg(target_os = "linux")]
#[test]
fn the_manager_is_told_which_process_has_taken_over() {
    let mut manager = Manager::start();
    assert!(manager.told().contains("READY=1"));
    let first = manager.process.id();
    manager.signal("USR2");
    let reloading = manager.told();
    assert!(reloading.contains("RELOADING=1") && reloading.contains("MONOTONIC_USEC="), "{reloading}");
    // The new process says that it is ready as well, at any time.
    let successor: u32 = loop {
        let told = manager.told();
        assert!(told.contains("READY=1"), "{told}");
        if let Some(process) = told.lines().find_map(|line| line.strip_prefix("MAINPID=")) {
            break process.parse().unwrap();
        }
    };
    assert_ne!(successor, first);
    assert!(manager.process.wait().unwrap().success());
    for protocol in ["--http1.1", "--http2", "--http3"] {
        assert_eq!(manager.get(protocol), "handed over", "{protocol}");
    }
    let killed = Command::new("kill").args(["-s", "TERM", &successor.to_string()]).status();
    assert!(killed.unwrap().success());
    while !manager.told().contains("STOPPING=1") {}
    while !std::fs::read(format!("/proc/{successor}/cmdline")).unwrap_or_default().is_empty() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

const UNITS: [&str; 2] = [
    include_str!("../../../../packaging/godwit.service"),
    include_str!("../../../../packaging/godwit.socket"),
];

/// What the units may say, and in which version systemd has learnt it (its NEWS).
const DIRECTIVES: &[(&str, u32)] = &[
    ("After", 1),
    ("BindIPv6Only", 1),
    ("CapabilityBoundingSet", 1),
    ("ConfigurationDirectory", 235),
    ("Description", 1),
    ("Documentation", 1),
    ("DynamicUser", 232),
    ("Environment", 1),
    ("ExecReload", 1),
    ("ExecStart", 1),
    ("LimitNOFILE", 1),
    ("ListenDatagram", 1),
    ("ListenStream", 1),
    ("LockPersonality", 235),
    ("LogsDirectory", 235),
    ("MemoryDenyWriteExecute", 231),
    ("NoNewPrivileges", 187),
    ("NotifyAccess", 1),
    ("PrivateDevices", 209),
    ("PrivateTmp", 1),
    ("ProtectClock", 245),
    ("ProtectControlGroups", 232),
    ("ProtectHome", 214),
    ("ProtectHostname", 242),
    ("ProtectKernelLogs", 244),
    ("ProtectKernelModules", 232),
    ("ProtectKernelTunables", 232),
    ("ProtectProc", 247),
    ("ProtectSystem", 214),
    ("ReceiveBuffer", 1),
    ("Requires", 1),
    ("Restart", 1),
    ("RestrictAddressFamilies", 211),
    ("RestrictNamespaces", 233),
    ("RestrictRealtime", 231),
    ("SendBuffer", 1),
    ("Service", 1),
    ("StateDirectory", 235),
    ("SuccessExitStatus", 1),
    ("SystemCallArchitectures", 209),
    ("SystemCallFilter", 187),
    ("TimeoutStopSec", 188),
    ("Type", 1),
    ("WantedBy", 1),
    ("Wants", 1),
    ("WatchdogSec", 183),
];

fn directives(unit: &str) -> Vec<(&str, &str)> {
    let lines = unit.lines().filter(|line| !line.starts_with(['#', '[']));
    lines.filter_map(|line| line.split_once('=')).collect()
}

#[test]
fn the_units_are_for_systemd_249() {
    for (name, value) in UNITS.into_iter().flat_map(directives) {
        let known = DIRECTIVES.iter().find(|(known, _)| *known == name);
        let (_, since) = known.unwrap_or_else(|| panic!("since when does systemd know {name}?"));
        assert!(*since <= 249, "{name} is of systemd {since}");
        match name {
            // `notify-reload` is of 253.
            "Type" => assert_eq!(value, "notify"),
            "ProtectSystem" => assert_eq!(value, "strict", "of 232"),
            "ProtectProc" => assert_eq!(value, "invisible", "of 247"),
            "SystemCallFilter" => assert_eq!(value, "@system-service", "of 239"),
            _ => {}
        }
    }
}

#[test]
fn what_the_unit_runs_serves_without_dns() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("godwit.toml");
    std::fs::write(
        &config,
        "listen = [\"127.0.0.1:0\"]\n[[site]]\nhosts = [\"*\"]\ntls = \"local\"\n[[site.route]]\npath = \"/api/*\"\n\
         proxy = \"http://upstream.invalid:8080\"\n[[site.route]]\nrespond = { body = \"there\" }\n",
    )
    .unwrap();
    let command = |line: &str| {
        let mut words = line.split_whitespace();
        assert_eq!(words.next(), Some("/usr/local/bin/godwit"), "{line}");
        let words = words.map(|word| match word {
            "/etc/godwit/godwit.toml" => config.to_str().unwrap(),
            word => word,
        });
        let mut command = Command::new(env!("CARGO_BIN_EXE_godwit"));
        command.args(words).current_dir(folder.path()).env("XDG_DATA_HOME", folder.path());
        command.stdin(Stdio::null());
        command
    };
    let mut served = 0;
    for (name, line) in directives(UNITS[0]) {
        match name {
            "ExecCondition" | "ExecStartPre" => assert!(command(line).status().unwrap().success(), "{line}"),
            "ExecStart" => {
                let mut server = Server::spawn(command(line), Arc::new(tempfile::tempdir().unwrap()));
                assert_ne!(server.port, 0);
                server.signal("TERM");
                assert!(server.wait().success());
                served += 1;
            }
            _ => {}
        }
    }
    assert_eq!(served, 1);
}
