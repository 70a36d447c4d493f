//! To whom HTTP/3 is advertised, and when.
