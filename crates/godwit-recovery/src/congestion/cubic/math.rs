//! The two formulas of CUBIC in integers. `C` is 0.4 segments per second cubed (RFC 9438 section 5).

/// Times beyond this, some five hours, are cut: the window is far beyond any network by then.
const MAX_MICROS: u64 = 1 << 34;
/// Microseconds cubed per second cubed.
const MICROS_CUBED: u128 = 1_000_000_000_000_000_000;

/// `C * t^3` in bytes, for `t` in microseconds.
pub(super) fn cubic_increase(micros: u64, mtu: u16) -> u64 {
    let t = u128::from(micros.min(MAX_MICROS));
    let cubed = t.saturating_mul(t).saturating_mul(t);
    // 0.4 = 2/5; at most 2^102 * 2^17, which fits.
    let scaled = cubed.saturating_mul(u128::from(mtu)).saturating_mul(2);
    let bytes = scaled.checked_div(MICROS_CUBED.saturating_mul(5)).unwrap_or(0);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// `K = cbrt((W_max - cwnd) / C)` in microseconds, for a difference in bytes.
pub(super) fn time_to_plateau(difference: u64, mtu: u16) -> u64 {
    let scaled = u128::from(difference).saturating_mul(MICROS_CUBED).saturating_mul(5);
    let cubed = scaled.checked_div(u128::from(mtu).saturating_mul(2)).unwrap_or(0);
    cube_root(cubed).min(MAX_MICROS)
}

/// The largest integer whose cube is at most `value`, bit by bit. Runs once per congestion event.
fn cube_root(value: u128) -> u64 {
    let mut root = 0_u64;
    for bit in (0..43_u32).rev() {
        let candidate = root | 1_u64.checked_shl(bit).unwrap_or(0);
        let wide = u128::from(candidate);
        // Below 2^43, so that the cube is below 2^129: check it.
        let fits = wide.checked_mul(wide).and_then(|square| square.checked_mul(wide));
        if fits.is_some_and(|cube| cube <= value) {
            root = candidate;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        // 10 s past the plateau: 0.4 * 1000 segments.
        assert_eq!(cubic_increase(10_000_000, 1200), 480_000);
        // 400 segments below it: 10 s.
        assert_eq!(time_to_plateau(480_000, 1200), 10_000_000);
        assert_eq!((cubic_increase(0, 1200), time_to_plateau(0, 1200)), (0, 0));
        assert!(cubic_increase(u64::MAX, u16::MAX) > 1 << 50);
        assert!(time_to_plateau(u64::MAX, 1200) > 10_000_000);
    }

    proptest! {
        #[test]
        fn cube_root_is_exact(value: u128) {
            let root = u128::from(cube_root(value));
            prop_assert!(root * root * root <= value);
            let above = root + 1;
            let over = above.checked_mul(above).and_then(|s| s.checked_mul(above));
            prop_assert!(over.is_none_or(|cube| cube > value));
        }

        #[test]
        fn the_curve_reaches_the_plateau_at_k(difference in 0u64..10_000_000_000, mtu in 1200u16..9000) {
            let k = time_to_plateau(difference, mtu);
            let reached = cubic_increase(k, mtu);
            prop_assert!(reached <= difference);
            prop_assert!(difference - reached <= difference / 1000 + 1);
        }
    }
}
