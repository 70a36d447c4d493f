//! Requests from end to end.
