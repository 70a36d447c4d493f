//! Making figures the baseline, which takes a reason: what is slower now for no reason is to be mended.

use super::{Figures, baseline, baseline_file, figures_of};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Writes the baseline and prints a message for its commit.
pub(super) fn renew(figures: &BTreeMap<&str, Figures>, reason: &str) -> Result<(), String> {
    let before = baseline()?;
    let entries: Map<String, Value> =
        figures.iter().map(|(path, figures)| ((*path).to_owned(), entry(*figures))).collect();
    let text = serde_json::to_string_pretty(&entries).map_err(|error| error.to_string())?;
    std::fs::write(baseline_file(), text + "\n")
        .map_err(|error| format!("cannot write the baseline: {error}"))?;
    println!("{}", message(&before, figures, reason));
    Ok(())
}

fn entry(figures: Figures) -> Value {
    json!({
        "instructions": figures.instructions.round(),
        "allocations": (figures.allocations * 100.0).round() / 100.0,
    })
}

/// The message: why, and what each path cost before and costs now.
fn message(before: &Value, figures: &BTreeMap<&str, Figures>, reason: &str) -> String {
    let mut message =
        format!("Renew the baseline of the gate: {reason}\n\nInstructions and allocations, each a call:\n\n");
    for (path, now) in figures {
        let line = match figures_of(before, path) {
            None => format!("{path}: new, {:.0} and {:.2}", now.instructions, now.allocations),
            Some(before) => format!(
                "{path}: {:.0} \u{2192} {:.0} ({:+.1} %), {:.2} \u{2192} {:.2}",
                before.instructions,
                now.instructions,
                (now.instructions / before.instructions - 1.0) * 100.0,
                before.allocations,
                now.allocations
            ),
        };
        message += &format!("- {line}\n");
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_says_why_and_what_has_changed() {
        let before = json!({"handshake": {"instructions": 1000.0, "allocations": 356.0}});
        let figures = BTreeMap::from([
            ("handshake", Figures { instructions: 900.4, allocations: 300.25 }),
            ("request", Figures { instructions: 50.0, allocations: 2.0 }),
        ]);
        assert_eq!(
            message(&before, &figures, "fewer copies"),
            "Renew the baseline of the gate: fewer copies\n\nInstructions and allocations, each a call:\n\n\
             - handshake: 1000 \u{2192} 900 (-10.0 %), 356.00 \u{2192} 300.25\n- request: new, 50 and 2.00\n"
        );
    }
}
