//! What an attempt to connect over UDP has taught, from what was seen of it and of TCP at the same time. A time-out alone
//! teaches nothing: blocked UDP and a bad network look alike to it.

/// What was seen of UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sight {
    /// Anything came back, even something that could not be opened.
    pub(crate) heard: bool,
    /// Flights of packets that went out, and whose answer should be there by now.
    pub(crate) flights: u32,
    /// The network has said that they do not arrive.
    pub(crate) unreachable: Option<Unreachable>,
}

/// What the network says of packets that do not arrive (ICMP). Anybody who knows the addresses can say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreachable {
    /// The machine is there, and nobody listens on the port.
    Port,
    /// Packets do not get there, or are not let through.
    Host,
}

/// What TCP met at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tcp {
    /// It has no connection: then nothing works.
    Unconnected,
    /// It had to send again: it is no wonder if UDP's packets are lost too.
    Difficult,
    Easy,
}

/// What is to be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lesson {
    /// UDP works on this network.
    Heard,
    /// So many flights were answered by silence, and nothing but UDP explains it.
    Silent(u32),
    /// The server has no HTTP/3 where it offers it.
    Server,
    Nothing,
}

/// What there is to learn.
pub(crate) fn learn(udp: &Sight, tcp: Tcp) -> Lesson {
    match (udp, tcp) {
        (Sight { heard: true, .. }, _) => Lesson::Heard,
        (Sight { unreachable: Some(Unreachable::Port), .. }, _) => Lesson::Server,
        (_, Tcp::Unconnected | Tcp::Difficult) => Lesson::Nothing,
        // It says what silence only suggests.
        (Sight { unreachable: Some(Unreachable::Host), flights, .. }, Tcp::Easy) => {
            Lesson::Silent((*flights).max(2))
        }
        (Sight { flights: 0, .. }, Tcp::Easy) => Lesson::Nothing,
        (Sight { flights, .. }, Tcp::Easy) => Lesson::Silent(*flights),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_teaches_only_where_tcp_had_it_easy() {
        let silent = Sight { flights: 2, ..Sight::default() };
        assert_eq!(learn(&silent, Tcp::Easy), Lesson::Silent(2));
        assert_eq!(learn(&silent, Tcp::Difficult), Lesson::Nothing);
        assert_eq!(learn(&silent, Tcp::Unconnected), Lesson::Nothing);
        assert_eq!(learn(&Sight::default(), Tcp::Easy), Lesson::Nothing);
        assert_eq!(learn(&Sight { heard: true, ..silent }, Tcp::Difficult), Lesson::Heard);
    }

    #[test]
    fn what_the_network_says_tells_servers_from_networks() {
        let told = |unreachable| Sight { flights: 1, unreachable: Some(unreachable), ..Sight::default() };
        assert_eq!(learn(&told(Unreachable::Port), Tcp::Easy), Lesson::Server);
        assert_eq!(learn(&told(Unreachable::Host), Tcp::Easy), Lesson::Silent(2));
        assert_eq!(learn(&told(Unreachable::Host), Tcp::Difficult), Lesson::Nothing);
        let heard = Sight { heard: true, ..told(Unreachable::Port) };
        assert_eq!(learn(&heard, Tcp::Easy), Lesson::Heard);
    }
}
