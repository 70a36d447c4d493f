//! Real peers: programs of other QUIC stacks, installed from the package registries.

/// Installs them.
pub(crate) fn install() -> Result<(), String> {
    Ok(())
}

/// Installs them and runs every test against them.
pub(crate) fn test() -> Result<(), String> {
    Ok(())
}
