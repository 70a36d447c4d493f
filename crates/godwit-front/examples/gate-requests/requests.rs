//! Requests over HTTP/3, one after another, to three servers: the library's, `godwit-front` with a fixed answer, and
//! `godwit-front` in front of a server that speaks HTTP/1.1.

use crate::Cost;
use crate::rig::{self, Rig};
use bytes::Bytes;
use godwit::http3::Body;
use http::{Request, StatusCode};
use http_body_util::BodyExt;

/// Requests before measuring, so that windows, pools and rings have grown,
const WARM_UP: usize = 200;
/// and measured.
const CALLS: usize = 400;

/// Who answers.
#[derive(Clone, Copy)]
pub(super) enum Server {
    Library,
    Answer,
    Proxy,
}

pub(super) fn measure(server: Server) -> Cost {
    let rig = match server {
        Server::Library => Rig::new(rig::library),
        Server::Answer => Rig::new(|folder| Box::pin(rig::front(folder, rig::respond()))),
        Server::Proxy => Rig::new(|folder| {
            Box::pin(async move {
                let upstream = rig::upstream().await;
                rig::front(folder, rig::proxy(upstream)).await
            })
        }),
    };
    rig.runtime.block_on(ask(&rig, WARM_UP));
    Cost::of(CALLS, || measured_requests(&rig))
}

#[inline(never)]
fn measured_requests(rig: &Rig) {
    rig.runtime.block_on(ask(rig, CALLS));
}

async fn ask(rig: &Rig, requests: usize) {
    for _ in 0..requests {
        let request =
            Request::get("https://a.test/page?with=a&query").header("accept", "*/*").body(Body::empty());
        let answer = rig.client.send(request.expect("a request")).await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
        let body = answer.into_body().collect().await.expect("its body").to_bytes();
        assert_eq!(body, Bytes::from_static(rig::ANSWER.as_bytes()));
    }
}
