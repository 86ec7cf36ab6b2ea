//! The command's messages on stderr: `limosa: ...` lines and `hint: ...` lines; and what commands write on stdout.

use std::io::{IsTerminal, Write};

use clap::ValueEnum;

pub use limosa_hang::words::{duration, ranks};

/// How to write data.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Prints `limosa: text` and the hint, if there is one, on stderr.
pub fn say(text: &str, hint: Option<&str>) {
    // Nothing can be done about a closed stderr.
    let _ = std::io::stderr().write_all(block(text, hint).as_bytes());
}

/// The lines of a message.
pub fn block(text: &str, hint: Option<&str>) -> String {
    let mut lines = format!("limosa: {text}\n");
    if let Some(hint) = hint {
        lines.push_str(&format!("hint: {hint}\n"));
    }
    lines
}

/// `text` in a colour of the terminal, if stdout is one and NO_COLOR is not set. Meaning never depends on it.
pub fn coloured(text: &str, code: u8) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()) || !std::io::stdout().is_terminal();
    if plain { text.to_owned() } else { format!("\x1b[{code}m{text}\x1b[0m") }
}

/// Writes data to stdout; a closed pipe is not an error.
pub fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Bytes as people write them, in powers of 1024.
pub fn bytes(n: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{n} B") } else { format!("{value:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_read_well() {
        assert_eq!((bytes(17).as_str(), bytes(64 << 20).as_str()), ("17 B", "64.0 MiB"));
        assert_eq!(
            (duration(0.44).as_str(), duration(75.2).as_str(), duration(720.0).as_str()),
            ("0.4 s", "75 s", "12 min")
        );
    }
}
