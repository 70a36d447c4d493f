//! The keys of TLS sessions on their way to the process that takes over.

/// What the successor finds the keys of session tickets by.
pub(super) const SESSIONS: &str = "TLS sessions";
/// More than they take, and less than a pipe holds.
const MAX_SESSIONS: u64 = 4096;

/// The keys lie in a pipe, which nobody else can reach.
pub(super) fn write_sessions(sessions: &[u8]) -> std::io::Result<std::io::PipeReader> {
    let (reader, mut writer) = std::io::pipe()?;
    std::io::Write::write_all(&mut writer, sessions)?;
    Ok(reader)
}

pub(super) fn read_sessions(pipe: std::os::fd::OwnedFd) -> Vec<u8> {
    use std::io::Read;
    let mut sessions = Vec::new();
    match std::io::PipeReader::from(pipe).take(MAX_SESSIONS).read_to_end(&mut sessions) {
        Ok(_) => sessions,
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_pass_through_a_pipe() {
        let pipe = write_sessions(&[7; 200]).unwrap();
        assert_eq!(read_sessions(pipe.into()), [7; 200]);
    }
}
