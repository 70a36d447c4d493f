//! Explicit congestion notification: what it gains on a path that carries it, and what it costs on one that
//! does not.

use crate::{complete, complete_all, delayed, judge_all, ms, seeds, verify};
use godwit_link::{DuplexConfig, EcnHandling, LinkConfig, Loss, Probability, QueueLimit, Rate, Translation};
use godwit_sim::{Exchange, Report, Scenario};
use godwit_transport::{CongestionAlgorithm, EcnFailure, EcnState};
use std::time::Duration;

const RTT: Duration = Duration::from_millis(100);

fn with_ecn(ecn: EcnHandling) -> LinkConfig {
    let mut link = LinkConfig::limited(Rate::megabits(50), RTT / 2, 1 << 20);
    link.ecn = ecn;
    link
}

fn up_and_down(up: EcnHandling, down: EcnHandling) -> DuplexConfig {
    let mut link = DuplexConfig::default();
    link.up = with_ecn(up);
    link.down = with_ecn(down);
    link
}

fn run(link: DuplexConfig, plan: Vec<Exchange>, ecn: bool) -> Report {
    complete(&Scenario::new(4).link(link).plan(plan, 1).transport(|transport| transport.ecn = ecn))
}

/// How both ends end up when both directions treat marks like this.
fn states(handling: EcnHandling) -> (EcnState, EcnState) {
    let plan = vec![Exchange::two_way(2_000_000, 2_000_000)];
    let report = run(up_and_down(handling, handling), plan, true);
    (report.client_stats.ecn, report.server_stats.ecn)
}

#[test]
fn both_ends_mark_where_marks_pass() {
    let plan = vec![Exchange::two_way(2_000_000, 2_000_000)];
    let report = run(up_and_down(EcnHandling::Pass, EcnHandling::Pass), plan.clone(), true);
    for (ours, theirs) in
        [(report.client_stats, report.server_stats), (report.server_stats, report.client_stats)]
    {
        assert_eq!(ours.ecn, EcnState::Capable);
        assert!(ours.ecn_sent.sent > 1_000, "{:?}", ours.ecn_sent);
        assert!(ours.ecn_sent.acked > 1_000 && ours.ecn_sent.acked <= ours.ecn_sent.sent);
        assert_eq!(ours.ecn_sent.ce, 0);
        assert!(theirs.ecn_received.ect0 >= ours.ecn_sent.acked);
        assert_eq!((theirs.ecn_received.ect1, theirs.ecn_received.ce), (0, 0));
    }
    let without = run(up_and_down(EcnHandling::Pass, EcnHandling::Pass), plan, false);
    assert_eq!((without.client_stats.ecn, without.client_stats.ecn_sent.sent), (EcnState::Off, 0));
    assert_eq!(without.server_stats.ecn_received.ect0, 0);
}

#[test]
fn paths_that_do_not_carry_marks_are_found_out() {
    let failed = |why| (EcnState::Failed(why), EcnState::Failed(why));
    assert_eq!(states(EcnHandling::Bleach), failed(EcnFailure::Bleached));
    assert_eq!(states(EcnHandling::Remark), failed(EcnFailure::Remarked));
    assert_eq!(states(EcnHandling::Drop), failed(EcnFailure::BlackHole));
}

#[test]
fn a_mark_on_everything_is_ignored_before_long() {
    let plan = vec![Exchange::download(4_000_000)];
    let report = run(up_and_down(EcnHandling::Pass, EcnHandling::Congest), plan.clone(), true);
    assert_eq!(report.server_stats.ecn, EcnState::Failed(EcnFailure::AlwaysMarked));
    assert_eq!(report.client_stats.ecn, EcnState::Capable, "the way up is in order");
    let without = run(up_and_down(EcnHandling::Pass, EcnHandling::Congest), plan, false);
    assert!(report.duration < without.duration * 3, "{:?} for {:?}", report.duration, without.duration);
}

#[test]
fn bleached_and_black_holed_marks_cost_at_most_a_round_trip() {
    use EcnHandling::{Bleach, Drop, Pass, Remark};
    let plans = [
        vec![],
        vec![Exchange::request(300, 1_000)],
        vec![Exchange::request(300, 165_000)],
        vec![Exchange::upload(165_000)],
        vec![Exchange::two_way(1_000_000, 3_000_000)],
        vec![Exchange::request(100, 100); 20],
    ];
    for (up, down) in
        [(Bleach, Bleach), (Remark, Remark), (Drop, Drop), (Drop, Pass), (Pass, Drop), (Bleach, Drop)]
    {
        for plan in &plans {
            let with = run(up_and_down(up, down), plan.clone(), true);
            let without = run(up_and_down(up, down), plan.clone(), false);
            assert_eq!(with.connected_after, without.connected_after, "{up:?} {down:?} {plan:?}");
            let (took, allowed) = (with.duration, without.duration + RTT);
            assert!(took <= allowed, "{up:?} {down:?} {plan:?}: {took:?} where {allowed:?} is allowed");
            assert_eq!(with.client_stats.ptos + with.server_stats.ptos, 0, "{up:?} {down:?} {plan:?}");
        }
    }
}

#[test]
fn the_same_holds_whatever_else_is_lost() {
    // Chances fall otherwise when other packets are sent: only the sum over many runs can be compared.
    let total = |ecn: bool, handling: EcnHandling| -> Duration {
        let run = |seed| {
            let loss = Loss::Independent(Probability::percent(2.0));
            let mut link = with_ecn(handling);
            link.loss = loss;
            let plan = vec![Exchange::request(300, 60_000)];
            let scenario = Scenario::new(seed).both_ways(link).plan(plan, 1);
            complete(&scenario.transport(|transport| transport.ecn = ecn)).duration
        };
        seeds(60, 1_000).map(run).sum()
    };
    let without = total(false, EcnHandling::Pass);
    for handling in [EcnHandling::Pass, EcnHandling::Bleach, EcnHandling::Drop] {
        let (with, count) = (total(true, handling), seeds(60, 1_000).count() as u32);
        assert!(with <= without + RTT * count / 2, "{handling:?}: {with:?} for {without:?}");
    }
}

#[test]
fn a_black_hole_in_mid_transfer_costs_one_timeout() {
    let transfer = |ecn: bool| {
        let plan = vec![Exchange::download(8_000_000)];
        let scenario = Scenario::new(3).both_ways(with_ecn(EcnHandling::Pass)).plan(plan, 1);
        let scenario = scenario.transport(|transport| transport.ecn = ecn);
        let mut simulation = scenario.build();
        simulation.network.run_for(ms(900));
        simulation.network.fabric().duplex(simulation.wire).unwrap().down.set_ecn(EcnHandling::Drop);
        let report = simulation.finish();
        verify(&scenario, &report).unwrap();
        report
    };
    let (with, without) = (transfer(true), transfer(false));
    assert!(with.down.ecn_drops > 10, "{:?}", with.down);
    assert_eq!(with.server_stats.ecn, EcnState::Failed(EcnFailure::BlackHole));
    assert!(with.server_stats.ptos <= 2, "{:?}", with.server_stats);
    let cost = with.duration.saturating_sub(without.duration);
    assert!(cost < RTT * 15, "{:?} for {:?}", with.duration, without.duration);
}

#[test]
fn marks_instead_of_losses_when_the_queue_fills() {
    let transfer = |ecn: bool| {
        let limit = 500_000;
        let mut link = LinkConfig::limited(Rate::megabits(20), ms(20), limit);
        link.mark_above = QueueLimit::Bytes(60_000);
        let scenario = Scenario::new(8).both_ways(link).plan(vec![Exchange::download(20_000_000)], 1);
        // One that fills queues.
        let scenario =
            scenario.transport(|transport| transport.congestion = CongestionAlgorithm::Cubic.into());
        complete(&scenario.transport(|transport| transport.ecn = ecn))
    };
    let (with, without) = (transfer(true), transfer(false));
    assert!(with.server_stats.ecn_sent.ce > 0);
    assert_eq!(with.server_stats.ecn, EcnState::Capable);
    assert_eq!(with.client_stats.ecn_received.ce, with.server_stats.ecn_sent.ce);
    assert_eq!(with.down.queue_drops, 0, "the sender heeds the marks");
    assert!(without.down.queue_drops > 0, "without them it fills the queue");
    assert!(with.goodput() > without.goodput() * 0.9, "{} for {}", with.goodput(), without.goodput());
}

#[test]
fn counts_fit_under_loss_reordering_and_duplicates() {
    complete_all(
        seeds(40, 1_000),
        |seed| {
            let mut link = LinkConfig::limited(Rate::megabits(10), ms(20), 200_000);
            link.loss = Loss::Independent(Probability::percent(5.0));
            link.jitter = godwit_link::Jitter::Unordered(ms(15));
            link.duplicate =
                Some(godwit_link::Duplicate { probability: Probability::percent(5.0), after: ms(3) });
            link.mark_above = QueueLimit::Packets(8);
            Scenario::new(seed).both_ways(link).plan(vec![Exchange::two_way(300_000, 300_000)], 1)
        },
        |report| {
            for stats in [report.client_stats, report.server_stats] {
                // Probes may be lost, but honest counts are never found wrong.
                let wrong = [EcnFailure::Bleached, EcnFailure::Remarked].map(EcnState::Failed);
                assert!(!wrong.contains(&stats.ecn), "{:?}", stats.ecn);
            }
        },
    );
}

#[test]
fn another_path_is_tried_anew() {
    judge_all(0..5, |seed| {
        for change in [Translation::Port, Translation::Address] {
            let plan = vec![Exchange::two_way(4_000_000, 4_000_000)];
            let scenario = Scenario::new(seed).both_ways(delayed(20)).plan(plan, 1);
            let scenario = scenario.transport(|transport| transport.initial_mtu = 1200);
            let mut simulation = scenario.build();
            simulation.network.run_for(ms(150));
            let before = simulation.stats().1;
            // The server's way to the new address erases marks; the client does not know that it moved.
            simulation.network.fabric().duplex(simulation.wire).unwrap().down.set_ecn(EcnHandling::Bleach);
            simulation.network.fabric().rebind(simulation.wire, change);
            let report = simulation.finish();
            verify(&scenario, &report)?;
            if before.ecn != EcnState::Capable {
                return Err(format!("{:?} before the move", before.ecn));
            }
            if report.server_stats.ecn != EcnState::Failed(EcnFailure::Bleached) {
                return Err(format!("{change:?}: {:?} after the move", report.server_stats.ecn));
            }
        }
        Ok(())
    });
}

/// What each reduction of the server's window left of it, in a download that either meets marks or a full queue.
fn reductions(cc: CongestionAlgorithm, marks: bool) -> Vec<f64> {
    let mut link = LinkConfig::limited(Rate::megabits(20), ms(20), 150_000);
    if marks {
        link.mark_above = QueueLimit::Bytes(60_000);
    }
    let scenario = Scenario::new(8).both_ways(link).plan(vec![Exchange::download(20_000_000)], 1);
    let scenario = scenario.transport(|transport| transport.congestion = cc.into());
    let mut simulation = scenario.build();
    let (mut before, mut left) = (simulation.stats().1, Vec::new());
    for _ in 0..40_000 {
        simulation.network.run_for(Duration::from_micros(200));
        let now = simulation.stats().1;
        if now.congestion_events > before.congestion_events {
            left.push(now.window as f64 / before.window as f64);
        }
        before = now;
    }
    verify(&scenario, &simulation.finish()).unwrap();
    left
}

#[test]
fn a_mark_costs_less_of_the_window_than_a_loss() {
    for (cc, mark, loss) in
        [(CongestionAlgorithm::Cubic, 0.85, 0.7), (CongestionAlgorithm::NewReno, 0.8, 0.5)]
    {
        for (marks, beta) in [(true, mark), (false, loss)] {
            let left = reductions(cc, marks);
            assert!(left.len() >= 3, "{cc} {beta}: {left:?}");
            // Growth in the same fifth of a millisecond is all that blurs it.
            assert!(left.iter().all(|left| (left - beta).abs() < 0.02), "{cc} {beta}: {left:?}");
        }
    }
}
