//! Configuration files as a whole.
