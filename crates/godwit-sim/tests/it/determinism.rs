//! The same seed gives the same packets: twice in one process, and in two processes.

use crate::ms;
use godwit_link::{Corrupt, Damage, Duplicate, Jitter, LinkConfig, Loss, Probability, Rate, Reorder};
use godwit_sim::{Exchange, Scenario};
use std::process::Command;

const SWITCH: &str = "GODWIT_PRINT_TRACE";

fn run(seed: u64) -> u64 {
    let mut link = LinkConfig::limited(Rate::megabits(20), ms(10), 60_000);
    link.loss = Loss::Independent(Probability::percent(3.0));
    link.jitter = Jitter::Unordered(ms(3));
    link.reorder = Some(Reorder { probability: Probability::percent(5.0), extra: ms(5) });
    link.duplicate = Some(Duplicate { probability: Probability::percent(2.0), after: ms(1) });
    link.corrupt = Some(Corrupt { probability: Probability::percent(1.0), damage: Damage::Bits(3) });
    let plan = vec![Exchange::two_way(100_000, 100_000), Exchange::request(10, 50_000)];
    crate::complete(&Scenario::new(seed).both_ways(link).plan(plan, 2)).trace_hash
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// The child of the test below: prints its hashes.
#[test]
fn print_hashes() {
    if std::env::var_os(SWITCH).is_some() {
        println!("trace hashes {:016x} {:016x}", run(11), run(12));
    }
}

fn hashes_of_a_child() -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "determinism::print_hashes", "--nocapture", "--test-threads=1"])
        .env(SWITCH, "1")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let at = text.find("trace hashes ").unwrap_or_else(|| panic!("no hashes in {text}"));
    text[at..].lines().next().unwrap().to_owned()
}

#[test]
fn another_process_sends_the_same_packets() {
    let ours = format!("trace hashes {:016x} {:016x}", run(11), run(12));
    assert_eq!(hashes_of_a_child(), ours);
    assert_eq!(hashes_of_a_child(), ours);
}
