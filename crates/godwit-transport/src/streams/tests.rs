#![allow(clippy::arithmetic_side_effects, reason = "tests")]

mod fairness;
mod pipe;
mod rules;
