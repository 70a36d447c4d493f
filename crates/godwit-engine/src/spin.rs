//! Whether a driver looks for datagrams before it goes to sleep.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Whether a shard's driver looks for more datagrams when there is nothing to do, before it goes to sleep. To be woken takes some ten
/// microseconds; to look costs the core meanwhile. Other tasks of the runtime have their turns between any two looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Spin {
    /// It sleeps.
    #[default]
    Off,
    /// It looks, for 100 us at most, while most of the latest waits were ended by a datagram within that time, and while no other
    /// program wants the core (Linux; elsewhere that is not known). Without traffic it sleeps.
    Auto,
    /// It looks for this long after the last datagram that came or went, whatever that costs. More than [`Spin::LONGEST`] is as
    /// much as that.
    Always(Duration),
}

impl Spin {
    /// The longest time that a driver looks after the last datagram: a second.
    pub const LONGEST: Duration = Duration::from_secs(1);
    /// What `always` is where no time is given with it: a millisecond.
    pub const USUAL: Duration = Duration::from_millis(1);

    /// Whether it ever looks.
    pub const fn is_on(self) -> bool {
        match self {
            Spin::Off => false,
            Spin::Auto => true,
            Spin::Always(time) => !time.is_zero(),
        }
    }
}

impl fmt::Display for Spin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spin::Off => f.write_str("off"),
            Spin::Auto => f.write_str("auto"),
            Spin::Always(time) => write!(f, "always:{}us", time.as_micros()),
        }
    }
}

/// `off`, `auto`, `always`, or `always:` with a time in `us` or `ms`, from 1 us to [`Spin::LONGEST`].
impl FromStr for Spin {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Spin::Off),
            "auto" => Ok(Spin::Auto),
            "always" => Ok(Spin::Always(Spin::USUAL)),
            _ => text
                .strip_prefix("always:")
                .and_then(time)
                .filter(|time| !time.is_zero() && *time <= Spin::LONGEST)
                .map(Spin::Always)
                .ok_or("expected one of off, auto, always, or always with a time up to 1000ms, such as always:200us"),
        }
    }
}

fn time(text: &str) -> Option<Duration> {
    let number = |unit| text.strip_suffix(unit)?.parse::<u32>().ok().map(u64::from);
    number("us").map(Duration::from_micros).or_else(|| number("ms").map(Duration::from_millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_and_written_alike() {
        let modes = [
            ("off", Spin::Off),
            ("auto", Spin::Auto),
            ("always:200us", Spin::Always(Duration::from_micros(200))),
        ];
        for (text, mode) in modes {
            assert_eq!((text.parse(), mode.to_string()), (Ok(mode), text.to_owned()));
        }
        assert_eq!("always".parse(), Ok(Spin::Always(Spin::USUAL)));
        assert_eq!("always:2ms".parse(), Ok(Spin::Always(Duration::from_millis(2))));
        assert_eq!("always:1000ms".parse(), Ok(Spin::Always(Spin::LONGEST)));
        for wrong in
            ["", "on", "always:", "always:0us", "always:1001ms", "always:5", "always:-1us", "always:1s"]
        {
            assert!(wrong.parse::<Spin>().is_err(), "{wrong}");
        }
    }
}
