//! The program from outside: one test program for all commands, because each has to be linked with everything.

#[path = "../../../godwit-datapath/tests/alone/mod.rs"]
mod alone;
mod config_mistakes;
mod dashboard;
mod demo;
mod docs;
mod doctor;
#[cfg(target_os = "linux")]
mod emulate;
mod get;
mod get_auto;
mod get_errors;
mod get_hostile;
mod get_proxy;
mod get_rescue;
mod get_sessions;
mod get_support;
mod perf;
mod perf_http;
mod report;
mod serve;
mod serve_config;
mod serve_cores;
mod serve_drain;
mod serve_errors;
mod serve_faults;
mod serve_h3;
mod serve_hand_over;
mod serve_reasons;
mod serve_support;
mod serve_systemd;
mod serve_telemetry;
mod wan;
