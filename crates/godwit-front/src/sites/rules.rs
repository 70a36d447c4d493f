//! Header rules of a site: names taken away, replaced and added, for requests on their way in and responses on
//! their way out.
//!
//! What is a request's trailers or an informational response is under the same rules, as far as they take away: see
//! [`requested`] and [`apply_to_informational`].
//!
//! Fields that belong to one connection or frame the message (RFC 9110 section 7.6.1) are never touched: that
//! would break what the protocols rely on. The configuration refuses them with a message; here they are left out.

use std::sync::Arc;
use std::task::{Context, Poll};

use godwit_body::{BoxBody, FramePoll, Informational, Wrapped, Wrapper, boxed, empty};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue, Request};
use http_body::{Body, Frame};

use crate::settings::HeaderRules;

/// A request of a client by a site's rules for requests, with informational responses by its rules for responses.
pub(super) fn requested(
    request: &mut Request<BoxBody>,
    rules: &Arc<HeaderRules>,
    of_responses: &Arc<HeaderRules>,
) {
    if !says_nothing(rules) {
        apply_to_request(rules, request.headers_mut());
    }
    if !says_nothing(of_responses)
        && let Some(sink) = request.extensions_mut().remove::<Informational>()
    {
        let rules = Arc::clone(of_responses);
        request.extensions_mut().insert(Informational::new(move |mut response| {
            apply_to_informational(&rules, response.headers_mut());
            sink.send(response)
        }));
    }
    if says_nothing(rules) || request.body().is_end_stream() {
        return;
    }
    let body = std::mem::replace(request.body_mut(), empty());
    *request.body_mut() = boxed(Wrapped::with(body, TrailerRules(Arc::clone(rules))));
}

fn says_nothing(rules: &HeaderRules) -> bool {
    rules.set.is_empty() && rules.add.is_empty() && rules.remove.is_empty()
}

/// Takes out of trailers what a rule is about: some servers merge them into the header section, where a client's word would
/// stand beside the operator's, or in place of it.
struct TrailerRules(Arc<HeaderRules>);

impl Wrapper for TrailerRules {
    fn on_answer(&mut self, answer: FramePoll, _: &mut Context<'_>) -> FramePoll {
        let Poll::Ready(Some(Ok(frame))) = answer else { return answer };
        Poll::Ready(Some(Ok(match frame.into_trailers() {
            Ok(mut trailers) => {
                remove_where(&mut trailers, |name| is_ruled(&self.0, name));
                Frame::trailers(trailers)
            }
            Err(frame) => frame,
        })))
    }
}

/// Whether a rule is about this name, or about one that differs from it by hyphens in place of underscores: some upstreams
/// take both for the same.
fn is_ruled(rules: &HeaderRules, name: &HeaderName) -> bool {
    let plain = name.as_str().replace('_', "-");
    let given = rules.set.iter().chain(&rules.add).map(|(name, _)| name);
    given.chain(&rules.remove).any(|ruled| ruled == name || ruled.as_str() == plain)
}

fn remove_where(headers: &mut HeaderMap, is_wrong: impl Fn(&HeaderName) -> bool) {
    let wrong: Vec<HeaderName> = headers.keys().filter(|name| is_wrong(name)).cloned().collect();
    for name in &wrong {
        headers.remove(name);
    }
}

/// As [`apply`], for an informational response: what is removed is missing there too, and what is set is set where the upstream
/// says it. Nothing is said that the upstream does not say: it may send any number of them, and the final response says it.
fn apply_to_informational(rules: &HeaderRules, headers: &mut HeaderMap) {
    remove_where(headers, |name| !is_framing(name) && rules.remove.contains(name));
    for (name, value) in &rules.set {
        if !is_framing(name) && headers.contains_key(name) {
            headers.insert(name.clone(), value.clone());
        }
    }
}

/// Removes, then sets, then adds.
pub(super) fn apply(rules: &HeaderRules, headers: &mut HeaderMap) {
    for name in rules.remove.iter().filter(|name| !is_framing(name)) {
        headers.remove(name);
    }
    for (name, value) in rules.set.iter().filter(|(name, _)| !is_framing(name)) {
        headers.insert(name.clone(), value.clone());
    }
    for (name, value) in rules.add.iter().filter(|(name, _)| !is_framing(name)) {
        headers.append(name.clone(), value.clone());
    }
}

/// As [`apply`], for what a client sent: it can neither take back what the operator sets, by naming it in `Connection`,
/// nor say it a second time in the spelling with underscores that some upstreams take for the same name.
fn apply_to_request(rules: &HeaderRules, headers: &mut HeaderMap) {
    let given = || rules.set.iter().chain(&rules.add).map(|(name, _)| name);
    let is_own = |name: &HeaderName| given().chain(&rules.remove).any(|ruled| ruled == name);
    remove_where(headers, |name| !is_own(name) && is_ruled(rules, name));
    let takes_back =
        |member: &[u8]| given().any(|name| name.as_str().as_bytes().eq_ignore_ascii_case(member));
    // As bytes: a member that is no text must not hide the others.
    let values = headers.get_all(CONNECTION).iter().map(HeaderValue::as_bytes);
    let members = values.flat_map(|value| value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii));
    let (taken, left): (Vec<&[u8]>, Vec<&[u8]>) = members.partition(|member| takes_back(member));
    if !taken.is_empty() {
        let left = left.into_iter().filter_map(|member| HeaderValue::from_bytes(member).ok());
        let left: Vec<HeaderValue> = left.collect();
        headers.remove(CONNECTION);
        headers.extend(left.into_iter().map(|member| (CONNECTION, member)));
    }
    apply(rules, headers);
}

/// Whether a field is managed by the server alone. `Host` is among them: it decides who answers, here and
/// upstream.
pub(crate) fn is_framing(name: &HeaderName) -> bool {
    const FIELDS: [HeaderName; 7] =
        [CONNECTION, CONTENT_LENGTH, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];
    FIELDS.contains(name) || matches!(name.as_str(), "keep-alive" | "proxy-connection" | "http2-settings")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Response;
    use http_body_util::{BodyExt, Full};

    use super::*;

    fn field(name: &'static str, value: &'static str) -> (HeaderName, HeaderValue) {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    }

    #[test]
    fn a_client_cannot_take_back_what_the_operator_says() {
        let rules = HeaderRules { set: vec![field("x-inner", "operator")], ..HeaderRules::default() };
        let mut headers = HeaderMap::new();
        for (name, value) in [("connection", "close, X-Inner"), ("x_inner", "client"), ("x_other", "stays")] {
            headers.append(name, value.parse().unwrap());
        }
        apply_to_request(&rules, &mut headers);
        assert_eq!(headers["x-inner"], "operator");
        assert_eq!(headers.get_all(CONNECTION).iter().collect::<Vec<_>>(), ["close"]);
        assert!(!headers.contains_key("x_inner") && headers.contains_key("x_other"));
    }

    #[test]
    fn nor_beside_odd_bytes() {
        let rules = HeaderRules { set: vec![field("x-inner", "operator")], ..HeaderRules::default() };
        let mut headers = HeaderMap::new();
        headers.append(CONNECTION, HeaderValue::from_bytes(b"\xff, X-Inner, close").unwrap());
        apply_to_request(&rules, &mut headers);
        let left: Vec<_> = headers.get_all(CONNECTION).iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(left, [&b"\xff"[..], b"close"]);
    }

    #[tokio::test]
    async fn nor_in_trailers() {
        let rules = HeaderRules {
            set: vec![field("x-set", "operator")],
            add: vec![field("x-add", "operator")],
            remove: vec![HeaderName::from_static("x-removed")],
        };
        let names = ["x-set", "x-add", "x-removed", "x_set", "x_removed", "x-other"];
        let trailers: HeaderMap = names.into_iter().map(|name| field(name, "client")).collect();
        let body = Full::new(Bytes::from("content")).with_trailers(std::future::ready(Some(Ok(trailers))));
        let mut request = Request::new(boxed(body));
        requested(&mut request, &Arc::new(rules), &Arc::default());
        assert!(request.headers()["x-set"] == "operator" && request.headers()["x-add"] == "operator");
        let body = request.into_body().collect().await.unwrap();
        assert_eq!(body.trailers().unwrap().keys().collect::<Vec<_>>(), ["x-other"]);
        assert_eq!(body.to_bytes(), "content");
    }

    #[test]
    fn informational_responses_say_no_more_than_their_upstream_and_nothing_that_is_taken_away() {
        let rules = HeaderRules {
            set: vec![field("x-set", "operator"), field("x-more", "operator")],
            add: vec![field("link", "</added>")],
            remove: vec![HeaderName::from_static("x-removed")],
        };
        let (sender, sent) = std::sync::mpsc::channel();
        let mut request = Request::new(godwit_body::empty());
        request.extensions_mut().insert(Informational::new(move |response| Ok(sender.send(response)?)));
        requested(&mut request, &Arc::default(), &Arc::new(rules));
        let mut hints = Response::new(());
        for name in ["x-set", "x-removed", "link"] {
            hints.headers_mut().insert(name, HeaderValue::from_static("upstream"));
        }
        request.extensions().get::<Informational>().unwrap().send(hints).unwrap();
        let expected = HeaderMap::from_iter([field("x-set", "operator"), field("link", "upstream")]);
        assert_eq!(sent.try_recv().unwrap().headers(), &expected);
    }

    #[test]
    fn rules_remove_then_set_then_add() {
        let rules = HeaderRules {
            remove: vec![HeaderName::from_static("x-powered-by"), HeaderName::from_static("vary")],
            set: vec![field("x-a", "new")],
            add: vec![field("vary", "origin"), field("x-a", "more")],
        };
        let mut headers = HeaderMap::new();
        for (name, value) in [("x-powered-by", "php"), ("x-a", "1"), ("x-a", "2"), ("vary", "cookie")] {
            headers.append(name, value.parse().unwrap());
        }
        apply(&rules, &mut headers);
        assert!(!headers.contains_key("x-powered-by"));
        assert_eq!(headers.get_all("x-a").iter().collect::<Vec<_>>(), ["new", "more"]);
        assert_eq!(headers.get_all("vary").iter().collect::<Vec<_>>(), ["origin"]);
    }

    #[test]
    fn what_frames_a_message_is_out_of_reach() {
        let rules = HeaderRules {
            remove: vec![CONTENT_LENGTH, HOST],
            set: vec![field("transfer-encoding", "chunked"), field("connection", "close")],
            add: vec![field("keep-alive", "1"), field("upgrade", "x")],
        };
        let mut headers = HeaderMap::from_iter([field("content-length", "5"), field("host", "a.test")]);
        let before = headers.clone();
        apply(&rules, &mut headers);
        assert_eq!(headers, before);
    }
}
