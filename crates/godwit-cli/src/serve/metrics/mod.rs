//! Figures for Prometheus, and the health pages.
