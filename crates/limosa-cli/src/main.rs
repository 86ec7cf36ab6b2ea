//! The limosa command and the launcher.
fn main() {}
