//! An `axum` router behind HTTP/3, HTTP/2 and HTTP/1.1 on one port: `axum_front FOLDER`. It counts visits, and
//! `tower-http` serves the folder in it and compresses what comes out.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::Version;
use axum::routing::get;
use godwit_front::Server;
use tower_http::compression::CompressionLayer;
use tower_http::services::ServeDir;

async fn count(State(visits): State<Arc<AtomicU64>>, version: Version) -> String {
    format!("visit {} over {version:?}\n", visits.fetch_add(1, Ordering::Relaxed) + 1)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: axum_front FOLDER")?;
    let router = Router::new()
        .route("/visits", get(count))
        .fallback_service(ServeDir::new(folder))
        .layer(CompressionLayer::new())
        .with_state(Arc::default());
    let server = Server::builder().listen("127.0.0.1:0".parse()?).service("/", router).bind()?;
    let mut running = server.start().await?;
    println!("listening on {}", running.addresses()[0]);
    tokio::signal::ctrl_c().await?;
    running.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
