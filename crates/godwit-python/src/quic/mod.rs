//! QUIC connections: `connecting` makes them, `listener` takes them, and `connection` has `stream`s. `settings` is what both
//! ends are made with, `certificate` one for trying things out.

mod certificate;
mod connecting;
mod connection;
mod listener;
mod settings;
mod stream;

use pyo3::prelude::*;

/// Adds the classes and functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<connection::QuicConnection>()?;
    module.add_class::<listener::QuicListener>()?;
    module.add_class::<stream::SendHalf>()?;
    module.add_class::<stream::ReceiveHalf>()?;
    module.add_function(wrap_pyfunction!(connecting::connect, module)?)?;
    module.add_function(wrap_pyfunction!(listener::listen, module)?)?;
    module.add_function(wrap_pyfunction!(certificate::self_signed, module)?)
}
