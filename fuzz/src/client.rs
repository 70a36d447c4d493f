//! The parsers of `godwit-client` for what servers and people write. Each function panics if what they give does not
//! hold together, and returns whether the text was understood.

use godwit_client::Target;
use godwit_client::alt_svc::{self, AltSvc, Alternative};

/// A value of `Alt-Svc`: what was understood can be written and reads the same again.
pub fn alt_svc(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Ok(AltSvc::Alternatives(alternatives)) = alt_svc::parse(text) else { return text.trim() == "clear" };
    for alternative in alternatives {
        assert!(alternative.port > 0);
        let host = alternative.host.as_deref().unwrap_or_default();
        assert!(host.len() <= 253 && host.is_ascii() && !host.contains(|c: char| c.is_ascii_uppercase()));
        let again = alt_svc::parse(&written(&alternative));
        assert_eq!(again, Ok(AltSvc::Alternatives(vec![alternative])), "an alternative reads the same again");
    }
    true
}

fn written(alternative: &Alternative) -> String {
    let host = alternative.host.as_deref().unwrap_or_default();
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let persist = if alternative.persist { "; persist=1" } else { "" };
    let Alternative { protocol, port, age, .. } = alternative;
    format!("{protocol}=\"{host}:{port}\"; ma={}{persist}", age.as_secs())
}

/// A URL, and on the next line a reference in the document there: a URL's parts make up the same URL.
pub fn url(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let (base, reference) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(base) = Target::parse(base) else { return false };
    holds_together(&base);
    let itself = base.join("").expect("a document has its own URL");
    assert_eq!((itself.origin(), itself.path()), (base.origin(), base.path()));
    let Ok(joined) = base.join(reference) else { return false };
    holds_together(&joined);
    true
}

fn holds_together(target: &Target) {
    assert!(target.origin().port > 0 && !target.origin().host.is_empty());
    assert!(target.path().starts_with('/'));
    let again = Target::parse(&format!("{}{}", target.origin(), target.path()));
    let again = again.expect("a URL's parts are a URL");
    assert_eq!((again.origin(), again.path()), (target.origin(), target.path()));
    assert!(
        !target.to_string().contains(|c: char| c.is_control()),
        "what is displayed does nothing to a terminal"
    );
}
