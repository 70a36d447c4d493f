//! Tests of the endpoint with handshakes made by hand.
