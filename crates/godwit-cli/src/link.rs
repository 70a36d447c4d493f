//! What a modelled link is told on the command line, but for its rate: the same in both directions.

use std::time::Duration;

use godwit_lab::emulate::Figures;
use godwit_lab::link::{Probability, Rate};
use godwit_text::typed;

#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct LinkArguments {
    /// Time there and back without a queue, in milliseconds
    #[arg(long, value_name = "MS", default_value = "0", value_parser = millis)]
    rtt: Duration,

    /// Packets that wait for the link at most; else a bandwidth-delay product
    #[arg(long, value_name = "PACKETS", requires = "rate", value_parser = clap::value_parser!(u32).range(1..))]
    queue: Option<u32>,

    /// Packets lost in each direction: "1/1000", "3.5%"
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    loss: Probability,

    /// Packets held back in each direction: "1/10000", "0.1%"
    #[arg(long, value_name = "SHARE", default_value = "0%", requires = "delay")]
    reorder: Probability,

    /// For how long they are held back, in milliseconds
    #[arg(long, value_name = "MS", default_value = "0", value_parser = millis, requires = "reorder")]
    delay: Duration,
}

impl LinkArguments {
    pub(crate) fn figures(&self, rate: Option<Rate>) -> Figures {
        let mut figures = Figures::default();
        (figures.rate, figures.rtt) = (rate, self.rtt);
        figures.queue = self.queue.map(|queue| queue as usize);
        (figures.loss, figures.reorder, figures.delay) = (self.loss, self.reorder, self.delay);
        figures
    }
}

/// Megabits per second.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    typed::megabits(text).map(Rate::bits_per_second)
}

fn millis(text: &str) -> Result<Duration, String> {
    typed::milliseconds(text, 0.0..=1e5)
}
