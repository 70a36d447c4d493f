//! One order: names are proved, a key is made, a certificate is fetched (RFC 8555 section 7.4).

use std::time::Duration;

use instant_acme::{
    Account, AuthorizationHandle, AuthorizationStatus, CertificateIdentifier, ChallengeType, Error,
    Identifier, NewOrder, Order, OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256};

use super::challenges::{Answer, Challenges, Open};
use super::problem::{Kind, Problem};
use super::settings::Method;

/// How long the server may take to check the names, and then to issue.
const TIMEOUT: Duration = Duration::from_secs(180);

/// What is asked for.
pub(super) struct Wanted<'a> {
    pub(super) names: &'a [String],
    pub(super) method: Method,
    /// The certificate that is renewed, for servers that want to know (RFC 9773 section 5).
    pub(super) replaces: Option<CertificateIdentifier<'static>>,
    /// The server's directory, for messages.
    pub(super) url: &'a str,
}

/// Has a certificate issued, and returns its key and its chain in one text, PEM both.
pub(super) async fn issue(
    account: &Account,
    wanted: &Wanted<'_>,
    challenges: &Challenges,
) -> Result<String, Problem> {
    let fail = |error: Error| Problem::of(&error, wanted.url);
    let identifiers: Vec<_> =
        wanted.names.iter().map(|name| Identifier::Dns(name.to_ascii_lowercase())).collect();
    let mut order = place(account, &identifiers, wanted).await.map_err(fail)?;
    let open = answer(&mut order, wanted, challenges).await?;
    let status = order.poll_ready(&policy()).await;
    if !matches!(status, Ok(OrderStatus::Ready)) {
        return Err(why_not(&mut order, status.err(), wanted).await);
    }
    drop(open);
    let (key, request) = request(wanted.names)?;
    order.finalize_csr(&request).await.map_err(fail)?;
    let chain = order.poll_certificate(&policy()).await.map_err(fail)?;
    Ok(format!("{key}{chain}"))
}

fn policy() -> RetryPolicy {
    RetryPolicy::new().initial_delay(Duration::from_millis(250)).backoff(1.5).timeout(TIMEOUT)
}

async fn place(account: &Account, names: &[Identifier], wanted: &Wanted<'_>) -> Result<Order, Error> {
    if let Some(replaced) = &wanted.replaces {
        match account.new_order(&NewOrder::new(names).replaces(replaced.clone())).await {
            // It has been replaced already, or the server does not know it: that is no reason to go without.
            Err(Error::Unsupported(_)) => {}
            Err(Error::Api(problem)) if is_about_the_old_one(problem.r#type.as_deref()) => {}
            outcome => return outcome,
        }
    }
    account.new_order(&NewOrder::new(names)).await
}

fn is_about_the_old_one(kind: Option<&str>) -> bool {
    kind.is_some_and(|kind| {
        ["alreadyReplaced", "malformed", "conflict"].iter().any(|end| kind.ends_with(end))
    })
}

/// Proves every name that is not proved from earlier on.
async fn answer(
    order: &mut Order,
    wanted: &Wanted<'_>,
    challenges: &Challenges,
) -> Result<Vec<Open>, Problem> {
    let mut open = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.map_err(|error| Problem::of(&error, wanted.url))?;
        match authorization.status {
            AuthorizationStatus::Valid => {}
            AuthorizationStatus::Pending => {
                open.push(answer_one(&mut authorization, wanted, challenges).await?)
            }
            status => {
                let state = format!("{status:?}").to_lowercase();
                let message =
                    format!("the proof of {} is {state}; another is tried", name_of(&authorization));
                return Err(Problem::new(Kind::NotProved, message));
            }
        }
    }
    Ok(open)
}

async fn answer_one<'a>(
    authorization: &'a mut AuthorizationHandle<'a>,
    wanted: &Wanted<'_>,
    challenges: &Challenges,
) -> Result<Open, Problem> {
    let name = name_of(authorization);
    let (kind, words) = kind_of(wanted.method);
    let Some(mut challenge) = authorization.challenge(kind) else {
        let message =
            format!("{} does not offer {words} for {name}; set acme.challenge to the other one", wanted.url);
        return Err(Problem::new(Kind::Refused, message));
    };
    let proof = challenge.key_authorization();
    let answer = match wanted.method {
        Method::TlsAlpn01 => Answer::tls(&name, proof.digest().as_ref())
            .map_err(|problem| Problem::new(Kind::Refused, problem))?,
        Method::Http01 => Answer::Http(challenge.token.clone(), proof.as_str().to_owned()),
    };
    let open = challenges.open(vec![answer]);
    challenge.set_ready().await.map_err(|error| Problem::of(&error, wanted.url))?;
    Ok(open)
}

fn kind_of(method: Method) -> (ChallengeType, &'static str) {
    match method {
        Method::TlsAlpn01 => (ChallengeType::TlsAlpn01, "tls-alpn-01"),
        Method::Http01 => (ChallengeType::Http01, "http-01"),
    }
}

fn name_of(authorization: &AuthorizationHandle<'_>) -> String {
    authorization.identifier().to_string()
}

/// Finds the name that could not be proved, and what the server says of it.
async fn why_not(order: &mut Order, error: Option<Error>, wanted: &Wanted<'_>) -> Problem {
    let port = match wanted.method {
        Method::TlsAlpn01 => 443,
        Method::Http01 => 80,
    };
    let (kind, _) = kind_of(wanted.method);
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let Ok(state) = authorization.refresh().await else { break };
        if state.status == AuthorizationStatus::Invalid {
            let challenge = state.challenges.iter().find(|challenge| challenge.r#type == kind);
            let found = challenge.and_then(|challenge| challenge.error.as_ref());
            return Problem::not_proved(&state.identifier().to_string(), found, port);
        }
    }
    match error {
        Some(error) => Problem::of(&error, wanted.url),
        None => {
            Problem::new(Kind::NotProved, format!("{} gave up the order; it is placed again", wanted.url))
        }
    }
}

/// A key (PEM), and the request to certify it (DER).
fn request(names: &[String]) -> Result<(String, Vec<u8>), Problem> {
    let fail = |error: rcgen::Error| {
        Problem::new(Kind::Refused, format!("cannot make a certificate request: {error}"))
    };
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(fail)?;
    let names: Vec<_> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    let mut params = CertificateParams::new(names).map_err(fail)?;
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(&key).map_err(fail)?;
    Ok((key.serialize_pem(), request.der().to_vec()))
}
