//! Text forms of rank lists, times and job ids.

/// Formats ranks: `0-2, 5`.
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

/// Formats a duration: `0.4 s`, `75 s`, `12 min`, `3.0 h`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Returns a job's short id, by which `limosa ps` finds the job.
pub(crate) fn short(id: u64) -> String {
    format!("{:08x}", id >> 32)
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
}
