//! Message files as no sender writes them: each is taken or refused, and what is said of it fits in the file.
//!
//! An input is a file as it is, or, if its first byte says so, the packets of one whose header is right, so that inputs
//! reach the packets soon.

use limosa_device::files::format::{self, HEADER, Label, PACKET};
use limosa_p2p::inspect::describe;

/// Runs one input.
pub fn target(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    if kind % 2 == 0 {
        read(rest);
        return;
    }
    let mut file = format::Batch::default().sealed(&Label { from: 1, to: 0, number: u64::from(*kind) }).to_vec();
    file.extend_from_slice(rest);
    file[20..24].copy_from_slice(&u32::from(kind / 2).to_le_bytes());
    let len = file.len() as u64;
    file[32..40].copy_from_slice(&len.to_le_bytes());
    read(&file);
}

fn read(file: &[u8]) {
    let Ok((label, packets)) = format::open(file) else { return };
    let (mut used, mut count, mut last) = (HEADER, 0u32, None);
    let mut again = format::Batch::default();
    for packet in packets {
        assert!(last.is_none(), "a packet after an error");
        match packet {
            Ok((meta, data)) => {
                used += PACKET + data.len();
                count += 1;
                assert!(used <= file.len(), "{used} bytes of packets in a file of {}", file.len());
                let _ = describe(&meta, data);
                again.push(&meta, limosa_device::Data::Bytes(data));
            }
            Err(why) => last = Some(why),
        }
    }
    if last.is_some() {
        return;
    }
    assert_eq!(used, file.len(), "a file of {count} packets");
    // What was taken whole, written again, says the same.
    let written = again.sealed(&label).to_vec();
    let (same, packets) = format::open(&written).expect("what was written");
    assert_eq!((same, packets.filter(Result::is_ok).count()), (label, count as usize));
}
