//! Where more streams are of no more use.

use super::{Point, rate};

/// More streams have to add this to the rate to be worth a longer P99.
const GAIN: f64 = 1.05;

/// The knee of each number of connections, if its curve has one, and of these the one with the highest rate; of rates that are
/// about the same, the one with the shortest P99.
pub(super) fn best(points: &[Point]) -> Option<Point> {
    let knees = curves(points).filter_map(|curve| knee(curve).map(|(knee, _)| knee));
    knees.reduce(|best, other| {
        let is_faster = other.per_second > best.per_second * GAIN;
        let is_as_fast = other.per_second * GAIN > best.per_second;
        if is_faster || (is_as_fast && other.p99_us < best.p99_us) { other } else { best }
    })
}

/// What follows from the curves.
pub(super) fn recommendation(points: &[Point], best: Option<Point>) -> String {
    let highest = points.iter().max_by(|left, right| left.per_second.total_cmp(&right.per_second));
    let (Some(highest), Some(most)) = (highest, points.iter().map(|point| point.streams).max()) else {
        return "nothing was measured".to_owned();
    };
    let Some(best) = best else {
        return format!(
            "the rate still rises with {most} streams a connection ({}): there is no knee in this range",
            rate(highest.per_second)
        );
    };
    let next = curves(points).find_map(|curve| knee(curve).filter(|(knee, _)| *knee == best));
    let beyond = next.map_or(String::new(), |(_, next)| {
        let rate = (next.per_second / best.per_second - 1.0) * 100.0;
        let longer = next.p99_us / best.p99_us;
        format!(
            "; {} streams would change the rate by {rate:+.0} % and take {longer:.1} times the P99",
            next.streams
        )
    });
    let (connections, streams) = (best.connections, best.streams);
    let plural = |count: u32| if count == 1 { "" } else { "s" };
    format!(
        "use {connections} connection{} with {streams} stream{} each: {} at a P99 of {} us{beyond}",
        plural(connections),
        plural(streams),
        rate(best.per_second),
        best.p99_us
    )
}

/// The points of each number of connections.
pub(super) fn curves(points: &[Point]) -> impl Iterator<Item = &[Point]> {
    points.chunk_by(|left, right| left.connections == right.connections)
}

/// The first point after which the rate rises by less than 5 % and P99 rises, and the one after it. A single step that is
/// flat by chance is none: no later point may have more of a rate either.
fn knee(curve: &[Point]) -> Option<(Point, Point)> {
    curve.windows(2).enumerate().find_map(|(place, pair)| {
        let [point, next] = pair else { return None };
        let later = curve.get(place + 1..).unwrap_or_default();
        let is_flat = later.iter().all(|later| later.per_second < point.per_second * GAIN);
        (is_flat && next.p99_us > point.p99_us).then_some((*point, *next))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(connections: u32, curve: &[(u32, f64, f64)]) -> Vec<Point> {
        let point = |&(streams, per_second, p99_us)| Point {
            connections,
            streams,
            per_second,
            per_second_range: [per_second; 2],
            p50_us: 1.0,
            p99_us,
        };
        curve.iter().map(point).collect()
    }

    #[test]
    fn the_knee_is_where_more_only_wait() {
        let curve = [(1, 10e3, 100.0), (10, 80e3, 200.0), (20, 83e3, 400.0), (50, 82e3, 900.0)];
        let points = points(1, &curve);
        let best = best(&points).unwrap();
        assert_eq!(best.streams, 10);
        assert_eq!(
            recommendation(&points, Some(best)),
            "use 1 connection with 10 streams each: 80 000 requests per second at a P99 of 200 us; 20 streams would \
             change the rate by +4 % and take 2.0 times the P99"
        );
    }

    #[test]
    fn a_flat_step_before_a_rise_is_no_knee() {
        let curve = [(1, 10e3, 100.0), (2, 10.1e3, 110.0), (10, 80e3, 200.0), (20, 81e3, 400.0)];
        assert_eq!(best(&points(1, &curve)).unwrap().streams, 10);
    }

    #[test]
    fn a_curve_that_rises_to_its_end_has_none() {
        let points = points(2, &[(1, 10e3, 100.0), (10, 80e3, 200.0), (20, 120e3, 250.0)]);
        assert_eq!(best(&points), None);
        assert!(recommendation(&points, None).contains("still rises with 20 streams"));
        assert_eq!(recommendation(&[], None), "nothing was measured");
    }

    #[test]
    fn of_several_connections_the_fastest_counts_and_then_the_promptest() {
        let flat = |rate: f64, p99: f64| [(1, rate, p99), (2, rate, p99 * 2.0)];
        let all = |curves: [(f64, f64); 2]| {
            let [left, right] = curves.map(|(rate, p99)| flat(rate, p99));
            [points(1, &left), points(2, &right)].concat()
        };
        assert_eq!(best(&all([(10e3, 50.0), (20e3, 90.0)])).unwrap().connections, 2);
        assert_eq!(best(&all([(20e3, 50.0), (20.2e3, 90.0)])).unwrap().connections, 1);
        assert_eq!(best(&all([(20.2e3, 90.0), (20e3, 50.0)])).unwrap().connections, 2);
    }
}
