//! Hints of files (MPI-5 section 14.2.8): promises of the program about their use, and the consequences.

use std::sync::Arc;

use limosa_mpi::error::Result;
use limosa_mpi::info::Info;

/// Keys, default values, and domains of valid values.
const KEYS: &[(&str, &str, Sense)] = &[
    ("access_style", "", Sense::Text),
    ("cb_block_size", "1048576", Sense::Number),
    ("cb_buffer_size", "1048576", Sense::Number),
    ("cb_nodes", "0", Sense::Number),
    ("chunked", "", Sense::Text),
    ("chunked_item", "", Sense::Text),
    ("chunked_size", "", Sense::Text),
    ("collective_buffering", "true", Sense::Flag),
    ("file_perm", "0666", Sense::Octal),
    ("ind_rd_buffer_size", "131072", Sense::Number),
    ("ind_wr_buffer_size", "524288", Sense::Number),
    ("io_node_list", "", Sense::Text),
    ("nb_proc", "", Sense::Number),
    ("num_io_nodes", "", Sense::Number),
    ("romio_cb_read", "automatic", Sense::Switch),
    ("romio_cb_write", "automatic", Sense::Switch),
    ("romio_ds_read", "automatic", Sense::Switch),
    ("romio_ds_write", "automatic", Sense::Switch),
    ("striping_factor", "", Sense::Number),
    ("striping_unit", "", Sense::Number),
];

/// Domain of valid values of a hint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sense {
    Text,
    Number,
    Octal,
    Flag,
    Switch,
}

impl Sense {
    fn allows(self, value: &str) -> bool {
        match self {
            Sense::Text => true,
            Sense::Number => value.parse::<u64>().is_ok_and(|number| number > 0),
            Sense::Octal => u32::from_str_radix(value, 8).is_ok_and(|mode| mode <= 0o777),
            Sense::Flag => matches!(value, "true" | "false"),
            Sense::Switch => matches!(value, "automatic" | "enable" | "disable"),
        }
    }
}

/// Use of other processes in collective accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Buffering {
    /// Where it is faster.
    Automatic,
    Always,
    Never,
}

/// The hints in use, parsed.
#[derive(Clone)]
pub(crate) struct Values {
    texts: Vec<String>,
    pub sieves_reads: bool,
    pub sieves_writes: bool,
    /// Maximum bytes that data sieving reads at once.
    pub read_buffer: u64,
    /// Maximum bytes that data sieving reads and writes back at once.
    pub write_buffer: u64,
    pub collective_reads: Buffering,
    pub collective_writes: Buffering,
    /// Bytes of an aggregator's buffer.
    pub collective_buffer: u64,
    /// Alignment in bytes of the parts of the file that aggregators process; 0 for that of the file system.
    pub stripe: u64,
    /// Number of aggregators; 0 for an automatic choice.
    pub aggregators: u64,
    /// Permissions of a file that is created.
    pub permissions: u32,
}

impl Values {
    pub fn new(info: Option<&Info>) -> Values {
        let texts = KEYS.iter().map(|(_, value, _)| (*value).to_owned()).collect();
        let mut values = Values {
            texts,
            sieves_reads: true,
            sieves_writes: true,
            read_buffer: 0,
            write_buffer: 0,
            collective_reads: Buffering::Automatic,
            collective_writes: Buffering::Automatic,
            collective_buffer: 0,
            stripe: 0,
            aggregators: 0,
            permissions: 0,
        };
        values.update(info);
        values
    }

    /// Sets the hints for which `info` has a valid value. Others are ignored, as the standard allows.
    pub fn update(&mut self, info: Option<&Info>) {
        for ((key, _, sense), text) in KEYS.iter().zip(&mut self.texts) {
            let given =
                info.and_then(|info| info.lookup(key.as_bytes())).and_then(|value| String::from_utf8(value).ok());
            if let Some(given) = given.filter(|given| sense.allows(given.trim())) {
                *text = given.trim().to_owned();
            }
        }
        self.understand();
    }

    fn text(&self, key: &str) -> &str {
        KEYS.iter().position(|(known, ..)| *known == key).map_or("", |at| &self.texts[at])
    }

    fn number(&self, key: &str) -> u64 {
        self.text(key).parse().unwrap_or(0)
    }

    fn understand(&mut self) {
        self.sieves_reads = self.text("romio_ds_read") != "disable";
        self.sieves_writes = self.text("romio_ds_write") != "disable";
        self.read_buffer = self.number("ind_rd_buffer_size");
        self.write_buffer = self.number("ind_wr_buffer_size");
        let buffering = |key| match (self.text(key), self.text("collective_buffering")) {
            ("disable", _) | ("automatic", "false") => Buffering::Never,
            ("enable", _) => Buffering::Always,
            _ => Buffering::Automatic,
        };
        (self.collective_reads, self.collective_writes) = (buffering("romio_cb_read"), buffering("romio_cb_write"));
        self.collective_buffer = self.number("cb_buffer_size").clamp(4096, 1 << 30);
        self.stripe = self.number("striping_unit").min(1 << 30);
        self.aggregators = self.number("cb_nodes");
        self.permissions = u32::from_str_radix(self.text("file_perm"), 8).unwrap_or(0o666);
    }

    /// Returns the hints that must be equal at all processes, as words. The first process's values are used.
    pub fn common(&self) -> [u64; 3] {
        let buffering = |buffering: Buffering| buffering as u64;
        let ways = buffering(self.collective_reads) << 2 | buffering(self.collective_writes);
        [ways | self.aggregators.min(u64::from(u32::MAX)) << 4, self.collective_buffer, self.stripe]
    }

    /// Sets the hints that the first process has sent.
    pub fn set_common(&mut self, words: [u64; 3]) {
        let buffering = |word: u64| match word & 3 {
            0 => Buffering::Automatic,
            1 => Buffering::Always,
            _ => Buffering::Never,
        };
        (self.collective_reads, self.collective_writes) = (buffering(words[0] >> 2), buffering(words[0]));
        self.aggregators = words[0] >> 4;
        (self.collective_buffer, self.stripe) = (words[1].clamp(4096, 1 << 30), words[2]);
        let numbers = [("cb_nodes", self.aggregators), ("cb_buffer_size", self.collective_buffer)];
        for (key, number) in numbers {
            let at = KEYS.iter().position(|(known, ..)| *known == key).expect("a known key");
            self.texts[at] = number.to_string();
        }
    }

    /// Returns all hints that have a value.
    ///
    /// # Errors
    /// None.
    pub fn to_info(&self) -> Result<Arc<Info>> {
        let info = Info::new();
        for ((key, ..), text) in KEYS.iter().zip(&self.texts).filter(|(_, text)| !text.is_empty() && *text != "0") {
            info.set(key.as_bytes(), text.as_bytes())?;
        }
        Ok(info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_act_and_nonsense_is_ignored() {
        let info = Info::new();
        for (key, value) in [
            ("cb_buffer_size", "65536"),
            ("cb_nodes", "many"),
            ("romio_ds_write", "disable"),
            ("collective_buffering", "false"),
            ("file_perm", "0640"),
            ("unknown", "1"),
        ] {
            info.set(key.as_bytes(), value.as_bytes()).unwrap();
        }
        let values = Values::new(Some(&info));
        assert_eq!((values.collective_buffer, values.aggregators, values.permissions), (65536, 0, 0o640));
        assert!(values.sieves_reads && !values.sieves_writes);
        assert_eq!(values.collective_writes, Buffering::Never);
        let used = values.to_info().unwrap();
        assert_eq!(used.get(b"cb_buffer_size").unwrap().as_deref(), Some(&b"65536"[..]));
        assert_eq!(used.get(b"unknown").unwrap(), None);
    }

    #[test]
    fn the_first_process_decides_what_all_must_know() {
        let info = Info::new();
        for (key, value) in [("cb_nodes", "3"), ("romio_cb_read", "enable"), ("romio_cb_write", "disable")] {
            info.set(key.as_bytes(), value.as_bytes()).unwrap();
        }
        let mut other = Values::new(None);
        other.set_common(Values::new(Some(&info)).common());
        assert_eq!(other.aggregators, 3);
        assert_eq!((other.collective_reads, other.collective_writes), (Buffering::Always, Buffering::Never));
    }
}
