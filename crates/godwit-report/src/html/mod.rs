//! x
pub fn page(_: &crate::Report) -> String {
    String::new()
}
