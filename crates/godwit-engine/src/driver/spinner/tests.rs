use super::*;

const MICROSECOND: Duration = Duration::from_micros(1);

/// A driver in virtual time: a look takes a microsecond.
struct Rig {
    spinner: Spinner,
    now: Time,
    /// How long it has looked, in all.
    looked: Duration,
    /// How long the thread has waited for a core, in all, and the part of the time that it has to.
    waited: Duration,
    contention: u32,
    samples: u32,
}

impl Rig {
    fn new(mode: Spin) -> Self {
        Rig {
            spinner: Spinner::new(mode),
            now: Time::from_nanos(1_000_000_000),
            looked: Duration::ZERO,
            waited: Duration::ZERO,
            contention: 0,
            samples: 0,
        }
    }

    /// For so long nothing comes and nothing goes. Returns how long it was looked.
    fn silence(&mut self, time: Duration) -> Duration {
        let (until, before) = (self.now + time, self.looked);
        while self.now < until && self.spinner.looks(self.now) {
            if self.spinner.wants_sample(self.now) {
                self.spinner.on_sample(self.now, self.waited);
                self.samples += 1;
            }
            self.now += MICROSECOND;
            self.looked += MICROSECOND;
            self.waited += MICROSECOND * self.contention / 100;
        }
        self.now = self.now.max(until);
        self.looked - before
    }

    /// A datagram comes after `gap`, and is answered. Returns whether it was awaited without sleeping.
    fn exchange(&mut self, gap: Duration) -> bool {
        self.silence(gap);
        let awake = self.spinner.is_looking();
        self.spinner.on_received(self.now);
        self.spinner.on_sent(self.now);
        awake
    }

    /// The share of exchanges after `gap`, in percent, that are awaited without sleeping.
    fn awake(&mut self, gap: Duration) -> u32 {
        (0..100).map(|_| u32::from(self.exchange(gap))).sum()
    }
}

fn micros(number: u64) -> Duration {
    Duration::from_micros(number)
}

#[test]
fn without_traffic_nothing_is_looked_for() {
    for mode in [Spin::Off, Spin::Auto, Spin::Always(Spin::LONGEST)] {
        assert_eq!(Rig::new(mode).silence(Duration::from_secs(10)), Duration::ZERO);
    }
}

#[test]
fn short_gaps_are_spun_through() {
    for gap in [0, 1, 20, 60, 90] {
        let mut rig = Rig::new(Spin::Auto);
        rig.awake(micros(gap));
        // Something that comes at once is not looked for, for there is no wait.
        assert!(gap == 0 || rig.awake(micros(gap)) == 100, "{gap}");
    }
}

/// With both ends asleep, a gap lasts longer by what it takes to be woken.
#[test]
fn gaps_that_are_long_only_because_of_sleep_become_short() {
    let mut rig = Rig::new(Spin::Auto);
    let mut exchange = || {
        rig.silence(micros(20));
        let awake = rig.spinner.is_looking();
        if !awake {
            rig.silence(micros(130));
        }
        rig.spinner.on_received(rig.now);
        u32::from(awake)
    };
    assert_eq!(exchange(), 0);
    (0..100).for_each(|_| assert!(exchange() <= 1));
    assert_eq!((0..100).map(|_| exchange()).sum::<u32>(), 100);
}

#[test]
fn long_gaps_are_slept_through() {
    for gap in [1000, 10_000] {
        let mut rig = Rig::new(Spin::Auto);
        assert_eq!(rig.awake(micros(gap)), 0);
        assert_eq!(rig.looked, Duration::ZERO);
    }
}

/// Gaps that look as if they could be spun through, and cannot, are found out.
#[test]
fn trying_in_vain_becomes_rare() {
    let mut rig = Rig::new(Spin::Auto);
    let begun = rig.now;
    for _ in 0..100_000 {
        rig.exchange(micros(150));
    }
    let passed = rig.now.saturating_since(begun);
    assert!(rig.looked < passed / 500, "looked for {:?} in {passed:?}", rig.looked);
}

#[test]
fn where_every_other_gap_is_long_it_sleeps() {
    let mut rig = Rig::new(Spin::Auto);
    rig.awake(micros(20));
    for _ in 0..1000 {
        rig.exchange(micros(20));
        rig.exchange(micros(1000));
    }
    let before = rig.looked;
    rig.exchange(micros(20));
    rig.exchange(micros(1000));
    assert_eq!(rig.looked, before);
}

#[test]
fn silence_after_a_burst_costs_the_limit_once() {
    let mut rig = Rig::new(Spin::Auto);
    rig.awake(micros(20));
    assert!(rig.silence(Duration::from_secs(1)) <= LIMIT);
    assert_eq!(rig.silence(Duration::from_secs(100)), Duration::ZERO);
    // Also where something is sent from time to time, such as to keep a connection alive.
    for _ in 0..10 {
        rig.spinner.on_sent(rig.now);
        rig.silence(Duration::from_millis(100));
    }
    assert_eq!((0..100).map(|_| rig.silence(Duration::from_secs(1))).sum::<Duration>(), Duration::ZERO);
}

#[test]
fn after_a_second_of_silence_it_costs_less_than_a_hundredth() {
    let mut rig = Rig::new(Spin::Auto);
    for _ in 0..100 {
        rig.awake(micros(20));
        let looked = rig.silence(Duration::from_secs(1));
        assert!(looked <= Duration::from_secs(1) / 100, "{looked:?}");
    }
}

#[test]
fn whoever_only_sends_sleeps() {
    let mut rig = Rig::new(Spin::Auto);
    rig.awake(micros(20));
    let before = rig.looked;
    for _ in 0..20_000 {
        rig.spinner.on_sent(rig.now);
        rig.silence(micros(50));
    }
    assert!(rig.looked - before <= FRUITLESS_LIMIT * 4, "{:?}", rig.looked - before);
}

#[test]
fn it_goes_on_soon_after_a_pause_of_the_traffic() {
    let mut rig = Rig::new(Spin::Auto);
    rig.awake(micros(20));
    rig.silence(Duration::from_secs(1));
    rig.exchange(micros(20));
    assert!(rig.awake(micros(20)) > 80);
}

#[test]
fn a_competitor_for_the_core_turns_it_off() {
    let mut rig = Rig::new(Spin::Auto);
    rig.awake(micros(50));
    rig.contention = 50;
    let exchanges = |rig: &mut Rig, time: Duration| {
        let (until, before) = (rig.now + time, rig.looked);
        while rig.now < until {
            rig.exchange(micros(50));
        }
        rig.looked - before
    };
    exchanges(&mut rig, Duration::from_secs(1));
    let looked = exchanges(&mut rig, Duration::from_secs(10));
    assert!(looked < Duration::from_secs(10) / 50, "{looked:?}");
    // It is looked now and then whether the competitor has gone.
    rig.contention = 0;
    exchanges(&mut rig, Duration::from_secs(2));
    let looked = exchanges(&mut rig, Duration::from_secs(1));
    assert!(looked > Duration::from_millis(950), "{looked:?}");
}

#[test]
fn samples_are_taken_every_ten_milliseconds_at_most() {
    let mut rig = Rig::new(Spin::Auto);
    rig.awake(micros(20));
    rig.samples = 0;
    let begun = rig.now;
    for _ in 0..500 {
        rig.awake(micros(20));
    }
    let passed = rig.now.saturating_since(begun);
    assert!((90..=100).contains(&rig.samples), "{} in {passed:?}", rig.samples);
}

#[test]
fn always_is_for_its_time_after_the_last_datagram() {
    let mut rig = Rig::new(Spin::Always(micros(300)));
    rig.spinner.on_sent(rig.now);
    assert_eq!(rig.silence(Duration::from_secs(1)), micros(300));
    assert!(!rig.spinner.is_looking());
    rig.spinner.on_received(rig.now);
    assert_eq!(rig.silence(Duration::from_secs(1)), micros(300));
    let mut rig = Rig::new(Spin::Always(Duration::from_secs(9)));
    rig.spinner.on_received(rig.now);
    assert_eq!(rig.silence(Duration::from_secs(9)), Spin::LONGEST);
}
