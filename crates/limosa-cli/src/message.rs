//! The command's messages on stderr: `limosa: ...` lines and `hint: ...` lines.

use std::io::{IsTerminal, Write};

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

/// Ranks as people write them: `0-2, 5`.
pub fn ranks(ranks: &[u32]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = ranks;
    while let Some(first) = rest.first() {
        let run = rest.iter().zip(*first..).take_while(|(rank, expected)| **rank == *expected).count();
        parts.push(match run {
            1 => first.to_string(),
            2 => format!("{first}, {}", first + 1),
            _ => format!("{first}-{}", rest[run - 1]),
        });
        rest = &rest[run..];
    }
    let word = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{word} {}", parts.join(", "))
}

/// A duration as people write it: `0.4 s`, `75 s`, `12 min`, `3.0 h`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
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
    fn lists_of_ranks_are_short() {
        assert_eq!(ranks(&[3]), "rank 3");
        assert_eq!(ranks(&[0, 1]), "ranks 0, 1");
        assert_eq!(ranks(&[0, 1, 2, 5, 7, 8, 9]), "ranks 0-2, 5, 7-9");
    }

    #[test]
    fn sizes_and_times_read_well() {
        assert_eq!((bytes(17).as_str(), bytes(64 << 20).as_str()), ("17 B", "64.0 MiB"));
        assert_eq!(
            (duration(0.44).as_str(), duration(75.2).as_str(), duration(720.0).as_str()),
            ("0.4 s", "75 s", "12 min")
        );
    }
}
