//! The figures as Prometheus reads them (OpenMetrics).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use godwit::{Endpoint, EndpointStats};
use godwit_os::processor::ThreadClock;
use godwit_report::record::Protocol;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::histogram::{Histogram, Reading};
use super::{
    CLASSES, Connections, Metrics, Refusal, SiteCounters, SiteShardCounters, Times, Transport, ask, lock,
};

/// What the text is, for the `Content-Type` header.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All figures as text.
pub(super) fn text(metrics: &Arc<Metrics>) -> String {
    let mut registry = Registry::with_prefix("godwit");
    registry.register_collector(Box::new(Figures(Arc::clone(metrics))));
    let mut text = String::new();
    // Writing into memory does not fail.
    let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Figures(Arc<Metrics>);

impl Collector for Figures {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(encoder);
        page.requests(&self.0)?;
        page.connections(&self.0)?;
        page.shards(&self.0)?;
        page.refusals(&self.0)?;
        page.sockets(&lock(&self.0.sources.endpoints).iter().map(Endpoint::stats).collect::<Vec<_>>())?;
        page.surroundings(&self.0)
    }
}

struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn requests(&mut self, metrics: &Metrics) -> fmt::Result {
        let sites = lock(&metrics.sites).clone();
        let mut family = self.0.encode_descriptor(
            "http_requests",
            "Requests answered, by protocol, class of status and site",
            None,
            MetricType::Counter,
        )?;
        for site in &sites {
            for (at, protocol) in Protocol::ALL.iter().enumerate() {
                for (class_at, class) in CLASSES.iter().enumerate() {
                    let classes = site.shards.all().filter_map(|(_, shard)| shard.requests.get(at));
                    let count: u64 = classes.filter_map(|classes| classes.get(class_at)).map(read).sum();
                    if count > 0 {
                        let labels =
                            [("protocol", protocol.name()), ("status", class), ("site", site.name.as_str())];
                        family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&count, None)?;
                    }
                }
            }
        }
        let sum = |site: &SiteCounters, bytes: fn(&SiteShardCounters) -> &AtomicU64| -> u64 {
            site.shards.all().map(|(_, shard)| read(bytes(shard))).sum()
        };
        let received = |site| sum(site, |shard| &shard.request_bytes);
        let bytes = sites.iter().map(|site| ([("site", site.name.as_str())], received(site)));
        self.bytes("http_request", "Bytes of requests' bodies received", bytes)?;
        let sent = |site| sum(site, |shard| &shard.response_bytes);
        let bytes = sites.iter().map(|site| ([("site", site.name.as_str())], sent(site)));
        self.bytes("http_response", "Bytes of responses' bodies handed on", bytes)?;
        let times = |of: fn(&Times) -> &Histogram| {
            Protocol::ALL.iter().enumerate().map(move |(at, protocol)| {
                let shards = metrics.shards.all();
                (*protocol, Histogram::read(shards.filter_map(move |(_, it)| it.times.get(at)).map(of)))
            })
        };
        let request = times(|times| &times.request);
        self.times("http_request_duration", "From a request's arrival to its response's last byte", request)?;
        let last_mile = times(|times| &times.last_mile);
        self.times(
            "http_last_mile",
            "The same less the upstream's time, to the delivery where it is known",
            last_mile,
        )?;
        let reading = Histogram::read(metrics.shards.all().map(|(_, shard)| &shard.upstream_seconds));
        self.0
            .encode_descriptor(
                "http_upstream",
                "Time spent waiting for upstreams, for each request",
                Some(&Unit::Seconds),
                MetricType::Histogram,
            )?
            .encode_histogram::<NoLabelSet>(reading.seconds, reading.count, &reading.buckets, None)
    }

    fn connections(&mut self, metrics: &Metrics) -> fmt::Result {
        let sum = |at: usize, count: fn(&Connections) -> &AtomicU64| -> u64 {
            let connections = metrics.shards.all().filter_map(|(_, shard)| shard.connections.get(at));
            connections.map(|connections| read(count(connections))).sum()
        };
        let totals: Vec<(Protocol, u64, u64)> = (Protocol::ALL.iter().enumerate())
            .map(|(at, protocol)| (*protocol, sum(at, |it| &it.total), sum(at, |it| &it.closed)))
            .filter(|(_, total, _)| *total > 0)
            .collect();
        let label = |protocol: Protocol| [("protocol", protocol.name())];
        let opened = totals.iter().map(|(protocol, total, _)| (label(*protocol), *total));
        self.counters("connections", "Connections on which requests could be sent", opened)?;
        let open =
            totals.iter().map(|(protocol, total, closed)| (label(*protocol), total.saturating_sub(*closed)));
        self.gauges("connections_open", "Connections that are open", open)?;
        let quic = &metrics.quic;
        let handshakes = [
            ("begun", &quic.begun),
            ("finished", &quic.finished),
            ("failed", &quic.failed),
            ("retry", &quic.retried),
        ];
        let handshakes = handshakes.into_iter().map(|(outcome, count)| ([("outcome", outcome)], read(count)));
        self.counters(
            "quic_handshakes",
            "QUIC handshakes, and clients asked to prove their address",
            handshakes,
        )?;
        self.counter(
            "quic_packets_sent",
            "QUIC packets sent on connections that are over",
            read(&quic.packets_sent),
        )?;
        self.counter("quic_packets_lost", "Of them, those that were lost", read(&quic.packets_lost))?;
        self.counter(
            "quic_sent_bytes",
            "UDP payload sent on connections that are over",
            read(&quic.bytes_sent),
        )?;
        self.counter("quic_received_bytes", "UDP payload received on them", read(&quic.bytes_received))
    }

    /// What each shard has done, by which uneven work shows.
    fn shards(&mut self, metrics: &Metrics) -> fmt::Result {
        let clocks = lock(&metrics.clocks).clone();
        let name = |number: Option<u8>| match number {
            Some(number) => number.to_string(),
            // One alone has no thread of its own.
            None if clocks.len() <= 1 => "0".to_owned(),
            None => "none".to_owned(),
        };
        let mut counts = Vec::new();
        for (number, shard) in metrics.shards.all() {
            let by_protocol = Protocol::ALL.iter().zip(&shard.connections).zip(&shard.times);
            for ((protocol, connections), times) in by_protocol {
                let (opened, requests) = (read(&connections.total), times.request.count());
                let open = opened.saturating_sub(read(&connections.closed));
                if opened > 0 || requests > 0 {
                    counts.push((
                        [("shard", name(number)), ("protocol", protocol.name().to_owned())],
                        opened,
                        open,
                        requests,
                    ));
                }
            }
        }
        let opened = counts.iter().map(|(labels, opened, ..)| (labels.clone(), *opened));
        self.counters("shard_connections", "Connections on which requests could be sent, by shard", opened)?;
        let open = counts.iter().map(|(labels, _, open, _)| (labels.clone(), *open));
        self.gauges("shard_connections_open", "Connections that are open, by shard", open)?;
        let requests = counts.iter().map(|(labels, .., requests)| (labels.clone(), *requests));
        self.counters("shard_requests", "Requests answered, by shard", requests)?;
        let help = "Processor time that the thread of a shard has used";
        let mut family =
            self.0.encode_descriptor("shard_cpu", help, Some(&Unit::Seconds), MetricType::Counter)?;
        for (number, clock) in clocks.iter().enumerate() {
            if let Some(ran) = clock.as_ref().and_then(ThreadClock::ran) {
                let labels = [("shard", number.to_string())];
                family
                    .encode_family(&labels)?
                    .encode_counter::<NoLabelSet, _, f64>(&ran.as_secs_f64(), None)?;
            }
        }
        Ok(())
    }

    fn refusals(&mut self, metrics: &Metrics) -> fmt::Result {
        let label = |transport: Transport, why| [("transport", transport.name()), ("why", why)];
        let mut counts = Vec::new();
        for (transport, refused) in Transport::ALL.into_iter().zip(&metrics.refused) {
            for (refusal, count) in Refusal::ALL.into_iter().zip(refused) {
                counts.push((label(transport, refusal.name()), read(count)));
            }
        }
        // Where nothing is refused nothing is said, apart from those that one waits for.
        counts.retain(|(_, count)| *count > 0);
        for refused in ask(&metrics.sources.over_limit) {
            counts.push((label(refused.transport, "connections"), refused.of_all));
            counts.push((label(refused.transport, "connections_per_network"), refused.of_network));
            counts.push((label(refused.transport, "connections_per_address"), refused.of_client));
            counts.push((label(refused.transport, "idle_connections"), refused.idle));
        }
        self.counters(
            "refused",
            "Clients turned away by a limit or by the protocol, and why",
            counts.into_iter(),
        )
    }

    fn sockets(&mut self, endpoints: &[EndpointStats]) -> fmt::Result {
        let sum = |count: fn(&EndpointStats) -> u64| endpoints.iter().map(count).sum();
        self.counter("udp_datagrams_sent", "Datagrams sent", sum(EndpointStats::datagrams_sent))?;
        self.counter("udp_datagrams_received", "Datagrams received", sum(EndpointStats::datagrams_received))?;
        let dropped = sum(EndpointStats::kernel_drops);
        self.counter(
            "udp_datagrams_dropped",
            "Datagrams dropped because a receive buffer was full",
            dropped,
        )?;
        let connections = endpoints.iter().map(|endpoint| endpoint.connections as u64).sum();
        self.gauge(
            "quic_connections",
            "QUIC connections, those included that are being made or closed",
            connections,
        )
    }

    fn surroundings(&mut self, metrics: &Metrics) -> fmt::Result {
        let dropped = read(&metrics.log_lines_dropped);
        self.counter(
            "log_lines_dropped",
            "Lines of the access log that were not written: no room, or a full disk",
            dropped,
        )?;
        self.gauge("ready", "Whether requests are welcome", u64::from(metrics.is_ready()))?;
        let certificates = ask(&metrics.sources.certificates);
        let expiries = certificates.iter().map(|it| ([("name", it.name.as_str())], it.not_after));
        let name = "certificate_expiry_timestamp";
        self.gauges_in(name, "When a certificate ends, since 1970", Some(&Unit::Seconds), expiries)?;
        let upstreams = ask(&metrics.sources.upstreams);
        let label = |address: &String| [("upstream", address.clone())];
        let usable = upstreams.iter().map(|it| (label(&it.address), u64::from(it.healthy && !it.avoided)));
        self.gauges("upstream_usable", "Whether an upstream is used", usable)?;
        let under_way = upstreams.iter().map(|it| (label(&it.address), it.under_way as u64));
        self.gauges(
            "upstream_requests_under_way",
            "Requests that an upstream has not answered yet",
            under_way,
        )?;
        let requests = upstreams.iter().map(|it| (label(&it.address), it.requests));
        self.counters("upstream_requests", "Requests sent to an upstream, repetitions included", requests)?;
        let failures = upstreams.iter().map(|it| (label(&it.address), it.failures));
        self.counters("upstream_failures", "Requests that an upstream did not answer", failures)?;
        let ports = ask(&metrics.sources.advertisements);
        let reachable = ports.iter().map(|it| ([("port", it.port.to_string())], u64::from(it.reachable)));
        self.gauges("udp_probe_passed", "Whether HTTP/3 was reachable when last tried from here", reachable)?;
        let open = ports.iter().map(|it| ([("port", it.port.to_string())], u64::from(it.open)));
        self.gauges("http3_advertised", "Whether clients are told of HTTP/3", open)?;
        let failing = ports.iter().map(|it| ([("port", it.port.to_string())], it.failing_networks as u64));
        let help = "Networks whose clients are not told of HTTP/3, because it fails from there";
        self.gauges("http3_failing_networks", help, failing)
    }

    fn times(
        &mut self,
        name: &str,
        help: &str,
        times: impl Iterator<Item = (Protocol, Reading)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        for (protocol, reading) in times {
            if reading.count > 0 {
                family.encode_family(&[("protocol", protocol.name())])?.encode_histogram::<NoLabelSet>(
                    reading.seconds,
                    reading.count,
                    &reading.buckets,
                    None,
                )?;
            }
        }
        Ok(())
    }

    fn bytes<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl Iterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, Some(&Unit::Bytes), MetricType::Counter)?;
        for (labels, value) in values {
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&value, None)?;
        }
        Ok(())
    }

    fn counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl Iterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in values {
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&value, None)?;
        }
        Ok(())
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let mut counter = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        counter.encode_counter::<NoLabelSet, _, f64>(&value, None)
    }

    fn gauges<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl Iterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let values = values.map(|(labels, value)| (labels, i64::try_from(value).unwrap_or(i64::MAX)));
        self.gauges_in(name, help, None, values)
    }

    fn gauges_in<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        values: impl Iterator<Item = (L, i64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, unit, MetricType::Gauge)?;
        for (labels, value) in values {
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
