#![allow(clippy::arithmetic_side_effects, reason = "tests")]

mod budget;
mod fairness;
mod pipe;
mod rules;
