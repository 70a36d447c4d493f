//! What the servers of others are configured with.

use super::material::Material;
use super::work::KEPT;

/// What a server has to answer with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content<'a> {
    /// The files of a folder.
    Files,
    /// What the upstream at this address has.
    From(&'a str),
}

/// nginx with TLS, by HTTP/2 as well if wanted.
pub(super) fn nginx(material: &Material, address: &str, http2: bool, content: Content<'_>) -> String {
    let (certificate, key, site) =
        (material.certificate.display(), material.key.display(), material.site().display().to_string());
    let (upstream, location) = match content {
        Content::Files => (String::new(), format!("root {site};")),
        Content::From(address) => (
            format!(
                "upstream behind {{\n    server {address};\n    keepalive {KEPT};\n    keepalive_requests 1000000000;\n}}\n"
            ),
            "proxy_pass http://behind;\n        proxy_http_version 1.1;\n        proxy_set_header Connection \"\";"
                .to_owned(),
        ),
    };
    let http2 = if http2 { " http2" } else { "" };
    around(
        material,
        &format!(
            "{upstream}server {{\n    listen {address} ssl{http2} backlog=4096;\n    ssl_certificate {certificate};\n    \
             ssl_certificate_key {key};\n    ssl_protocols TLSv1.3;\n    location / {{\n        {location}\n    }}\n}}\n"
        ),
    )
}

/// The nginx behind: always the same content, without TLS.
pub(super) fn upstream(material: &Material, address: &str, bytes: usize) -> String {
    let content = "x".repeat(bytes);
    around(
        material,
        &format!(
            "server {{\n    listen {address} backlog=4096;\n    location / {{\n        default_type text/html;\n        \
             return 200 {content};\n    }}\n}}\n"
        ),
    )
}

/// One process, which does the work itself: it ends when it is ended.
fn around(material: &Material, servers: &str) -> String {
    let folder = material.folder().display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|what| format!("{what}_temp_path {folder}/{what};\n"))
        .collect();
    format!(
        "daemon off;\nmaster_process off;\npid {folder}/nginx.pid;\nerror_log stderr;\nevents {{\n    \
         worker_connections 4096;\n}}\nhttp {{\naccess_log off;\n{temporary}types {{\n    text/html html;\n}}\nsendfile on;\n\
         tcp_nopush on;\nopen_file_cache max=100;\nkeepalive_requests 1000000000;\n{servers}}}\n"
    )
}

/// Caddy, by all versions of HTTP.
pub(super) fn caddy(material: &Material, address: &str, content: Content<'_>) -> String {
    let (certificate, key, site) =
        (material.certificate.display(), material.key.display(), material.site().display().to_string());
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "443"));
    let answers = match content {
        Content::Files => format!("root * {site}\n\tfile_server"),
        Content::From(address) => format!(
            "reverse_proxy {address} {{\n\t\ttransport http {{\n\t\t\tkeepalive_idle_conns_per_host {KEPT}\n\t\t}}\n\t}}"
        ),
    };
    format!(
        "{{\n\tadmin off\n\tauto_https off\n\tdefault_sni localhost\n\tservers {{\n\t\tprotocols h1 h2 h3\n\t}}\n}}\n\
         :{port} {{\n\tbind {host}\n\ttls {certificate} {key}\n\t{answers}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nginx_serves_files_or_keeps_connections_to_the_upstream() {
        let material = Material::at("/m".into(), "/c".as_ref());
        let files = nginx(&material, "127.0.0.1:1", true, Content::Files);
        assert!(
            files.contains("listen 127.0.0.1:1 ssl http2 ") && files.contains("root /m/site;"),
            "{files}"
        );
        assert!(files.contains("ssl_certificate /c/leaf.pem;") && files.contains("access_log off;"));
        assert!(!files.contains("proxy_pass") && !files.contains("upstream"));
        let passed_on = nginx(&material, "127.0.0.1:1", false, Content::From("127.0.0.1:2"));
        for words in [
            "listen 127.0.0.1:1 ssl backlog",
            "server 127.0.0.1:2;\n    keepalive 256;",
            "proxy_http_version 1.1;",
            "proxy_set_header Connection \"\";",
        ] {
            assert!(passed_on.contains(words), "{words}: {passed_on}");
        }
        let behind = upstream(&material, "127.0.0.1:2", 3);
        assert!(behind.contains("return 200 xxx;") && !behind.contains("ssl"), "{behind}");
        for text in [files, passed_on, behind] {
            assert_eq!(text.matches('{').count(), text.matches('}').count(), "{text}");
        }
    }

    #[test]
    fn caddy_keeps_as_many_connections_as_nginx() {
        let material = Material::at("/m".into(), "/c".as_ref());
        let files = caddy(&material, "127.0.0.1:1", Content::Files);
        assert!(files.contains(":1 {\n\tbind 127.0.0.1\n\ttls /c/leaf.pem /c/leaf.key\n\troot * /m/site\n"));
        assert!(files.contains("protocols h1 h2 h3"));
        let passed_on = caddy(&material, "127.0.0.1:1", Content::From("127.0.0.1:2"));
        assert!(passed_on.contains("reverse_proxy 127.0.0.1:2 {"));
        assert!(passed_on.contains("keepalive_idle_conns_per_host 256"));
    }
}
