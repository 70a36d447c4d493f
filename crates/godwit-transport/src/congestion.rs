//! What a program needs to bring a congestion controller of its own: a [`ControllerFactory`] in
//! [`TransportConfig::congestion`](crate::TransportConfig::congestion).

pub use godwit_recovery::RttEstimator;
pub use godwit_recovery::congestion::{
    Acked, CeMarks, CongestionController, ControllerFactory, ControllerStart, Lost, Pacing, RateSample,
    SavedState, Sent, initial_window, minimum_window,
};
