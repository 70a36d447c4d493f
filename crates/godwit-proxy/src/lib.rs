//! A reverse proxy as a tower service: pooled HTTP/1.1 and HTTP/2 upstreams, tunnels, health checks.
