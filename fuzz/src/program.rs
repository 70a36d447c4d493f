//! Inputs that are programs: steps with what they need, for targets that do one thing after another.
//!
//! ```text
//! step: what (1) | length (2) | so many bytes, or fewer at the end
//! ```

/// Steps of a program at most: what more there is, is left out.
pub const MOST_STEPS: usize = 48;

/// What is to be done, and with what.
pub type Step<'a> = (u8, &'a [u8]);

/// The steps of a program.
pub fn steps(mut bytes: &[u8]) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    while let [what, high, low, rest @ ..] = bytes {
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (with, behind) = rest.split_at(len);
        steps.push((*what, with));
        bytes = behind;
        if steps.len() == MOST_STEPS {
            break;
        }
    }
    steps
}

/// The program of these steps.
pub fn program(steps: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (what, with) in steps {
        bytes.push(*what);
        bytes.extend(u16::try_from(with.len()).expect("a short step").to_be_bytes());
        bytes.extend(with);
    }
    bytes
}
