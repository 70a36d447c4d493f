//! Certificates from an ACME server (RFC 8555).

mod challenges;

pub(crate) use challenges::Challenges;
#[cfg(test)]
pub(crate) use challenges::test_answer;
