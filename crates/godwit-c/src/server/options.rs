//! What a server is to be like.

use crate::abi;
use crate::failure::Failure;
use crate::given;
use godwit_front::settings::Settings;
use godwit_front::{Builder, Server};

/// Addresses to listen at, at most.
const MOST_ADDRESSES: u64 = 64;

/// What the options say, without whom to ask.
///
/// # Safety
/// The texts that they point to are there.
pub(super) unsafe fn builder(options: &abi::ServerOptions) -> Result<Builder, Failure> {
    given::flags(options.flags, 0, "a server")?;
    if !(1..=MOST_ADDRESSES).contains(&options.address_count) {
        let text =
            format!("{} addresses to listen at, expected 1 to {MOST_ADDRESSES}", options.address_count);
        return Err(Failure::argument(text));
    }
    // SAFETY: the caller's promise.
    let (addresses, chain, key) = unsafe {
        (
            given::texts(options.addresses, options.address_count, "addresses")?,
            given::file(options.certificate_file, "certificate_file")?,
            given::file(options.key_file, "key_file")?,
        )
    };
    let mut builder = Server::builder();
    if options.max_connections != 0 || options.max_body != 0 {
        let mut settings = Settings::default();
        settings.access_log.target = godwit_front::settings::LogTarget::None;
        if options.max_connections != 0 {
            settings.limits.connections = usize::try_from(options.max_connections).unwrap_or(usize::MAX);
        }
        if options.max_body != 0 {
            settings.limits.body_size = Some(options.max_body);
        }
        builder = builder.settings(settings);
    }
    for address in addresses {
        builder = builder.listen(crate::quic::socket_address(&address)?);
    }
    match (chain, key) {
        (Some(chain), Some(key)) => Ok(builder.certificate(chain, key)),
        (None, None) => Ok(builder),
        _ => Err(Failure::argument("certificate_file and key_file belong together; give both, or neither")),
    }
}
