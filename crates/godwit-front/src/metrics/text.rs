//! The figures as Prometheus reads them (OpenMetrics).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use godwit::{Endpoint, EndpointStats};
use godwit_report::record::Protocol;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::histogram::Histogram;
use super::{CLASSES, Metrics, Refusal, Transport, ask, lock};

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
            for (protocol, classes) in Protocol::ALL.iter().zip(&site.requests) {
                for (class, count) in CLASSES.iter().zip(classes) {
                    let count = count.load(Ordering::Relaxed);
                    if count > 0 {
                        let labels =
                            [("protocol", protocol.name()), ("status", class), ("site", site.name.as_str())];
                        family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&count, None)?;
                    }
                }
            }
        }
        let bytes = sites.iter().map(|site| ([("site", site.name.as_str())], read(&site.request_bytes)));
        self.bytes("http_request", "Bytes of requests' bodies received", bytes)?;
        let bytes = sites.iter().map(|site| ([("site", site.name.as_str())], read(&site.response_bytes)));
        self.bytes("http_response", "Bytes of responses' bodies handed on", bytes)?;
        let by_protocol = || Protocol::ALL.iter().zip(&metrics.times);
        let times = by_protocol().map(|(protocol, times)| (*protocol, &times.request));
        self.times("http_request_duration", "From a request's arrival to its response's last byte", times)?;
        let times = by_protocol().map(|(protocol, times)| (*protocol, &times.last_mile));
        self.times(
            "http_last_mile",
            "The same less the upstream's time, to the delivery where it is known",
            times,
        )?;
        let reading = metrics.upstream_seconds.read();
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
        let totals: Vec<(Protocol, u64, u64)> = (Protocol::ALL.iter().zip(&metrics.connections))
            .map(|(protocol, it)| (*protocol, read(&it.total), read(&it.closed)))
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

    fn times<'a>(
        &mut self,
        name: &str,
        help: &str,
        times: impl Iterator<Item = (Protocol, &'a Histogram)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        for (protocol, histogram) in times {
            let reading = histogram.read();
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
