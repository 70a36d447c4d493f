//! The client: fetches every URL into a folder.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use godwit::{ClientConfig, Connection, Endpoint, http3};
use http::{Request, Uri};
use http_body_util::{BodyExt, Empty};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::case::Case;
use super::task::{Task, Watch};
use super::{files, hq, settings};
use crate::Error;
use godwit_text::plain_error as plain;

/// Requests under way at a time: as many as servers permit, commonly.
const PARALLEL: usize = 100;
/// How often to try to change the keys until it is not too early any more.
const KEYS_AGAIN: Duration = Duration::from_millis(5);

/// One server, and how to reach it.
struct Origin {
    endpoint: Endpoint,
    config: ClientConfig,
    address: SocketAddr,
    name: String,
    folder: Arc<Path>,
    watch: Watch,
}

/// Fetches everything as the case wants it.
pub(super) async fn run(task: &Task) -> Result<(), Error> {
    let urls = task.urls.iter().map(|url| parse(url)).collect::<Result<Vec<_>, _>>()?;
    let first = urls.first().ok_or_else(|| Error::new("there is nothing to fetch"))?;
    let origin = Origin::new(task, first).await?;
    match task.case {
        Case::MultiConnect => {
            for url in &urls {
                origin.fetch(std::slice::from_ref(url), task.case).await?;
            }
        }
        Case::Resumption | Case::ZeroRtt => {
            let (first, rest) = urls.split_at(1);
            origin.fetch(first, task.case).await?;
            origin.fetch(rest, task.case).await?;
        }
        Case::Http3 => origin.fetch_http3(&urls).await?,
        case => origin.fetch(&urls, case).await?,
    }
    let _ = tokio::time::timeout(super::CLOSING, origin.endpoint.wait_idle()).await;
    Ok(())
}

impl Origin {
    async fn new(task: &Task, url: &Uri) -> Result<Origin, Error> {
        let name = url.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = url.port_u16().unwrap_or(443);
        let unknown = |why: String| Error::new(format!("cannot find {name}: {why}"));
        let found = tokio::net::lookup_host((name.as_str(), port)).await;
        let found = found.map_err(|error| unknown(plain(&error)))?.next();
        let address = found.ok_or_else(|| unknown("it has no address".to_owned()))?;
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let mut builder = Endpoint::builder().bind(SocketAddr::new(any, 0));
        builder = builder.prefer_version_2(task.case == Case::Version2);
        if let Some(folder) = &task.qlog {
            builder = builder.qlog_dir(folder);
        }
        let endpoint =
            builder.build().map_err(|error| Error::new(format!("no socket: {}", plain(&error))))?;
        let config = settings::client(task)?;
        Ok(Origin {
            endpoint,
            config,
            address,
            name,
            folder: Arc::from(task.downloads.as_path()),
            watch: Arc::clone(&task.watch),
        })
    }

    /// A connection that is complete, or ready for 0-RTT if that is what is tested and possible.
    async fn connect(&self, case: Case) -> Result<Connection, Error> {
        let failed = |error: &dyn std::fmt::Display| Error::new(format!("no connection: {error}"));
        let connecting = self.endpoint.connect(&self.config, self.address, &self.name);
        let mut connecting = connecting.map_err(|error| failed(&error))?;
        if case == Case::ZeroRtt {
            connecting = match connecting.into_early() {
                Ok(connection) => return Ok(connection),
                Err(connecting) => connecting,
            };
        }
        connecting.await.map_err(|error| failed(&error))
    }

    /// All URLs over one connection, each on a stream.
    async fn fetch(&self, urls: &[Uri], case: Case) -> Result<(), Error> {
        let connection = self.connect(case).await?;
        let permits = Arc::new(Semaphore::new(PARALLEL));
        let mut requests = JoinSet::new();
        for url in urls {
            let (connection, permits) = (connection.clone(), Arc::clone(&permits));
            let (folder, path) = (Arc::clone(&self.folder), url.path().to_owned());
            requests.spawn(async move {
                let _permit = permits.acquire_owned().await;
                request(&connection, &folder, &path).await
            });
        }
        if case == Case::KeyUpdate {
            while !connection.force_key_update() && connection.close_reason().is_none() {
                tokio::time::sleep(KEYS_AGAIN).await;
            }
        }
        finish(requests).await?;
        super::announce(&self.watch, &connection).await;
        connection.close(0, b"");
        Ok(())
    }

    async fn fetch_http3(&self, urls: &[Uri]) -> Result<(), Error> {
        let client = http3::Client::connect(&self.endpoint, &self.config, self.address, &self.name).await;
        let client = client.map_err(|error| Error::new(format!("no connection: {error}")))?;
        let mut requests = JoinSet::new();
        for url in urls {
            let (client, folder, url) = (client.clone(), Arc::clone(&self.folder), url.clone());
            requests.spawn(async move {
                let path = PathBuf::from(url.path());
                let failed = |why: &dyn std::fmt::Display| Error::new(format!("{}: {why}", path.display()));
                let request = Request::get(&url).body(Empty::new()).map_err(|error| failed(&error))?;
                let response = client.send(request).await.map_err(|error| failed(&error))?;
                if !response.status().is_success() {
                    return Err(failed(&response.status()));
                }
                let mut file = files::create(&folder, url.path())?;
                let mut body = response.into_body();
                while let Some(frame) = body.frame().await {
                    let frame = frame.map_err(|error| failed(&error))?;
                    if let Some(data) = frame.data_ref() {
                        file.write_all(data).map_err(|error| failed(&plain(&error)))?;
                    }
                }
                Ok(())
            });
        }
        finish(requests).await?;
        client.close();
        Ok(())
    }
}

/// Waits for all, and fails with the first that does.
async fn finish(mut requests: JoinSet<Result<(), Error>>) -> Result<(), Error> {
    while let Some(ended) = requests.join_next().await {
        ended.map_err(|error| Error::new(format!("a request was lost: {error}")))??;
    }
    Ok(())
}

async fn request(connection: &Connection, folder: &Path, path: &str) -> Result<(), Error> {
    let failed = |error: &dyn std::fmt::Display| Error::new(format!("{path}: {error}"));
    let mut file = files::create(folder, path)?;
    let (mut send, mut recv) = connection.open_bi().await.map_err(|error| failed(&error))?;
    hq::ask(&mut send, path).await.map_err(|error| failed(&error))?;
    hq::keep(&mut recv, &mut file).await.map_err(|error| failed(&error))
}

fn parse(url: &str) -> Result<Uri, Error> {
    let expected = || Error::new(format!("{url:?}: expected a URL such as https://server4:443/file"));
    let uri: Uri = url.parse().map_err(|_| expected())?;
    let usable = uri.scheme_str() == Some("https") && uri.host().is_some();
    usable.then_some(uri).ok_or_else(expected)
}
