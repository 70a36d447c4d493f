//! Stacks and how much time was spent in each, from what `perf script` and callgrind say.

use std::collections::BTreeMap;

/// By functions from the outermost to the innermost: how many samples, or instructions.
pub(super) type Stacks = BTreeMap<Vec<String>, u64>;

/// From `perf script -F ip,sym`: a function a line from the innermost outwards, and an empty line behind each sample.
pub(super) fn of_perf(text: &str) -> Stacks {
    let mut stacks = Stacks::new();
    for sample in text.split("\n\n") {
        let frame = |line: &str| Some(tidy(line.trim().split_once(' ')?.1));
        let mut stack: Vec<String> = sample.lines().filter_map(frame).collect();
        stack.reverse();
        if !stack.is_empty() {
            *stacks.entry(stack).or_default() += 1;
        }
    }
    stacks
}

/// From a profile of callgrind whose names are functions with their callers, separated by apostrophes.
pub(super) fn of_callgrind(text: &str) -> Stacks {
    let mut stacks = Stacks::new();
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let (mut at, mut inclusive) = ("", false);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            // Names are given once in full, as "(7) name", and later as "(7)".
            let (id, name) = name.split_once(' ').unwrap_or((name, ""));
            if !name.is_empty() {
                names.insert(id, name);
            }
            at = names.get(id).copied().unwrap_or_default();
        } else if let Some((id, name)) = line.strip_prefix("cfn=").and_then(|name| name.split_once(' ')) {
            names.insert(id, name);
        } else if line.starts_with("calls=") {
            // The next line holds the callee's cost, which is counted where the callee stands.
            inclusive = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok()).unwrap_or(0);
            if !inclusive && cost > 0 && !at.is_empty() {
                let stack = at.split('\'').rev().map(tidy).collect();
                *stacks.entry(stack).or_default() += cost;
            }
            inclusive = false;
        }
    }
    stacks
}

/// A function's name without what the compiler has added to it: a hash, or the number of a recursion.
fn tidy(name: &str) -> String {
    let name = name.trim();
    let hash = name
        .rsplit_once("::h")
        .filter(|(_, hash)| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
    hash.map_or(name, |(name, _)| name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(words: &str) -> Vec<String> {
        words.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn samples_of_perf_are_turned_round_and_counted() {
        let text = "\t    55d0 inner::h0123456789abcdef\n\t    55d1 outer\n\n\t  66 outer\n\n\
                    \t    55d0 inner\n\t    55d1 outer\n\n";
        assert_eq!(of_perf(text), BTreeMap::from([(stack("outer inner"), 2), (stack("outer"), 1)]));
        assert_eq!(of_perf("\n\n"), Stacks::new());
    }

    #[test]
    fn callers_are_in_the_names_of_callgrind() {
        let text = "fn=(1) inner'outer\n0 10\ncfn=(2) leaf'inner'outer\ncalls=1 0\n0 100\n+1 5\nfn=(2)\n0 100\n\
                    fn=(3) outer\n0 1\n";
        let expected = [(stack("outer"), 1), (stack("outer inner"), 15), (stack("outer inner leaf"), 100)];
        assert_eq!(of_callgrind(text), BTreeMap::from(expected));
    }
}
