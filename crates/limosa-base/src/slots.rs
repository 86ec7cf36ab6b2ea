//! A slot segment: shared memory through which the members of a group perform collective calls, one after the other.
//!
//! ```text
//!   Common                      users, sleepers, counts of arrivals and of pieces
//!   Member 0 | 1 | ... | n      notes, and marks of how far the member has come; member n is the group itself
//!   room of member 0 | ... | n  SLOTS slots each, for what does not fit a note
//! ```
//!
//! Calls are numbered from 1, by all members alike. In a call a member may post one note: one cache line with some
//! bytes, the *signature* of the call (what it is, as the layer above encodes it), a tag, and the call's number, which is
//! written last. The note of the group is posted by one member on behalf of all.
//!
//! Contract
//! - A member performs its calls in order and marks each as finished ([`SlotSegment::finish`]): from then on it reads
//!   no note or slot of that call.
//! - The note of call `t` takes the place of that of `t - NOTES`, a slot that of `t - SLOTS`: who writes one has seen
//!   before that all members have finished that call ([`Awaited::AllFinished`]).
//! - A member may share further memory of its own ([`SlotSegment::share_area`]); this module does not know how it is
//!   used.
//! - Marks only grow, and [`Awaited`] conditions ask whether a mark has come so far: once such a condition holds, it
//!   holds for ever, also if a member has left a call out.
//! - Within a call a member may say how far it has come in steps ([`SlotSegment::advance`]), and somebody how far all
//!   have come together.
//! - Cursors and counts belong to a call: the first member to use one in a later call resets it, and a member that
//!   comes too late finds it exhausted.
//! - Any member may take the next piece of a call's work; each piece is taken once. The member that counts the last
//!   piece as done sees all that the others did, and whether a piece has failed; it tells all members by the note of
//!   the group.
//!
//! Giving up. A member whose call has failed takes its note back ([`SlotSegment::withdraw`]) before memory that the
//! note speaks of is used for something else. Whoever is going to copy there says so ([`SlotSegment::begin_copying`],
//! with a [`fence::light`]) and then looks whether the note still stands; who has taken it back executes
//! [`fence::heavy`] and waits for those who are copying.
//!
//! Declaring. A member that has waited for long declares the number and the signature of its call
//! ([`SlotSegment::declare`]), with a full fence, and then looks at the notes and declarations of the others. So of two
//! members that declare, at least one sees the other's declaration.
//!
//! Sleeping. A member that is going to sleep says so and what it awaits ([`SlotSegment::begin_sleep`]), executes
//! [`fence::heavy`], and sleeps only if its condition still does not hold. A member that has changed something asks
//! [`SlotSegment::anybody_asleep`], which has a [`fence::light`] in front. So of the two at least one sees what the
//! other has done; if it is the latter, it executes a full fence and rings those whose condition holds
//! ([`SlotSegment::for_each_wakeable`]). A condition may need the changes of several members. Of those that the sleeper
//! did not see, each member has seen the sleeper; of their full fences one is the last, and its member sees the changes
//! of all. Changes that the sleeper did see, or would have seen had it looked, were visible to all before its look, and
//! so before the changes that it did not see. Hence somebody rings, and nobody rings without need, except that two who
//! change something at the same time may both ring.
//!
//! A member reads what other processes have written: tags and bytes are plain numbers, to be checked before use.

use crate::fence;
#[cfg(not(loom))]
use crate::segment::{Foreign, Shared};
use crate::sync::{AtomicU32, AtomicU64, Ordering, UnsafeCell, fence as full_fence};
use std::ptr::NonNull;

/// Notes of a member that exist at a time.
pub const NOTES: u64 = if cfg!(loom) { 2 } else { 64 };
/// Slots of a member.
pub const SLOTS: u64 = if cfg!(loom) { 1 } else { 8 };
/// Bytes of a note beside its signature and its tag.
pub const BODY_BYTES: usize = 48;
/// The bytes of a note.
pub type Body = [u64; BODY_BYTES / 8];
/// Most members of a slot segment.
pub const MAX_MEMBERS: usize = (1 << MEMBER_BITS) - 1;
/// Most steps in a call.
pub const MAX_STEPS: u64 = (1 << STEP_BITS) - 1;

const TAG_BITS: u32 = 16;
/// The tag of a note that was taken back; no other has it.
pub const WITHDRAWN: u16 = u16::MAX;
const MEMBER_BITS: u32 = 16;
const STEP_BITS: u32 = 20;
const COUNT_BITS: u32 = 24;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// One note. The body comes first, so that it is aligned for everything.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
struct Note {
    body: UnsafeCell<Body>,
    signature: AtomicU64,
    flag: AtomicU64,
}

/// A word on a line pair of its own.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
struct Mark(AtomicU64);

/// Says what a sleeping member awaits.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
struct Wish {
    /// 0: it does not sleep.
    what: AtomicU64,
    value: AtomicU64,
}

/// Says in which call a waiting member is.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
struct Declaration {
    /// 0: it does not say.
    number: AtomicU64,
    signature: AtomicU64,
}

/// What all members of a group count in a call.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
struct Counts {
    /// Members that have arrived.
    arrived: AtomicU64,
    /// Pieces of the work that somebody has taken.
    taken: AtomicU64,
    /// Pieces that are done.
    done: AtomicU64,
    /// The last call of which a piece has failed, whether because somebody has given up, and at which member.
    failed: AtomicU64,
}

/// A transfer that two members may work at together.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
struct Shares {
    cursor: AtomicU64,
    copied: AtomicU64,
    complete: AtomicU64,
}

#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
struct Member {
    notes: [Note; NOTES as usize],
    finished: Mark,
    progress: Mark,
    area: Mark,
    copying: Mark,
    attended: Mark,
    wish: Wish,
    request: Wish,
    declaration: Declaration,
    shares: Shares,
}

/// What is there once.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
pub struct Common {
    users: AtomicU32,
    sleepers: Mark,
    room_wanted: Mark,
    counts: [Counts; NOTES as usize],
}

// SAFETY: integers, for which any bytes are valid; access is synchronised as the module says, and a peer that breaks
// the rules can make us read torn bytes, which are checked as untrusted input.
#[cfg(not(loom))]
unsafe impl Foreign for Common {}

/// Where a slot segment lies.
#[cfg(not(loom))]
pub type Memory = Shared<Common>;
/// Where a slot segment lies in a model: loom's atomics are no zeroed bytes.
#[cfg(loom)]
pub type Memory = std::sync::Arc<model::Heap>;

/// What a member may wait for. Where a member is named, the number of members stands for the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// The note of a member (or of the group) for a call.
    Note(usize, u64),
    /// The notes of all members for a call.
    AllNotes(u64),
    /// That all members have finished a call.
    AllFinished(u64),
    /// That the transfer of a member in a call is complete.
    Complete(usize, u64),
    /// That a member has come to a step.
    Progress(usize, Progress),
    /// That all members have come to a step.
    AllProgress(Progress),
    /// The notes of the members below this one for a call.
    NotesBelow(usize, u64),
    /// Any change at all.
    Anything,
    /// That a member has finished a call.
    Finished(usize, u64),
}

/// A piece of the work of a call that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedPiece {
    /// The member at which it has failed.
    pub member: usize,
    /// A member had given up, or had died.
    pub given_up: bool,
}

/// A step of a call. Steps of later calls come later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Progress(u64);

impl Progress {
    /// Progress `step`, at most [`MAX_STEPS`], of call `number`.
    #[inline]
    pub fn new(number: u64, step: u64) -> Progress {
        debug_assert!(step <= MAX_STEPS);
        Progress(number << STEP_BITS | step)
    }
}

impl Awaited {
    fn encode(self) -> (u64, u64) {
        let (kind, member, value) = match self {
            Awaited::Note(member, number) => (1, member, number),
            Awaited::AllNotes(number) => (2, 0, number),
            Awaited::AllFinished(number) => (3, 0, number),
            Awaited::Complete(member, number) => (4, member, number),
            Awaited::Progress(member, step) => (5, member, step.0),
            Awaited::AllProgress(step) => (6, 0, step.0),
            Awaited::NotesBelow(member, number) => (7, member, number),
            Awaited::Anything => (8, 0, 0),
            Awaited::Finished(member, number) => (9, member, number),
        };
        (kind << MEMBER_BITS | member as u64, value)
    }

    fn decode(what: u64, value: u64) -> Option<Awaited> {
        let member = what as usize & MAX_MEMBERS;
        match what >> MEMBER_BITS {
            1 => Some(Awaited::Note(member, value)),
            2 => Some(Awaited::AllNotes(value)),
            3 => Some(Awaited::AllFinished(value)),
            4 => Some(Awaited::Complete(member, value)),
            5 => Some(Awaited::Progress(member, Progress(value))),
            6 => Some(Awaited::AllProgress(Progress(value))),
            7 => Some(Awaited::NotesBelow(member, value)),
            8 => Some(Awaited::Anything),
            9 => Some(Awaited::Finished(member, value)),
            _ => None,
        }
    }

    /// The member that is named.
    fn member(self) -> usize {
        match self {
            Awaited::Note(member, _)
            | Awaited::Complete(member, _)
            | Awaited::Progress(member, _)
            | Awaited::NotesBelow(member, _)
            | Awaited::Finished(member, _) => member,
            Awaited::AllNotes(_) | Awaited::AllFinished(_) | Awaited::AllProgress(_) | Awaited::Anything => 0,
        }
    }
}

/// A member's view of the slots.
pub struct SlotSegment {
    memory: Memory,
    members: NonNull<Member>,
    size: usize,
    me: usize,
    slot_bytes: usize,
}

// SAFETY: all access to the shared memory is synchronised by the rules of the module, whichever thread does it.
unsafe impl Send for SlotSegment {}
// SAFETY: as above.
unsafe impl Sync for SlotSegment {}

impl SlotSegment {
    /// Bytes of shared memory that a slot segment takes.
    pub fn bytes(size: usize, slot_bytes: usize) -> usize {
        size_of::<Common>() + (size + 1) * (size_of::<Member>() + SLOTS as usize * slot_bytes)
    }

    /// Member `me` of `size` enters the slots in `memory`, which was zeroed once.
    ///
    /// # Panics
    /// If the memory is too small, there are too many members, or slots would not begin on cache lines.
    #[cfg(not(loom))]
    pub fn new(memory: Memory, size: usize, me: usize, slot_bytes: usize) -> SlotSegment {
        assert!(
            me < size && size < MAX_MEMBERS && slot_bytes.is_multiple_of(64),
            "a slots of {size} members, slots of {slot_bytes} bytes"
        );
        assert!(
            memory.mapping().len() >= SlotSegment::bytes(size, slot_bytes),
            "the memory is too small for the slots"
        );
        let members = memory.mapping().address(size_of::<Common>()).cast();
        let members = NonNull::new(members).expect("a mapping is nowhere near address 0");
        SlotSegment { memory, members, size, me, slot_bytes }
    }

    /// Number of members.
    #[inline]
    pub fn size(&self) -> usize {
        self.size
    }

    /// This member.
    #[inline]
    pub fn me(&self) -> usize {
        self.me
    }

    /// Bytes of a slot.
    #[inline]
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    #[inline(always)]
    fn member(&self, member: usize) -> &Member {
        assert!(member <= self.size, "no such member of the slots");
        // SAFETY: inside the mapping by the check here and the one in `new`; any bytes are a valid member.
        unsafe { self.members.add(member).as_ref() }
    }

    #[inline(always)]
    fn note(&self, member: usize, number: u64) -> &Note {
        &self.member(member).notes[(number % NOTES) as usize]
    }

    // ---- users -----------------------------------------------------------------------------------------------------

    /// The member that made the memory says that all are going to use it, before it tells them where it is.
    pub fn open(&self) {
        self.memory.users.store(self.size as u32, Ordering::Relaxed);
    }

    /// This member uses the slots no more; true for the last one, who frees the memory.
    pub fn leave(&self) -> bool {
        self.memory.users.fetch_sub(1, Ordering::AcqRel) == 1
    }

    // ---- notes and slots -------------------------------------------------------------------------------------------

    /// Posts this member's note.
    #[inline]
    pub fn post(&self, number: u64, signature: u64, tag: u16, body: &Body) {
        self.post_as(self.me, (number, signature), tag, |place| {
            // SAFETY: by the contract of `post_as`.
            unsafe { *place = *body }
        });
    }

    /// Posts this member's note, whose bytes `fill` writes where they are to be. The others may be anything.
    #[inline(always)]
    pub fn post_filled(&self, number: u64, signature: u64, tag: u16, fill: impl FnOnce(*mut Body)) {
        self.post_as(self.me, (number, signature), tag, fill);
    }

    /// Posts the note of the group, on behalf of all.
    #[inline]
    pub fn post_for_all(&self, number: u64, signature: u64, tag: u16, body: &Body) {
        self.post_as(self.size, (number, signature), tag, |place| {
            // SAFETY: by the contract of `post_as`.
            unsafe { *place = *body }
        });
    }

    /// `fill` has the bytes of the note to itself: by the contract of the module nobody reads this note any more, or
    /// before the flag below.
    #[inline(always)]
    fn post_as(&self, member: usize, (number, signature): (u64, u64), tag: u16, fill: impl FnOnce(*mut Body)) {
        let note = self.note(member, number);
        note.body.with_mut(fill);
        note.signature.store(signature, Ordering::Relaxed);
        // Pairs with the acquire load in `tag_of`, and that in `holds`.
        note.flag.store(number << TAG_BITS | u64::from(tag), Ordering::Release);
    }

    /// The tag of a note, if it was posted. `member` may be the number of members, which means the group.
    #[inline]
    pub fn tag_of(&self, member: usize, number: u64) -> Option<u16> {
        let flag = self.note(member, number).flag.load(Ordering::Acquire);
        (flag >> TAG_BITS == number).then_some(flag as u16)
    }

    /// Whether the notes of all members for a call are there and carry this signature.
    #[inline]
    pub fn all_noted(&self, number: u64, signature: u64) -> bool {
        (0..self.size).all(|member| {
            let note = self.note(member, number);
            note.flag.load(Ordering::Acquire) >> TAG_BITS == number
                && note.signature.load(Ordering::Relaxed) == signature
        })
    }

    /// The signature in a note, once [`SlotSegment::tag_of`] has found the note; 0 if it is being taken back.
    #[inline]
    pub fn signature_of(&self, member: usize, number: u64) -> u64 {
        self.note(member, number).signature.load(Ordering::Relaxed)
    }

    /// Where the bytes of a note are: readable until this member finishes the call, once [`SlotSegment::tag_of`] has
    /// found the note.
    #[inline]
    pub fn body_of(&self, member: usize, number: u64) -> *const Body {
        self.note(member, number).body.with(|body| body)
    }

    /// Begins to fetch a note that may be there already.
    #[inline]
    pub fn prefetch_note(&self, member: usize, number: u64) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: no memory is accessed as far as the language is concerned.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(self.note(member, number)).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (member, number);
    }

    /// Where a member's slot for a call is: [`SlotSegment::slot_bytes`] bytes, on a cache line.
    #[cfg(not(loom))]
    #[inline]
    pub fn slot_of(&self, member: usize, number: u64) -> *mut u8 {
        let slot = member * SLOTS as usize + (number % SLOTS) as usize;
        self.memory
            .mapping()
            .address(size_of::<Common>() + (self.size + 1) * size_of::<Member>() + slot * self.slot_bytes)
    }

    // ---- marks -----------------------------------------------------------------------------------------------------

    /// This member has finished a call and all before it.
    #[inline]
    pub fn finish(&self, number: u64) {
        // Pairs with the acquire loads in `least_finished` and `holds`: what was read in the call has been read.
        self.member(self.me).finished.0.store(number, Ordering::Release);
    }

    /// This member has come to a step of its call.
    #[inline]
    pub fn advance(&self, step: Progress) {
        // Pairs with the acquire loads in `progress_of` and `holds`, and so below.
        self.member(self.me).progress.0.store(step.0, Ordering::Release);
    }

    /// All together have come to a step.
    #[inline]
    pub fn advance_all(&self, step: Progress) {
        self.member(self.size).progress.0.store(step.0, Ordering::Release);
    }

    /// How far a member, or the group, has come.
    pub fn progress_of(&self, member: usize) -> Progress {
        Progress(self.member(member).progress.0.load(Ordering::Acquire))
    }

    /// The call that all members have finished, and all before it.
    pub fn least_finished(&self) -> u64 {
        (0..self.size).map(|member| self.member(member).finished.0.load(Ordering::Acquire)).min().unwrap_or(0)
    }

    /// Whether a condition holds.
    #[inline]
    pub fn holds(&self, awaited: Awaited) -> bool {
        let posted = |member, number| self.note(member, number).flag.load(Ordering::Acquire) >> TAG_BITS >= number;
        match awaited {
            Awaited::Note(member, number) => posted(member, number),
            Awaited::AllNotes(number) => (0..self.size).all(|member| posted(member, number)),
            Awaited::AllFinished(number) => {
                (0..self.size).all(|member| self.member(member).finished.0.load(Ordering::Acquire) >= number)
            }
            Awaited::Complete(member, number) => self.member(member).shares.complete.load(Ordering::Acquire) >= number,
            Awaited::Progress(member, step) => self.progress_of(member) >= step,
            Awaited::AllProgress(step) => (0..self.size).all(|member| self.progress_of(member) >= step),
            Awaited::NotesBelow(end, number) => (0..end).all(|member| posted(member, number)),
            Awaited::Anything => true,
            Awaited::Finished(member, number) => self.has_finished(member, number),
        }
    }

    // ---- areas of members' own ------------------------------------------------------------------------------------

    /// This member has memory of its own to share, at `place`. Who reads a note that it posts after this finds it.
    pub fn share_area(&self, place: u64) {
        self.member(self.me).area.0.store(place + 1, Ordering::Release);
    }

    /// Where the memory is that a member shares, if it does.
    pub fn area_of(&self, member: usize) -> Option<u64> {
        self.member(member).area.0.load(Ordering::Acquire).checked_sub(1)
    }

    // ---- giving up -------------------------------------------------------------------------------------------------

    /// This member takes back its note of a call, if it has posted it: what the note says of memory is not true any
    /// more. Who does not see that yet is seen by [`SlotSegment::is_copying`] from now on.
    pub fn withdraw(&self, number: u64) {
        let note = self.note(self.me, number);
        if note.flag.load(Ordering::Relaxed) >> TAG_BITS == number {
            note.signature.store(0, Ordering::Relaxed);
            note.flag.store(number << TAG_BITS | u64::from(WITHDRAWN), Ordering::Release);
        }
        fence::heavy();
    }

    // ---- declaring -------------------------------------------------------------------------------------------------

    /// This member waits in a call with this signature.
    pub fn declare(&self, number: u64, signature: u64) {
        let declaration = &self.member(self.me).declaration;
        declaration.signature.store(signature, Ordering::Relaxed);
        declaration.number.store(number, Ordering::Release);
        full_fence(Ordering::SeqCst);
    }

    /// This member waits no more.
    pub fn end_declaration(&self) {
        self.member(self.me).declaration.number.store(0, Ordering::Release);
    }

    /// What a waiting member has declared: the number and the signature of its call.
    pub fn declared(&self, member: usize) -> Option<(u64, u64)> {
        let declaration = &self.member(member).declaration;
        let number = declaration.number.load(Ordering::Acquire);
        let signature = declaration.signature.load(Ordering::Acquire);
        // Otherwise it may be the signature of a later call.
        (number != 0 && declaration.number.load(Ordering::Relaxed) == number).then_some((number, signature))
    }

    /// What a member, or the group, says of a call by its note, if the note is there.
    pub fn noted(&self, member: usize, number: u64) -> Option<u64> {
        let signature = self.tag_of(member, number).map(|_| self.signature_of(member, number))?;
        // Otherwise it may be that of a later call.
        full_fence(Ordering::Acquire);
        (self.tag_of(member, number).is_some() && signature != 0).then_some(signature)
    }

    /// This member is going to copy to or from another one's memory in a call. It then asks whether that one has
    /// withdrawn.
    #[inline]
    pub fn begin_copying(&self, number: u64) {
        self.member(self.me).copying.0.store(number, Ordering::Release);
        fence::light();
    }

    /// It has done so.
    #[inline]
    pub fn end_copying(&self) {
        self.member(self.me).copying.0.store(0, Ordering::Release);
    }

    /// Whether a member is copying in a call. After [`SlotSegment::withdraw`].
    pub fn is_copying(&self, member: usize, number: u64) -> bool {
        self.member(member).copying.0.load(Ordering::Acquire) == number
    }

    /// Whether a member has taken its note of a call back.
    #[inline]
    pub fn is_withdrawn(&self, member: usize, number: u64) -> bool {
        self.tag_of(member, number) == Some(WITHDRAWN)
    }

    /// Says whether a thread of this member waits, and does what it can of any call meanwhile. A hint: nobody relies on
    /// it.
    #[inline]
    pub fn attend(&self, attends: bool) {
        self.member(self.me).attended.0.store(u64::from(attends), Ordering::Relaxed);
    }

    /// Whether a thread of a member waits.
    pub fn is_attending(&self, member: usize) -> bool {
        self.member(member).attended.0.load(Ordering::Relaxed) != 0
    }

    // ---- counts ----------------------------------------------------------------------------------------------------

    #[inline]
    fn counts(&self, number: u64) -> &Counts {
        &self.memory.counts[(number % NOTES) as usize]
    }

    /// Counts this member as arrived in a call; returns how many have.
    #[inline]
    pub fn arrive(&self, number: u64) -> u64 {
        // Acquire and release: the last to arrive has seen what all others did before.
        take(&self.counts(number).arrived, number).map_or(0, |count| count + 1)
    }

    /// Takes the next piece of the work of a call, from 0; `None` if `limit` pieces have been taken, or the call is
    /// over.
    #[inline]
    pub fn take_piece(&self, number: u64, limit: u64) -> Option<u64> {
        take_below(&self.counts(number).taken, number, limit)
    }

    /// Whether a piece is left to be taken, of `limit` pieces of the work of a call.
    #[inline]
    pub fn has_pieces(&self, number: u64, limit: u64) -> bool {
        count_of(&self.counts(number).taken, number).is_some_and(|taken| taken < limit)
    }

    /// Counts a piece of the work of a call as done; returns how many are.
    #[inline]
    pub fn count_piece(&self, number: u64) -> u64 {
        // Acquire and release: who counts the last piece has seen what was done for the others.
        take(&self.counts(number).done, number).map_or(0, |count| count + 1)
    }

    /// A piece of the work of a call has failed at this member, which is going to count it as done. `given_up`: because
    /// a member has given up, or has died.
    #[cold]
    pub fn fail_piece(&self, number: u64, given_up: bool) {
        let failed = number << (MEMBER_BITS + 1) | u64::from(given_up) << MEMBER_BITS | self.me as u64;
        // Of several failures the one counts that all members must hear of.
        self.counts(number).failed.fetch_max(failed, Ordering::Relaxed);
    }

    /// How a piece of a call has failed, if any has; to be asked when all pieces are known to be done.
    pub fn failed_piece(&self, number: u64) -> Option<FailedPiece> {
        let failed = self.counts(number).failed.load(Ordering::Relaxed);
        let member = failed as usize & MAX_MEMBERS;
        let is_of_call = failed >> (MEMBER_BITS + 1) == number && failed != 0 && member < self.size;
        is_of_call.then_some(FailedPiece { member, given_up: failed >> MEMBER_BITS & 1 != 0 })
    }

    /// Takes the next piece of a member's transfer in a call, from 0; `None` if `all` have been taken, or the call is
    /// over for that member.
    pub fn take_share(&self, member: usize, number: u64, all: u64) -> Option<u64> {
        take_below(&self.member(member).shares.cursor, number, all)
    }

    /// Counts a piece of a member's transfer as copied; with the last of `all` the transfer is complete, and true is
    /// returned.
    pub fn count_share(&self, member: usize, number: u64, all: u64) -> bool {
        let shares = &self.member(member).shares;
        let last = take(&shares.copied, number).is_some_and(|count| count + 1 >= all);
        if last {
            // Pairs with the acquire load in `holds`.
            shares.complete.store(number, Ordering::Release);
        }
        last
    }

    // ---- want of room ----------------------------------------------------------------------------------------------

    /// This member cannot post for want of room, and others should finish what they can; or it can again. A heavy fence
    /// must follow.
    pub fn ask_for_room(&self, is_room_wanted: bool) {
        if is_room_wanted {
            self.memory.room_wanted.0.fetch_add(1, Ordering::AcqRel);
        } else {
            self.memory.room_wanted.0.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Whether a member cannot post for want of room; after a change of one's own.
    #[inline]
    pub fn is_room_wanted(&self) -> bool {
        fence::light();
        self.memory.room_wanted.0.load(Ordering::Relaxed) != 0
    }

    /// Whether a member has finished a call.
    pub fn has_finished(&self, member: usize, number: u64) -> bool {
        self.member(member).finished.0.load(Ordering::Acquire) >= number
    }

    // ---- sleeping --------------------------------------------------------------------------------------------------

    /// This member is going to sleep until a condition holds. A heavy fence and another look at the condition must
    /// follow.
    pub fn begin_sleep(&self, awaited: Awaited) {
        let (what, value) = awaited.encode();
        let wish = &self.member(self.me).wish;
        wish.value.store(value, Ordering::Relaxed);
        wish.what.store(what, Ordering::Release);
        self.memory.sleepers.0.fetch_add(1, Ordering::AcqRel);
    }

    /// This member sleeps no more.
    pub fn end_sleep(&self) {
        self.memory.sleepers.0.fetch_sub(1, Ordering::AcqRel);
        self.member(self.me).wish.what.store(0, Ordering::Release);
    }

    /// A member that lies down already, for another thread of it, awaits whatever happens.
    pub fn await_anything(&self) {
        self.member(self.me).wish.what.store(Awaited::Anything.encode().0, Ordering::Release);
    }

    /// This member wants to hear of a condition though it does not sleep, or not any more; a heavy fence and another
    /// look must follow.
    pub fn request(&self, awaited: Option<Awaited>) {
        let request = &self.member(self.me).request;
        let (what, value) = awaited.map_or((0, 0), Awaited::encode);
        request.value.store(value, Ordering::Relaxed);
        match (request.what.swap(what, Ordering::AcqRel) != 0, what != 0) {
            (false, true) => _ = self.memory.sleepers.0.fetch_add(1, Ordering::AcqRel),
            (true, false) => _ = self.memory.sleepers.0.fetch_sub(1, Ordering::AcqRel),
            _ => {}
        }
    }

    /// Whether there is anybody to be woken, after a change.
    #[inline]
    pub fn anybody_asleep(&self) -> bool {
        fence::light();
        self.memory.sleepers.0.load(Ordering::Relaxed) != 0
    }

    /// Calls `wake` for each sleeping member whose condition holds now.
    #[cold]
    pub fn for_each_wakeable(&self, wake: impl FnMut(usize)) {
        full_fence(Ordering::SeqCst);
        self.for_each_granted(|member| &member.wish, wake);
    }

    /// Calls `tell` for each other member whose [request](SlotSegment::request) holds now. After
    /// [`SlotSegment::for_each_wakeable`], which has the fence.
    #[cold]
    pub fn for_each_requester(&self, tell: impl FnMut(usize)) {
        self.for_each_granted(|member| &member.request, tell);
    }

    fn for_each_granted(&self, wish: impl Fn(&Member) -> &Wish, mut then: impl FnMut(usize)) {
        for member in (0..self.size).filter(|member| *member != self.me) {
            let wish = wish(self.member(member));
            let what = wish.what.load(Ordering::Acquire);
            // A member that does not exist is nothing that anybody could wait for.
            let awaited = Awaited::decode(what, wish.value.load(Ordering::Relaxed))
                .filter(|awaited| awaited.member() <= self.size);
            if awaited.is_some_and(|awaited| self.holds(awaited)) {
                then(member);
            }
        }
    }
}

/// Adds one to a count that belongs to a call and returns what it was; `None` if it belongs to a later call by now.
#[inline]
fn take(count: &AtomicU64, number: u64) -> Option<u64> {
    take_below(count, number, COUNT_MASK)
}

/// As [`take`], unless the count has come to the limit.
#[inline]
fn take_below(count: &AtomicU64, number: u64, limit: u64) -> Option<u64> {
    let mut now = count.load(Ordering::Acquire);
    loop {
        let taken = count_in(now, number).filter(|taken| *taken < limit)?;
        let next = (number << COUNT_BITS) | (taken + 1);
        match count.compare_exchange_weak(now, next, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Some(taken),
            Err(other) => now = other,
        }
    }
}

/// A count that belongs to a call; `None` if it belongs to a later call by now.
#[inline]
fn count_of(count: &AtomicU64, number: u64) -> Option<u64> {
    count_in(count.load(Ordering::Acquire), number)
}

#[inline]
fn count_in(word: u64, number: u64) -> Option<u64> {
    let number = number & (u64::MAX >> COUNT_BITS);
    match (word >> COUNT_BITS).cmp(&number) {
        std::cmp::Ordering::Less => Some(0),
        std::cmp::Ordering::Equal => Some(word & COUNT_MASK),
        std::cmp::Ordering::Greater => None,
    }
}

#[cfg(not(loom))]
mod round_buffers;
#[cfg(not(loom))]
pub use round_buffers::{Bytes, RoundBuffers};

#[cfg(loom)]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;
