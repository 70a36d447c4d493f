//! One tower service for all three protocols.
