//! Congestion marks through real sockets: the loopback interface leaves them alone.

use crate::support::{Net, on_every_net, pattern};
use godwit::{EcnState, TransportConfig};

on_every_net! {
    marks_pass_in_both_directions,
    nothing_is_marked_unless_wanted,
}

async fn exchange(pair: &crate::support::Pair) {
    for _ in 0..2 {
        for (from, to) in [(&pair.client, &pair.server), (&pair.server, &pair.client)] {
            let mut send = from.open_uni().await.unwrap();
            let data = pattern(5, 500_000);
            let sent = data.clone();
            let sending = async {
                send.write_all(&sent).await.unwrap();
                send.finish().unwrap();
            };
            let receiving = async { to.accept_uni().await.unwrap().read_to_end(1 << 20).await.unwrap() };
            let ((), received) = tokio::join!(sending, receiving);
            assert!(received == data);
        }
    }
}

async fn marks_pass_in_both_directions(net: Net) {
    let pair = net.pair().await;
    exchange(&pair).await;
    let (client, server) = (pair.client.stats(), pair.server.stats());
    for (ours, theirs) in [(client, server), (server, client)] {
        assert_eq!(ours.ecn, EcnState::Capable);
        assert!(ours.ecn_sent.sent > 100, "{:?}", ours.ecn_sent);
        assert!(theirs.ecn_received.ect0 > 100, "{:?}", theirs.ecn_received);
        assert_eq!((theirs.ecn_received.ect1, theirs.ecn_received.ce), (0, 0));
    }
}

async fn nothing_is_marked_unless_wanted(net: Net) {
    let mut plain = TransportConfig::default();
    plain.ecn = false;
    let pair = net.pair_with(plain.clone(), plain).await;
    exchange(&pair).await;
    for stats in [pair.client.stats(), pair.server.stats()] {
        assert_eq!((stats.ecn, stats.ecn_sent.sent, stats.ecn_received.ect0), (EcnState::Off, 0, 0));
    }
}
