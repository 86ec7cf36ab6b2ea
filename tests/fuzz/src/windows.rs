//! Packets of accesses to a window as no origin sends them: each does what it says, or is refused, or makes no sense;
//! no byte beside the window changes.

use limosa_rma::perform_access;

const MARGIN: usize = 64;
const MARK: u8 = 0xa5;
const MOST: usize = 512;

/// The first byte says how the window lies, the second how long it is; then packets, each behind two bytes with its
/// length.
pub fn target(data: &[u8]) {
    let Some((&[shift, len], mut rest)) = data.split_first_chunk::<2>() else { return };
    let (start, len) = (MARGIN + usize::from(shift) % 16, usize::from(len) * MOST / 256);
    let mut block = vec![MARK; start + len + MARGIN];
    while let Some((length, more)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(more.len());
        let (packet, left) = more.split_at(length);
        rest = left;
        if let Some(Ok(answer)) = perform_access(&mut block[start..start + len], packet) {
            assert!(answer.len() <= len.max(1) * packet.len(), "an answer longer than what was asked for");
        }
        let beside = block[..start].iter().chain(&block[start + len..]);
        assert!(beside.into_iter().all(|byte| *byte == MARK), "a byte beside the window was written");
    }
}
