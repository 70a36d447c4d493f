//! No coding is known, without the feature `decompression`.

use super::step::Step;

/// Undoes one coding: there is none.
#[derive(Debug)]
pub(super) enum Decoder {}

impl Decoder {
    pub(super) fn named(_: &str) -> Option<Decoder> {
        None
    }

    pub(super) fn step(&mut self, _: &[u8], _: &mut [u8]) -> Result<Step, String> {
        match *self {}
    }

    pub(super) fn begins_again(&mut self, _: u8) -> bool {
        match *self {}
    }
}
