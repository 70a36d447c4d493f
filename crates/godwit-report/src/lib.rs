//! Access logs, latency sketches, and reports of HTTP/2 against HTTP/3.
