//! Services and clients of tonic on Godwit.

mod broken;
mod cases;
mod deadlines;
mod plenty;
mod programs;
mod support;
mod whole;
