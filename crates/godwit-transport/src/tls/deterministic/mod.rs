//! TLS without chance, for simulations and tests.
