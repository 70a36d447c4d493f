//! The functions of the table. Each finds out what its handles stand for and whether the rest will do, and leaves the work to
//! what the handle stands for.
//!
//! A handle that stands for nothing, because it was closed or never was one, is refused, where there is a way to say so, and
//! has no effect elsewhere.

mod connection;
mod datagram;
mod execution;
mod handles;
mod library;
mod objects;
mod pool;
mod stream;

pub use library::{close, open_version};

use crate::abi::ApiTable;
use crate::found::{Found, with_connection};

/// The table.
pub(crate) static TABLE: ApiTable = ApiTable {
    set_context: handles::set_context,
    get_context: handles::get_context,
    set_callback_handler: handles::set_callback_handler,
    set_param: handles::set_param,
    get_param: handles::get_param,
    registration_open: objects::registration_open,
    registration_close: objects::registration_close,
    registration_shutdown: objects::registration_shutdown,
    configuration_open: objects::configuration_open,
    configuration_close: objects::configuration_close,
    configuration_load_credential: objects::configuration_load_credential,
    listener_open: objects::listener_open,
    listener_close: objects::listener_close,
    listener_start: objects::listener_start,
    listener_stop: objects::listener_stop,
    connection_open: connection::open,
    connection_close: connection::close,
    connection_shutdown: connection::shutdown,
    connection_start: connection::start,
    connection_set_configuration: connection::set_configuration,
    connection_send_resumption_ticket: connection::send_resumption_ticket,
    stream_open: stream::open,
    stream_close: stream::close,
    stream_start: stream::start,
    stream_shutdown: stream::shutdown,
    stream_send: stream::send,
    stream_receive_complete: stream::receive_complete,
    stream_receive_set_enabled: stream::receive_set_enabled,
    datagram_send: datagram::send,
    connection_resumption_ticket_validation_complete: connection::resumption_ticket_validation_complete,
    connection_certificate_validation_complete: connection::certificate_validation_complete,
    connection_open_in_partition: connection::open_in_partition,
    stream_provide_receive_buffers: stream::provide_receive_buffers,
    connection_pool_create: pool::create,
    execution_create: execution::create,
    execution_delete: execution::delete,
    execution_poll: execution::poll,
    registration_close2: objects::registration_close2,
    connection_export_keying_material: connection::export_keying_material,
};

/// What an application has at `start`. `None` if that is null and there should be something.
///
/// # Safety
/// It is null, or there are `count` values there, which stay as they are as long as the slice is used.
unsafe fn slice<'a, T>(start: *const T, count: usize) -> Option<&'a [T]> {
    match (count, start.is_null()) {
        (0, _) => Some(&[]),
        (_, true) => None,
        // SAFETY: the caller promises it.
        (_, false) => Some(unsafe { std::slice::from_raw_parts(start, count) }),
    }
}
