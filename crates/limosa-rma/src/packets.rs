//! Accesses in packets: origin side.
//!
//! An access is sent in parts that fit a packet each. Parts that only write need no answer, but every [`ASK_EVERY`]th
//! requests one. This bounds the packets in flight: a thread that would exceed the bound waits. The first part after a
//! flush also requests an answer; if it is the only one, the next flush then need not send anything. Answers of a
//! target arrive in the order of the requests, so an answer confirms all earlier packets.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use limosa_mpi::Region;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::error::{Result, error_of};
use limosa_mpi::fail;
use limosa_mpi::observe::Waiting;
use limosa_p2p::{Meta, Urgency};

use crate::notices::Notices;
use crate::station::{AwaitedAnswers, Pending, StationState};
use crate::window::Window;
use crate::wire::{self, Action, HEADER, Header, PIECE, PieceRange};

/// Every so many packets without an answer, one requests it.
const ASK_EVERY: u32 = 8;
/// Maximum number of pending answers of a target.
const MAX_PENDING_ANSWERS: u64 = 16;

/// Location of an access at a target.
pub(crate) struct Parcel {
    pub target: u32,
    /// Region with offsets in the window instead of addresses.
    pub places: Region,
    pub bytes: usize,
    /// Bytes of an indivisible group.
    pub unit: usize,
    pub awaited: Option<Arc<AwaitedAnswers>>,
}

impl Window {
    /// Sends an access in parts. `operands`: data to send; `result`: destination of the answers.
    pub(crate) fn send_parts(
        &self,
        parcel: Parcel,
        header: &dyn Fn(usize) -> Header,
        operands: Option<&Region>,
        result: Option<&Region>,
    ) -> Result<()> {
        let mut done = 0;
        while done < parcel.bytes {
            let (places, len) = part(&parcel, done, self.station.max_packet);
            if len == 0 {
                fail!(MPI_ERR_INTERN, "an element of {} bytes does not fit a packet", parcel.unit);
            }
            let mut packet = Vec::with_capacity(HEADER + places.len() * PIECE + len);
            header(places.len()).write(&mut packet);
            wire::write_places(&mut packet, &places);
            if let Some(operands) = operands {
                let start = packet.len();
                packet.resize(start + len, 0);
                operands.read(done, &mut packet[start..]);
            }
            let into = result.map(|result| (result, done, len));
            self.send_access(parcel.target, &packet, into, parcel.awaited.as_ref())?;
            done += len;
        }
        Ok(())
    }

    /// Sends a compare-and-swap.
    pub(crate) fn send_swap(
        &self,
        target: u32,
        place: PieceRange,
        element: &Datatype,
        operands: &[u8],
        result: &Region,
    ) -> Result<()> {
        let mut packet = Vec::new();
        Header::typed(Action::Swap, None, element, 1).write(&mut packet);
        wire::write_places(&mut packet, &[place]);
        packet.extend_from_slice(operands);
        self.send_access(target, &packet, Some((result, 0, place.1 as usize)), None)
    }

    /// Sends a part; `into`: destination of its answer, offset in it, and length.
    fn send_access(
        &self,
        target: u32,
        packet: &[u8],
        into: Option<(&Region, usize, usize)>,
        awaited: Option<&Arc<AwaitedAnswers>>,
    ) -> Result<()> {
        let place = target as usize;
        self.wait(Some(target), &|state| {
            let link = &state.links[place];
            link.asked - link.answered < MAX_PENDING_ANSWERS
        })?;
        let number = {
            let state = &mut *self.station.state.lock();
            let link = &mut state.links[place];
            link.silent += 1;
            link.sent = link.sent.wrapping_add(1);
            let is_first = self.gates.is_locked(place) && !std::mem::replace(&mut link.is_used, true);
            if into.is_none() && !is_first && link.silent < ASK_EVERY {
                0
            } else {
                let (region, offset, len) =
                    into.map_or((Region::empty(), 0, 0), |(region, offset, len)| (region.clone(), offset, len));
                if let Some(awaited) = awaited {
                    awaited.expect();
                }
                ask(state, Pending { target, into: Some(region), offset, len, awaited: awaited.cloned() })
            }
        };
        let urgency = if number == 0 { Urgency::Normal } else { Urgency::Urgent };
        self.send(target, wire::ACCESS, number, packet, urgency)
    }

    /// Waits until the target has executed everything that was sent to it.
    pub(crate) fn flush_packets(&self, target: u32) -> Result<()> {
        let place = target as usize;
        let number = {
            let state = &mut *self.station.state.lock();
            let link = &mut state.links[place];
            link.is_used = false;
            let is_silent = link.silent > 0;
            let pending = Pending { target, into: None, offset: 0, len: 0, awaited: None };
            if is_silent { ask(state, pending) } else { 0 }
        };
        if number != 0 {
            self.send(target, wire::FLUSH, number, &[], Urgency::Urgent)?;
        }
        let asked = self.station.state.lock().links[place].asked;
        self.wait(Some(target), &|state| state.links[place].answered >= asked)?;
        match self.station.state.lock().links[place].refusal.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Returns whether a short write can be sent by a packet without an answer: the target ends the epoch too, and
    /// before that executes everything sent to it ([`Window::await_packets`]).
    pub(crate) fn can_send_silently(&self, target: u32) -> bool {
        let place = target as usize;
        self.counts_packets
            && self.gates.is_active(place)
            && self.station.state.lock().links[place].silent + 1 < ASK_EVERY
    }

    /// Completes the pending answers of a target, before the end of an epoch that the target ends too, and announces
    /// the number of packets sent to it. Returns whether there were any since the last time.
    pub(crate) fn announce_packets(&self, notices: &Notices, target: u32) -> Result<bool> {
        let place = target as usize;
        self.wait(Some(target), &|state| state.links[place].results == 0)?;
        let link = &mut self.station.state.lock().links[place];
        let was_used = std::mem::replace(&mut link.announced, link.sent) != link.sent;
        notices.announce_packets(target, link.sent);
        match link.refusal.take() {
            Some(error) => Err(error),
            None => Ok(was_used),
        }
    }

    /// Executes, at the end of an exposure epoch, all accesses that these origins have sent.
    pub(crate) fn await_packets(&self, notices: &Notices, origins: &[u32]) -> Result<()> {
        let are_done = || origins.iter().all(|origin| self.are_packets_done(notices, *origin));
        if are_done() {
            return Ok(());
        }
        self.comm.engine().poll();
        self.wait_until(None, &are_done)
    }

    /// Returns whether all announced accesses of a member have been executed.
    pub(crate) fn are_packets_done(&self, notices: &Notices, origin: u32) -> bool {
        let done = self.station.done[origin as usize].load(Ordering::Acquire);
        // It may have sent more since.
        done.wrapping_sub(notices.announced_packets(origin)) as i32 >= 0
    }

    /// Forgets the unanswered packets to these targets: their synchronisation implies that they have been executed.
    pub(crate) fn forget_silent(&self, targets: impl Iterator<Item = u32>) {
        let state = &mut *self.station.state.lock();
        targets.for_each(|target| state.links[target as usize].silent = 0);
    }

    /// Sends a packet to another member.
    pub(crate) fn send(&self, target: u32, kind: u8, word: u64, data: &[u8], urgency: Urgency) -> Result<()> {
        let meta = Meta { kind, words: [self.station.context, word] };
        let peer = self.targets[target as usize].peer;
        self.comm.engine().send_packet(peer, meta, data, urgency).map_err(error_of)
    }

    /// Waits until a condition on the state holds that a member, or all, bring about. The condition must not change the
    /// state: it may be evaluated repeatedly.
    pub(crate) fn wait(&self, target: Option<u32>, condition: &dyn Fn(&StationState) -> bool) -> Result<()> {
        self.wait_until(target, &|| condition(&self.station.state.lock()))
    }

    /// Waits like [`Window::wait`], for a condition outside the state.
    pub(crate) fn wait_until(&self, target: Option<u32>, holds: &dyn Fn() -> bool) -> Result<()> {
        if holds() {
            return Ok(());
        }
        let mut lost = None;
        self.comm.engine().block_on(
            &mut |view| {
                lost = if holds() { None } else { view.lost_group(self.comm.coll_context()) };
                lost.is_some() || holds()
            },
            &Waiting::window(&self.comm, target.map(|rank| rank as i32)),
        )?;
        match lost {
            None => Ok(()),
            Some(failure) => {
                self.station.state.lock().withdraw();
                Err(error_of(failure))
            }
        }
    }
}

/// Requests an answer. Returns its number.
fn ask(state: &mut StationState, pending: Pending) -> u64 {
    let link = &mut state.links[pending.target as usize];
    link.silent = 0;
    link.asked += 1;
    link.results += u32::from(pending.len > 0);
    state.answers += 1;
    state.pending.insert(state.answers, pending);
    state.answers
}

/// Returns the places of the next part of a parcel, and its length in bytes.
fn part(parcel: &Parcel, done: usize, max_packet: usize) -> (Vec<PieceRange>, usize) {
    let (mut places, mut len, mut room) = (Vec::<PieceRange>::new(), 0, max_packet - HEADER);
    parcel.places.pieces(done, parcel.bytes - done, &mut |at, n| {
        if room <= PIECE {
            return false;
        }
        let taken = n.min(room - PIECE);
        places.push((at as u64, taken as u64));
        room -= PIECE + taken;
        len += taken;
        taken == n
    });
    let mut excess = if done + len == parcel.bytes { 0 } else { len % parcel.unit };
    len -= excess;
    while excess > 0 {
        let Some((_, last)) = places.last_mut() else { break };
        let cut = excess.min(*last as usize);
        *last -= cut as u64;
        excess -= cut;
        if *last == 0 {
            places.pop();
        }
    }
    (places, len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use limosa_mpi::consts::{MPI_DOUBLE_INT, MPI_INT};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_cover_everything_in_order_and_part_no_element(
            count in 1usize..200, gap in 0i64..3, limit in 120usize..2000, pairs in any::<bool>(), start in 0usize..100
        ) {
            let old = Datatype::named(if pairs { MPI_DOUBLE_INT } else { MPI_INT });
            let datatype = Datatype::vector(2, 1, 1 + gap, &old).unwrap();
            datatype.commit();
            // SAFETY: nothing is accessed.
            let places = unsafe { datatype.region(start as *mut u8, count) };
            let parcel = Parcel { target: 0, bytes: places.len(), places, unit: old.size() as usize, awaited: None };
            let (mut done, mut bytes) = (0, Vec::new());
            while done < parcel.bytes {
                let (places, len) = part(&parcel, done, limit);
                prop_assert!(len > 0 && len.is_multiple_of(parcel.unit));
                prop_assert!(HEADER + places.len() * PIECE + len <= limit);
                prop_assert_eq!(places.iter().map(|(_, len)| *len as usize).sum::<usize>(), len);
                bytes.extend(places.iter().flat_map(|&(at, len)| at..at + len));
                done += len;
            }
            let mut expected = Vec::new();
            parcel.places.pieces(0, parcel.bytes, &mut |at, len| {
                expected.extend(at as u64..at as u64 + len as u64);
                true
            });
            prop_assert_eq!(bytes, expected);
        }
    }
}
