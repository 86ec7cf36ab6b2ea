//! The thresholds of the collectives in shared memory.

/// Most ranks of a communicator: a slot must have room for a table of all ranks.
pub(super) const MAX_RANKS: usize = 256;

/// Bytes of a slot: what is longer is copied straight from one process's memory to the other's.
pub(super) fn slot_bytes(_ranks: usize) -> usize {
    tune("T_SLOT", 8 << 10)
}

/// Bytes of a share of a transfer of `len` bytes that two processes copy together.
pub(super) fn share_bytes(len: usize) -> usize {
    len.div_ceil(2).next_multiple_of(4 << 10).clamp(tune("T_SHMIN", 8 << 10), tune("T_SHARE", 64 << 10))
}

/// Bytes of a piece of a reduction of `len` bytes by `ranks` ranks.
pub(super) fn piece_bytes(len: usize, ranks: usize) -> usize {
    len.div_ceil(ranks).next_multiple_of(1 << 10).clamp(tune("T_PMIN", 4 << 10), tune("T_PIECE", 64 << 10))
}

/// Whether operations after which all know the same are decided by the rank that arrives last, instead of by each rank for itself.
pub(super) fn meets_in_the_middle(crowded: bool, ranks: usize) -> bool {
    crowded && ranks > 2
}

/// Largest operand, in bytes, that is put on the stage whole.
pub(super) fn whole_operand(slot_bytes: usize, _ranks: usize) -> usize {
    slot_bytes.min(tune("T_WHOLE", 1 << 20))
}

/// The same where each rank gets a part of the result only.
pub(super) fn whole_operand_scattered(slot_bytes: usize, _ranks: usize) -> usize {
    slot_bytes
}

pub(super) fn tune(name: &'static str, default: usize) -> usize {
    use std::collections::HashMap;
    use std::sync::{Mutex, OnceLock};
    static T: OnceLock<Mutex<HashMap<&'static str, usize>>> = OnceLock::new();
    *T.get_or_init(Default::default)
        .lock()
        .unwrap()
        .entry(name)
        .or_insert_with(|| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default))
}
