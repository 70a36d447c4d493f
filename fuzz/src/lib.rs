//! What the fuzz targets check. The targets only hand the bytes over; ordinary tests replay the
//! checked-in corpus through the same functions.

pub mod wire;
