#![allow(clippy::arithmetic_side_effects, reason = "tests")]

mod budget;
mod common;
mod early;
mod fairness;
mod first;
mod limits;
mod losing;
mod memory;
mod pipe;
mod rules;
mod settings;
mod taken;
mod waiting;
