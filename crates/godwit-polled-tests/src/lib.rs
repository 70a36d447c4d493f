//! Nothing but tests (in `tests/`): what a program sees of `godwit` that switches its default features off and uses
//! only what is public.
#![forbid(unsafe_code)]
