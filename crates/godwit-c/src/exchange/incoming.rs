//! What is received of an exchange.

use super::Exchange;
use crate::abi;
use crate::intake::Intake;
use bytes::Bytes;
use http_body::Body;
use std::future::poll_fn;
use std::pin::pin;

/// Tells of a body piece by piece, as the application makes room, and of its end.
///
/// # Errors
/// Those of the body.
pub(crate) async fn receive<B>(exchange: &Exchange, intake: &Intake, body: B) -> Result<(), B::Error>
where
    B: Body<Data = Bytes>,
{
    let mut body = pin!(body);
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        match frame?.into_data() {
            Ok(bytes) if bytes.is_empty() => {}
            Ok(mut bytes) => {
                let permit = intake.admit(&mut bytes).await;
                exchange.tell(exchange.event(abi::EVENT_BODY).with_bytes(bytes, permit));
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    exchange.tell(exchange.event(abi::EVENT_TRAILERS).with_headers(trailers));
                }
            }
        }
    }
    Ok(())
}
