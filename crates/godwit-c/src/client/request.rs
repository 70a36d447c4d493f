//! Requests: what is sent, and what comes back.

use super::{Client, options};
use crate::abi::{self, Plain};
use crate::border::call;
use crate::exchange::api::{check_mode, declared};
use crate::exchange::{Exchange, SentBody, Side, USUAL_LIMIT, receive};
use crate::failure::Failure;
use crate::given;
use crate::handles;
use crate::intake::Intake;
use crate::subject::Subject;
use crate::words::{address, nanoseconds, protocol};
use godwit_client::{BodySource, Error, ErrorKind, RequestBuilder, Response};
use http::{HeaderMap, Method};
use std::sync::{Arc, OnceLock};

/// A request that has been looked at.
struct Wanted {
    method: Method,
    url: String,
    headers: HeaderMap,
    whole: bytes::Bytes,
    options: abi::Request,
}

/// # Safety
/// What the request points to is there.
unsafe fn wanted(options: abi::Request) -> Result<Wanted, Failure> {
    given::flags(options.flags, 0, "a request")?;
    check_mode(options.body_mode)?;
    // SAFETY: the caller's promise.
    unsafe {
        let method = given::text_if_any(options.method, "the method")?.unwrap_or("GET");
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| {
            Failure::argument(format!("{:?} is no method", method.escape_debug().to_string()))
        })?;
        let url = given::text(options.url, "the URL")?.to_owned();
        let headers = given::headers(options.headers, options.header_count)?;
        let whole = given::bytes(options.body, options.body_length, "the body")?;
        Ok(Wanted { method, url, headers, whole, options })
    }
}

/// What goes to the client, for this exchange.
fn build(client: &Client, exchange: &Arc<Exchange>, wanted: Wanted) -> Result<RequestBuilder, Failure> {
    let Wanted { method, url, headers, whole, options } = wanted;
    let body = match options.body_mode {
        abi::BODY_WHOLE => BodySource::bytes(whole),
        abi::BODY_STREAM => {
            exchange.outbox.open();
            BodySource::stream(SentBody::new(Arc::clone(exchange), declared(&headers)?))
        }
        _ => BodySource::empty(),
    };
    let mut builder = client.client.ask(method, url).body(body);
    for (name, value) in &headers {
        builder = builder.header(name.clone(), value.clone());
    }
    if let Some(versions) = options::versions(options.versions)? {
        builder = builder.versions(versions);
    }
    Ok(match given::time(options.timeout_ms) {
        Some(limit) => builder.timeout(limit),
        None => builder,
    })
}

/// Sends it, and tells what comes back.
async fn run(exchange: &Exchange, intake: &Intake, builder: RequestBuilder) -> Result<(), Error> {
    let response = builder.send().await?;
    if let Side::Client { connection } = &exchange.side {
        // There is one response.
        let _ = connection.set(response.route().quic().cloned());
    }
    tell_head(exchange, &response);
    receive(exchange, intake, response.into_body()).await?;
    exchange.tell_last(exchange.event(abi::EVENT_END));
    Ok(())
}

fn tell_head(exchange: &Exchange, response: &Response) {
    let route = response.route();
    let mut flags = if route.is_new { abi::RESPONSE_NEW_CONNECTION } else { 0 };
    if route.again.is_some() {
        flags |= abi::RESPONSE_SENT_AGAIN;
    }
    let (resolve, handshake) = route.connect.unwrap_or_default();
    let length = response.headers().get(http::header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse().ok());
    let event = exchange.event(abi::EVENT_RESPONSE).with_headers(response.headers().clone());
    exchange.tell(event.lending(|lent| {
        lent.response = Some(Box::new(abi::Response {
            flags,
            status: response.status().as_u16().into(),
            protocol: protocol(response.version()),
            content_length: length.unwrap_or(u64::MAX),
            resolve_ns: nanoseconds(resolve),
            handshake_ns: nanoseconds(handshake),
            rtt_ns: nanoseconds(route.rtt()),
            url: lent.keep(response.target().to_string()),
            reason: lent.keep(&*route.reason),
            remote_address: address(Some(route.remote())),
            ..abi::Response::zeroed()
        }));
    }));
}

/// Why an exchange failed.
fn failure(error: &Error) -> Failure {
    let status = match error.kind() {
        ErrorKind::Resolve => abi::ERROR_RESOLVE,
        ErrorKind::Connect => abi::ERROR_CONNECT,
        ErrorKind::Certificate => abi::ERROR_CERTIFICATE,
        ErrorKind::Request => abi::ERROR_REQUEST,
        ErrorKind::Redirect => abi::ERROR_REDIRECT,
        ErrorKind::Response | ErrorKind::Status => abi::ERROR_RESPONSE,
        ErrorKind::Timeout => abi::ERROR_TIMEOUT,
        ErrorKind::File => abi::ERROR_FILE,
        _ => abi::ERROR_EXCHANGE,
    };
    Failure::new(status, error.to_string())
}

/// Sends a request, and gives the exchange that it begins.
fn begin(client: &Arc<Client>, wanted: Wanted, tag: u64) -> Result<Arc<Exchange>, Failure> {
    let token = client.token()?;
    let exchange = handles::insert(|handle| {
        let subject = Subject::of(&client.subject, handle, tag);
        Exchange::new(subject, client.send_limit, Side::Client { connection: OnceLock::new() })
    })?;
    let builder = build(client, &exchange, wanted).inspect_err(|_| {
        // The application never hears of it.
        let _ = handles::close(exchange.subject.handle);
    })?;
    let (working, intake) = (Arc::clone(&exchange), Intake::new(client.receive_limit, USUAL_LIMIT));
    client.runtime.spawn(async move {
        let outcome = tokio::select! {
            biased;
            () = working.until_over() => Ok(()),
            outcome = run(&working, &intake, builder) => outcome,
        };
        if let Err(error) = outcome {
            let remedy = error.remedy().map(ToString::to_string).unwrap_or_default();
            working.fail(&failure(&error), remedy);
        }
        drop(token);
    });
    Ok(exchange)
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_client_request(
    client: u64,
    request: *const abi::Request,
    tag: u64,
    exchange: *mut u64,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        given::place(exchange, "the place for the exchange's handle")?;
        let client = handles::get::<Client>(client)?;
        // SAFETY: the caller's promise.
        let wanted = unsafe { wanted(given::take(request)?) }?;
        let begun = begin(&client, wanted, tag)?;
        // SAFETY: the caller's promise.
        unsafe { given::put(exchange, begun.subject.handle, "the place for the exchange's handle") }
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}
