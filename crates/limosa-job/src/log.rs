//! The trace of what the library does (`LIMOSA_LOG`): which events are wanted, and where they are shown.
//!
//! Events are those of the crate `tracing`. While there is no subscriber, an event site is one load and one branch that
//! is always taken.

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;

/// Parts of the library that have events. The events of a part come from the crate `limosa-` and its name.
const PARTS: [&str; 3] = ["coll", "mpi", "p2p"];
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The most detailed level whose events are shown, by part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter(Targets);

impl FromStr for Filter {
    type Err = String;

    /// Reads parts and levels between commas: `p2p=debug,coll=info`. A level alone is for all parts without a level of
    /// their own, a part alone shows all its events.
    fn from_str(text: &str) -> Result<Filter, String> {
        let level = |name: &str| LEVELS.contains(&name).then(|| name.parse::<LevelFilter>().ok()).flatten();
        let mut targets = Targets::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            if let Some(level) = level(word) {
                targets = targets.with_default(level);
                continue;
            }
            let (part, given) = word.split_once('=').unwrap_or((word, "trace"));
            if !PARTS.contains(&part) {
                return Err(format!("`{part}` is no part of the library: the parts are {}", PARTS.join(", ")));
            }
            let Some(level) = level(given) else {
                return Err(format!("`{given}` in `{word}` is no level: the levels are {}", LEVELS.join(", ")));
            };
            targets = targets.with_target(format!("limosa_{part}"), level);
        }
        Ok(Filter(targets))
    }
}

/// Begins to show the events that the filter lets through, on stderr or in the file `file.RANK`. Later calls change
/// nothing.
pub fn begin(filter: &Filter, file: Option<&Path>, rank: u32) {
    if *filter == Filter::default() {
        return;
    }
    let file = file.and_then(|file| {
        let mut name = file.as_os_str().to_owned();
        name.push(format!(".{rank}"));
        let opened = File::options().create(true).append(true).open(&name);
        let warn = |error: &_| {
            eprintln!("limosa: LIMOSA_LOG_FILE: cannot write {}: {error}: events go to stderr instead", name.display());
        };
        opened.inspect_err(warn).ok()
    });
    let writer = match file {
        Some(file) => BoxMakeWriter::new(Arc::new(file)),
        None => BoxMakeWriter::new(std::io::stderr),
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_timer(Stamp { rank, start: Instant::now() })
        .with_writer(writer);
    let subscriber = tracing_subscriber::registry().with(filter.0.clone()).with(lines);
    // Fails only if there is a subscriber.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// What a line begins with: the rank, and the seconds since its start.
struct Stamp {
    rank: u32,
    start: Instant,
}

impl FormatTime for Stamp {
    fn format_time(&self, line: &mut Writer<'_>) -> fmt::Result {
        write!(line, "[rank {}] {:.6}", self.rank, self.start.elapsed().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_levels_are_read() {
        let shows = |text: &str, part: &str, level| {
            text.parse::<Filter>().unwrap().0.would_enable(&format!("limosa_{part}::state"), &level)
        };
        use tracing::Level;
        assert!(!shows("", "p2p", Level::ERROR));
        assert!(shows("info", "p2p", Level::INFO) && !shows("info", "p2p", Level::DEBUG));
        let some = " p2p=debug , coll=info,";
        assert!(shows(some, "p2p", Level::DEBUG) && shows(some, "coll", Level::INFO));
        assert!(!shows(some, "coll", Level::DEBUG) && !shows(some, "mpi", Level::ERROR));
        let some = "coll,mpi=off,warn";
        assert!(shows(some, "coll", Level::TRACE) && shows(some, "p2p", Level::WARN));
        assert!(!shows(some, "mpi", Level::ERROR));
    }

    #[test]
    fn a_wrong_filter_names_the_wrong_word() {
        let error = |text: &str| text.parse::<Filter>().unwrap_err();
        assert_eq!(error("coll=info,p2q=debug"), "`p2q` is no part of the library: the parts are coll, mpi, p2p");
        assert_eq!(
            error("p2p=loud"),
            "`loud` in `p2p=loud` is no level: the levels are off, error, warn, info, debug, trace"
        );
        assert!(error("p2p=").contains("`` in `p2p=` is no level"));
        assert!(error("debug=p2p").contains("`debug` is no part"));
    }
}
