//! The functions for exchanges.

use super::{Exchange, SentBody, Side};
use crate::abi;
use crate::border::call;
use crate::failure::Failure;
use crate::given;
use crate::handles;
use crate::quic::statistics;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Response, StatusCode};
use std::ffi::c_void;
use std::sync::{Arc, PoisonError};

/// How many bytes the application says that its body will have.
pub(crate) fn declared(headers: &HeaderMap) -> Result<Option<u64>, Failure> {
    let Some(value) = headers.get(CONTENT_LENGTH) else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    let wrong = || Failure::argument("the header content-length is not a number of bytes");
    number.map(Some).ok_or_else(wrong)
}

/// That this is as long as the application says, where a body of so many bytes is sent or, to HEAD, only described.
fn check_length(declared: Option<u64>, length: usize) -> Result<(), Failure> {
    match declared {
        Some(declared) if declared != length as u64 => Err(Failure::argument(format!(
            "the header content-length says {declared} bytes, and the body has {length}; leave the header out"
        ))),
        _ => Ok(()),
    }
}

fn not_of_client() -> Failure {
    Failure::new(abi::ERROR_UNSUPPORTED, "a client does not respond; this is the exchange of one")
}

/// Sends the response, to whom waits for it.
fn respond(
    exchange: &Arc<Exchange>,
    response: &abi::ResponseOptions,
    mut headers: HeaderMap,
) -> Result<(), Failure> {
    let Side::Server { respond, is_head, .. } = &exchange.side else { return Err(not_of_client()) };
    let status = u16::try_from(response.status).ok().filter(|status| (200..=999).contains(status));
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.ok_or_else(|| {
        Failure::argument(format!("the status is {}, expected 200 to 999", response.status))
    })?;
    // SAFETY: who calls this was promised it.
    let whole = unsafe { given::bytes(response.body, response.body_length, "the body") }?;
    let declared = declared(&headers)?;
    let has_body = !(*is_head || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED);
    if response.body_mode == abi::BODY_WHOLE && (has_body || (*is_head && !whole.is_empty())) {
        check_length(declared, whole.len())?;
    }
    let waits = respond.lock().unwrap_or_else(PoisonError::into_inner).take();
    let waits = waits.filter(|_| !exchange.is_over()).ok_or_else(|| {
        let text = "the exchange was answered, or has failed, before; there is one response to a request";
        Failure::new(abi::ERROR_STATE, text)
    })?;
    match response.body_mode {
        abi::BODY_STREAM if has_body => exchange.outbox.open(),
        abi::BODY_WHOLE if has_body => exchange.outbox.fill(whole),
        // HEAD is told how long the body would be.
        abi::BODY_WHOLE if *is_head && declared.is_none() => {
            headers.insert(CONTENT_LENGTH, (whole.len() as u64).into());
        }
        _ => {}
    }
    let declared = declared.filter(|_| has_body);
    let mut answer = Response::new(SentBody::new(Arc::clone(exchange), declared));
    (*answer.status_mut(), *answer.headers_mut()) = (status, headers);
    // If nobody takes it, the body tells of that when it is dropped.
    waits.send(answer).map_err(|_| Failure::new(abi::ERROR_RESET, "the client does not wait for it any more"))
}

/// That a way to bring a body is known.
pub(crate) fn check_mode(mode: u32) -> Result<(), Failure> {
    match mode {
        abi::BODY_NONE | abi::BODY_WHOLE | abi::BODY_STREAM => Ok(()),
        mode => Err(Failure::argument(format!("the body_mode is {mode}, expected one of GODWIT_BODY_..."))),
    }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_exchange_respond(
    exchange: u64,
    response: *const abi::ResponseOptions,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let exchange = handles::get::<Exchange>(exchange)?;
        // SAFETY: the caller's promise.
        let options = unsafe { given::take(response) }?;
        given::flags(options.flags, 0, "a response")?;
        check_mode(options.body_mode)?;
        // SAFETY: the caller's promise.
        let headers = unsafe { given::headers(options.headers, options.header_count) }?;
        respond(&exchange, &options, headers)
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_exchange_inform(
    exchange: u64,
    status: u32,
    headers: *const abi::Header,
    header_count: u64,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let exchange = handles::get::<Exchange>(exchange)?;
        // SAFETY: the caller's promise.
        let headers = unsafe { given::headers(headers, header_count) }?;
        let number = u16::try_from(status).ok().filter(|status| (102..=199).contains(status));
        let number = number.and_then(|status| StatusCode::from_u16(status).ok());
        let number = number
            .ok_or_else(|| Failure::argument(format!("the status is {status}, expected 102 to 199")))?;
        let Side::Server { respond, inform, .. } = &exchange.side else { return Err(not_of_client()) };
        if respond.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            let text =
                "the exchange was answered before; an informational response comes before the final one";
            return Err(Failure::new(abi::ERROR_STATE, text));
        }
        let unsupported = || {
            let text = "this connection carries no informational responses; leave it out";
            Failure::new(abi::ERROR_UNSUPPORTED, text)
        };
        let inform = inform.as_ref().ok_or_else(unsupported)?;
        let mut response = Response::new(());
        (*response.status_mut(), *response.headers_mut()) = (number, headers);
        inform.send(response).map_err(|error| Failure::new(abi::ERROR_RESET, error.to_string()))
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_exchange_send(
    exchange: u64,
    data: *const c_void,
    length: u64,
    flags: u32,
    tag: u64,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let exchange = handles::get::<Exchange>(exchange)?;
        given::flags(flags, abi::SEND_END | abi::SEND_REPORT, "godwit_exchange_send")?;
        // SAFETY: the caller's promise.
        let bytes = unsafe { given::bytes(data, length, "data") }?;
        exchange.outbox.send(bytes, flags, tag)
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_exchange_send_trailers(
    exchange: u64,
    headers: *const abi::Header,
    header_count: u64,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let exchange = handles::get::<Exchange>(exchange)?;
        // SAFETY: the caller's promise.
        exchange.outbox.send_trailers(unsafe { given::headers(headers, header_count) }?)
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_exchange_cancel(exchange: u64, error: *mut abi::Error) -> i32 {
    let act = || {
        handles::get::<Exchange>(exchange)?.cancel();
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_exchange_statistics(
    exchange: u64,
    place: *mut abi::Statistics,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let exchange = handles::get::<Exchange>(exchange)?;
        let tcp =
            || Failure::new(abi::ERROR_UNSUPPORTED, "only exchanges of clients over HTTP/3 have statistics");
        let Side::Client { connection } = &exchange.side else { return Err(tcp()) };
        let connection = connection.get();
        let connection =
            connection.ok_or_else(|| Failure::new(abi::ERROR_STATE, "there is no response yet"))?;
        let statistics = statistics::of(&connection.as_ref().ok_or_else(tcp)?.stats());
        // SAFETY: the caller's promise.
        unsafe { given::give(place, &statistics) }
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}
