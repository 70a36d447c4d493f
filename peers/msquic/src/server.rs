//! A server that sends back, on every stream of the peer, what it receives.

use crate::options::Listen;
use crate::sending;
use anyhow::{Context, Result};
use msquic::{
    Addr, BufferRef, CertificateFile, Configuration, Connection, ConnectionEvent, ConnectionRef, Credential,
    CredentialConfig, Listener, ListenerEvent, Registration, SendFlags, ServerResumptionLevel, Settings,
    Status, Stream, StreamEvent, StreamRef, StreamShutdownFlags,
};
use std::net::SocketAddr;
use std::sync::Arc;

/// Serves until the standard input ends.
pub fn serve(options: &Listen) -> Result<()> {
    let registration = Registration::new(&msquic::RegistrationConfig::default())?;
    let listener = start(&registration, options)?;
    println!("listening {}", address_of(&listener)?);
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    listener.stop();
    drop(listener);
    registration.shutdown();
    Ok(())
}

pub fn start(registration: &Registration, options: &Listen) -> Result<Listener> {
    start_with(registration, options, on_connection)
}

/// A listener whose connections tell `handler` what happens to them, but for their end, with which they are closed.
pub fn start_with(
    registration: &Registration,
    options: &Listen,
    handler: impl Fn(ConnectionRef, ConnectionEvent) -> Result<(), Status> + Clone + Send + Sync + 'static,
) -> Result<Listener> {
    let alpn = [BufferRef::from(options.alpn.as_str())];
    let settings = Settings::new()
        .set_IdleTimeoutMs(30_000)
        .set_ServerResumptionLevel(ServerResumptionLevel::ResumeAndZerortt)
        .set_PeerBidiStreamCount(1000)
        .set_PeerUnidiStreamCount(100);
    let configuration = Configuration::open(registration, &alpn, Some(&settings))?;
    let file = CertificateFile::new(options.key.clone(), options.certificate.clone());
    let credential = CredentialConfig::new().set_credential(Credential::CertificateFile(file));
    configuration.load_credential(&credential)?;
    let configuration = Arc::new(configuration);
    let listener = Listener::open(registration, move |_, event| {
        if let ListenerEvent::NewConnection { connection, .. } = event {
            let handler = handler.clone();
            connection.set_callback_handler(move |connection: ConnectionRef, event: ConnectionEvent| {
                if let ConnectionEvent::ShutdownComplete { .. } = event {
                    // SAFETY: nobody else owns the handle of a connection that has come.
                    drop(unsafe { Connection::from_raw(connection.as_raw()) });
                    return Ok(());
                }
                handler(connection, event)
            });
            connection.set_configuration(&configuration)?;
        }
        Ok(())
    })?;
    listener.start(&alpn, Some(&Addr::from(options.address)))?;
    Ok(listener)
}

pub fn address_of(listener: &Listener) -> Result<SocketAddr> {
    listener.get_local_addr()?.as_socket().context("the listener's address is of no known family")
}

fn on_connection(_: ConnectionRef, event: ConnectionEvent) -> Result<(), Status> {
    if let ConnectionEvent::PeerStreamStarted { stream, .. } = event {
        stream.set_callback_handler(on_stream);
    }
    Ok(())
}

fn on_stream(stream: StreamRef, event: StreamEvent) -> Result<(), Status> {
    match event {
        StreamEvent::Receive { buffers, .. } => {
            let bytes: Vec<u8> = buffers.iter().flat_map(|buffer| buffer.as_bytes().to_vec()).collect();
            // A unidirectional stream has no way back.
            if !bytes.is_empty() && sending::send(&stream, bytes, SendFlags::NONE).is_err() {
                return Ok(());
            }
        }
        StreamEvent::SendComplete { client_context, .. } => sending::complete(client_context),
        StreamEvent::PeerSendShutdown => {
            let _ = stream.shutdown(StreamShutdownFlags::GRACEFUL, 0);
        }
        StreamEvent::PeerSendAborted { error_code } => {
            let _ = stream.shutdown(StreamShutdownFlags::ABORT, error_code);
        }
        StreamEvent::ShutdownComplete { .. } => {
            // SAFETY: nobody else owns the handle of a stream that has come.
            drop(unsafe { Stream::from_raw(stream.as_raw()) });
        }
        _ => {}
    }
    Ok(())
}
