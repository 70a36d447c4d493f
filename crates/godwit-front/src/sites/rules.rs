//! Header rules of a site: names taken away, replaced and added, for requests on their way in and responses on
//! their way out.
//!
//! Fields that belong to one connection or frame the message (RFC 9110 section 7.6.1) are never touched: that
//! would break what the protocols rely on. The configuration refuses them with a message; here they are left out.

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue};

use crate::settings::HeaderRules;

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
pub(super) fn apply_to_request(rules: &HeaderRules, headers: &mut HeaderMap) {
    let given = || rules.set.iter().chain(&rules.add).map(|(name, _)| name);
    let is_twin = |name: &HeaderName| {
        let plain = name.as_str().replace('_', "-");
        name.as_str().contains('_')
            && given().chain(&rules.remove).any(|ruled| ruled != name && ruled.as_str() == plain)
    };
    let twins: Vec<HeaderName> = headers.keys().filter(|name| is_twin(name)).cloned().collect();
    for name in &twins {
        headers.remove(name);
    }
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
