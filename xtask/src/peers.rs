//! placeholder
pub(crate) fn install() -> Result<(), String> { Ok(()) }
