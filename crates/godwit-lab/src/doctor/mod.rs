//! What keeps HTTP/3 from working, and what to do about each thing found.
//!
//! Without a site this machine is examined (`machine`): sockets, buffers, offloads, limits, a handshake with itself.
//! With one the way to that site as well (`way`): names and HTTPS records (`records`), every address over TCP and QUIC
//! (`probe`), the certificate (`certificate`), and what is advertised. Each thing looked at is one [`Finding`]; those
//! about one part of the world are a section.

mod certificate;
mod finding;
mod machine;
mod probe;
mod records;
mod report;
mod site;
mod way;

use std::net::SocketAddr;
use std::time::Duration;

use godwit_client::trust::Roots;

pub use finding::{Finding, Findings, Level};
pub use report::Diagnosis;
pub use site::Site;

/// How long one name server, connection or answer may take.
const LONGEST: Duration = Duration::from_secs(5);

/// What is to be examined.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The site, besides this machine.
    pub site: Option<Site>,
    /// Whom to trust.
    pub roots: Roots,
    /// The name server to ask rather than the system's.
    pub dns: Option<SocketAddr>,
}

impl Options {
    /// This machine alone.
    #[must_use]
    pub fn new(roots: Roots) -> Options {
        Options { site: None, roots, dns: None }
    }
}

/// Examines, within a runtime of tokio; each section is shown as soon as it is done.
pub async fn examine(options: Options, show: &mut dyn FnMut(&Findings)) -> Diagnosis {
    let Options { site, roots, dns } = options;
    let mut diagnosis = Diagnosis::default();
    let mut section = |findings: Findings| {
        show(&findings);
        diagnosis.sections.push(findings);
    };
    let mut findings = Findings::new("this machine");
    machine::examine(&mut findings).await;
    section(findings);
    if let Some(site) = &site {
        way::examine(site, roots, dns, &mut section).await;
    }
    diagnosis
}
