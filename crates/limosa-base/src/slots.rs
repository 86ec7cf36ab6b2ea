//! Slot segments: shared memory in which the members of a group perform collective calls, one after another.
//!
//! ```text
//!   Common                      users, sleepers, counts of arrivals and of pieces
//!   Member 0 | 1 | ... | n      notes, and marks of how far the member has come; member n is the group itself
//!   room of member 0 | ... | n  SLOTS slots each, for what does not fit a note
//! ```
//!
//! All members number their calls from 1. In each call a member may post one note. A note is one cache line with a
//! body, the *signature* of the call (an encoding by the layer above), a tag, and the call's number, which is written
//! last. The note of the group is posted by one member on behalf of all.
//!
//! Contract
//! - A member performs its calls in order and marks each as finished ([`SlotSegment::finish`]). Afterwards it reads no
//!   note or slot of that call.
//! - The note of call `t` replaces that of `t - NOTES`, a slot that of `t - SLOTS`. Before a member writes either, it
//!   has seen that all members have finished the earlier call ([`Awaited::AllFinished`]).
//! - A member may share further memory of its own ([`SlotSegment::share_area`]), which the layer above uses.
//! - Marks only grow, and [`Awaited`] conditions test whether a mark has reached a value. A condition that holds once
//!   holds for ever, even if a member skips a call.
//! - Within a call a member may publish its progress in steps ([`SlotSegment::advance`]), and one member may publish
//!   the progress of all.
//! - Cursors and counts belong to a call. The first member to use one in a later call resets it; a late member finds it
//!   exhausted.
//! - Any member may take the next piece of a call's work; each piece is taken once. The member that counts the last
//!   piece as done sees the results of all pieces, and whether a piece has failed. It tells all members by the note of
//!   the group.
//!
//! Withdrawal. A member whose call has failed withdraws its note ([`SlotSegment::withdraw`]) before it reuses the
//! memory that the note refers to. A member about to copy to or from that memory announces it
//! ([`SlotSegment::begin_copying`], with a [`fence::light`]) and then checks that the note is still valid. The
//! withdrawing member executes [`fence::heavy`] and waits until no member is copying.
//!
//! Declaration. After a long wait, a member declares the number and the signature of its call
//! ([`SlotSegment::declare`]), with a full fence, and then reads the notes and declarations of all members. Of two
//! members that declare, at least one thus sees the declaration of its peer.
//!
//! Sleeping. A member about to sleep announces this and its condition ([`SlotSegment::begin_sleep`]), executes
//! [`fence::heavy`], and sleeps only if its condition still does not hold. A member that has changed a mark calls
//! [`SlotSegment::has_sleepers`], which begins with a [`fence::light`]. At least one of the two therefore sees the
//! store of its peer. A changing member that sees a sleeper executes a full fence and rings every member whose
//! condition holds ([`SlotSegment::for_each_wakeable`]).
//!
//! A condition may need the changes of several members. Consider the changes that the sleeper did not see: each of
//! their members has seen the sleeper. One of their full fences is the last, and its member sees all these changes. The
//! changes that the sleeper did see were visible to all members before its check, and so before the changes that it did
//! not see. Hence at least one member rings. Needless rings occur only when two members make changes at the same time:
//! both may ring.
//!
//! Members treat notes as untrusted input: other processes have written tags and bodies.

use crate::fence;
#[cfg(not(loom))]
use crate::segment::{Foreign, Shared};
use crate::sync::{AtomicU32, AtomicU64, Ordering, UnsafeCell, fence as full_fence};
use std::ptr::NonNull;

/// Notes per member that are valid at a time.
pub const NOTES: u64 = if cfg!(loom) { 2 } else { 64 };
/// Slots per member.
pub const SLOTS: u64 = if cfg!(loom) { 1 } else { 8 };
/// Bytes of a note's body.
pub const BODY_BYTES: usize = 48;
/// Body of a note.
pub type Body = [u64; BODY_BYTES / 8];
/// Maximum number of members of a slot segment.
pub const MAX_MEMBERS: usize = (1 << MEMBER_BITS) - 1;
/// Maximum number of steps of a call.
pub const MAX_STEPS: u64 = (1 << STEP_BITS) - 1;

const TAG_BITS: u32 = 16;
/// Tag of a withdrawn note, and of no other.
pub const WITHDRAWN: u16 = u16::MAX;
const MEMBER_BITS: u32 = 16;
const STEP_BITS: u32 = 20;
const COUNT_BITS: u32 = 24;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// A note. The body comes first, so that it has the maximum alignment.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
struct CallNote {
    body: UnsafeCell<Body>,
    signature: AtomicU64,
    flag: AtomicU64,
}

/// A word in a pair of cache lines of its own.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
struct Mark(AtomicU64);

/// Condition for which a member wants a wake-up.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
struct WaitCondition {
    /// Encoded kind and member of the condition; 0 for none.
    what: AtomicU64,
    value: AtomicU64,
}

/// Call in which a member waits, for the diagnosis of hangs.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
struct Declaration {
    /// Number of the call; 0 for none.
    number: AtomicU64,
    signature: AtomicU64,
}

/// Counters of a call, shared by all members.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
struct Counts {
    /// Members that have arrived.
    arrived: AtomicU64,
    /// Pieces of the work that were taken.
    taken: AtomicU64,
    /// Pieces that are done.
    done: AtomicU64,
    /// The last call with a failed piece, whether a withdrawal or a death was the cause, and the member at which it
    /// failed.
    failed: AtomicU64,
}

/// Counters of a transfer that two members may copy together.
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
    notes: [CallNote; NOTES as usize],
    finished: Mark,
    progress: Mark,
    area: Mark,
    copying: Mark,
    attended: Mark,
    sleeping_for: WaitCondition,
    requested: WaitCondition,
    declaration: Declaration,
    shares: Shares,
}

/// The part of the segment that exists once.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
pub struct Common {
    users: AtomicU32,
    sleepers: Mark,
    room_wanted: Mark,
    counts: [Counts; NOTES as usize],
}

// SAFETY: integers, for which any bytes are valid. Access is synchronised as the module describes; torn bytes from a
// peer that breaks the protocol are checked as untrusted input.
#[cfg(not(loom))]
unsafe impl Foreign for Common {}

/// Memory of a slot segment.
#[cfg(not(loom))]
pub type Memory = Shared<Common>;
/// Memory of a slot segment in a model, where loom's atomics are not zeroed bytes.
#[cfg(loom)]
pub type Memory = std::sync::Arc<model::Heap>;

/// Conditions that a member may wait for. As a member index, the number of members stands for the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// The note of a member (or of the group) for a call is posted.
    Note(usize, u64),
    /// The notes of all members for a call are posted.
    AllNotes(u64),
    /// All members have finished a call.
    AllFinished(u64),
    /// The transfer of a member in a call is complete.
    Complete(usize, u64),
    /// A member has reached a step.
    Progress(usize, Progress),
    /// All members have reached a step.
    AllProgress(Progress),
    /// The notes of the members below this one for a call are posted.
    NotesBelow(usize, u64),
    /// Anything has changed.
    Anything,
    /// A member has finished a call.
    Finished(usize, u64),
}

/// A failed piece of the work of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedPiece {
    /// The member at which the piece failed.
    pub member: usize,
    /// Set if the cause is the withdrawal or death of a member.
    pub given_up: bool,
}

/// A step of a call, ordered by call and then by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Progress(u64);

impl Progress {
    /// Creates step `step`, at most [`MAX_STEPS`], of call `number`.
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

    /// Returns the member that the condition names.
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

/// One member's view of a slot segment.
pub struct SlotSegment {
    memory: Memory,
    members: NonNull<Member>,
    size: usize,
    me: usize,
    slot_bytes: usize,
}

// SAFETY: the rules of the module synchronise all access to the shared memory, on any thread.
unsafe impl Send for SlotSegment {}
// SAFETY: as above.
unsafe impl Sync for SlotSegment {}

impl SlotSegment {
    /// Returns the bytes of shared memory that a slot segment takes.
    pub fn bytes(size: usize, slot_bytes: usize) -> usize {
        size_of::<Common>() + (size + 1) * (size_of::<Member>() + SLOTS as usize * slot_bytes)
    }

    /// Opens the slot segment in `memory`, which was zeroed once, as member `me` of `size`.
    ///
    /// # Panics
    /// If the memory is too small, there are too many members, or slots would not begin on cache lines.
    #[cfg(not(loom))]
    pub fn new(memory: Memory, size: usize, me: usize, slot_bytes: usize) -> SlotSegment {
        assert!(
            me < size && size < MAX_MEMBERS && slot_bytes.is_multiple_of(64),
            "a slot segment of {size} members with slots of {slot_bytes} bytes"
        );
        assert!(
            memory.mapping().len() >= SlotSegment::bytes(size, slot_bytes),
            "the memory is too small for the slot segment"
        );
        let members = memory.mapping().address(size_of::<Common>()).cast();
        let members = NonNull::new(members).expect("a mapping is nowhere near address 0");
        SlotSegment { memory, members, size, me, slot_bytes }
    }

    /// Returns the number of members.
    #[inline]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the index of this member.
    #[inline]
    pub fn me(&self) -> usize {
        self.me
    }

    /// Returns the bytes of a slot.
    #[inline]
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    #[inline(always)]
    fn member(&self, member: usize) -> &Member {
        assert!(member <= self.size, "no such member of the slot segment");
        // SAFETY: inside the mapping by the check here and the one in `new`; any bytes are a valid member.
        unsafe { self.members.add(member).as_ref() }
    }

    #[inline(always)]
    fn note(&self, member: usize, number: u64) -> &CallNote {
        &self.member(member).notes[(number % NOTES) as usize]
    }

    // ---- users -----------------------------------------------------------------------------------------------------

    /// Registers all members as users. Called by the member that created the memory, before the others learn its
    /// address.
    pub fn open(&self) {
        self.memory.users.store(self.size as u32, Ordering::Relaxed);
    }

    /// Deregisters this member. Returns true for the last user, which frees the memory.
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

    /// Posts this member's note with a body that `fill` writes in place. Bytes that it does not write are undefined.
    #[inline(always)]
    pub fn post_filled(&self, number: u64, signature: u64, tag: u16, fill: impl FnOnce(*mut Body)) {
        self.post_as(self.me, (number, signature), tag, fill);
    }

    /// Posts the note of the group, on behalf of all members.
    #[inline]
    pub fn post_for_all(&self, number: u64, signature: u64, tag: u16, body: &Body) {
        self.post_as(self.size, (number, signature), tag, |place| {
            // SAFETY: by the contract of `post_as`.
            unsafe { *place = *body }
        });
    }

    /// Posts a note. `fill` has exclusive access to the body: by the contract of the module, no member reads the
    /// previous note any more, nor this one before its flag is stored.
    #[inline(always)]
    fn post_as(&self, member: usize, (number, signature): (u64, u64), tag: u16, fill: impl FnOnce(*mut Body)) {
        let note = self.note(member, number);
        note.body.with_mut(fill);
        note.signature.store(signature, Ordering::Relaxed);
        // Pairs with the acquire loads in `tag_of` and `holds`.
        note.flag.store(number << TAG_BITS | u64::from(tag), Ordering::Release);
    }

    /// Returns the tag of a note, if it was posted. As `member`, the number of members stands for the group.
    #[inline]
    pub fn tag_of(&self, member: usize, number: u64) -> Option<u16> {
        let flag = self.note(member, number).flag.load(Ordering::Acquire);
        (flag >> TAG_BITS == number).then_some(flag as u16)
    }

    /// Returns whether the notes of all members for a call are posted and carry this signature.
    #[inline]
    pub fn all_noted(&self, number: u64, signature: u64) -> bool {
        (0..self.size).all(|member| {
            let note = self.note(member, number);
            note.flag.load(Ordering::Acquire) >> TAG_BITS == number
                && note.signature.load(Ordering::Relaxed) == signature
        })
    }

    /// Returns the signature of a note that [`SlotSegment::tag_of`] has found; 0 if it is being withdrawn.
    #[inline]
    pub fn signature_of(&self, member: usize, number: u64) -> u64 {
        self.note(member, number).signature.load(Ordering::Relaxed)
    }

    /// Returns the address of the body of a note that [`SlotSegment::tag_of`] has found. It is readable until this
    /// member finishes the call.
    #[inline]
    pub fn body_of(&self, member: usize, number: u64) -> *const Body {
        self.note(member, number).body.with(|body| body)
    }

    /// Prefetches a note that may be posted already.
    #[inline]
    pub fn prefetch_note(&self, member: usize, number: u64) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a hint that accesses nothing.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(self.note(member, number)).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (member, number);
    }

    /// Returns the address of a member's slot for a call: [`SlotSegment::slot_bytes`] bytes, aligned to a cache line.
    #[cfg(not(loom))]
    #[inline]
    pub fn slot_of(&self, member: usize, number: u64) -> *mut u8 {
        let slot = member * SLOTS as usize + (number % SLOTS) as usize;
        self.memory
            .mapping()
            .address(size_of::<Common>() + (self.size + 1) * size_of::<Member>() + slot * self.slot_bytes)
    }

    // ---- marks -----------------------------------------------------------------------------------------------------

    /// Marks a call, and all before it, as finished by this member.
    #[inline]
    pub fn finish(&self, number: u64) {
        // Pairs with the acquire loads in `least_finished` and `holds`: all reads of the call precede this store.
        self.member(self.me).finished.0.store(number, Ordering::Release);
    }

    /// Publishes the step that this member has reached.
    #[inline]
    pub fn advance(&self, step: Progress) {
        // Pairs with the acquire loads in `progress_of` and `holds`; so does the store in `advance_all`.
        self.member(self.me).progress.0.store(step.0, Ordering::Release);
    }

    /// Publishes the step that all members have reached.
    #[inline]
    pub fn advance_all(&self, step: Progress) {
        self.member(self.size).progress.0.store(step.0, Ordering::Release);
    }

    /// Returns the step that a member, or the group, has reached.
    pub fn progress_of(&self, member: usize) -> Progress {
        Progress(self.member(member).progress.0.load(Ordering::Acquire))
    }

    /// Returns the last call that all members have finished.
    pub fn least_finished(&self) -> u64 {
        (0..self.size).map(|member| self.member(member).finished.0.load(Ordering::Acquire)).min().unwrap_or(0)
    }

    /// Returns whether a condition holds.
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

    // ---- shared areas of members ----------------------------------------------------------------------------------

    /// Shares memory of this member, at the position `area`. A reader of any note that it posts later finds the area.
    pub fn share_area(&self, area: u64) {
        self.member(self.me).area.0.store(area + 1, Ordering::Release);
    }

    /// Returns the position of the memory that a member shares, if it does.
    pub fn area_of(&self, member: usize) -> Option<u64> {
        self.member(member).area.0.load(Ordering::Acquire).checked_sub(1)
    }

    // ---- withdrawal ------------------------------------------------------------------------------------------------

    /// Withdraws this member's note of a call, if it was posted: the memory that it refers to is no longer valid. From
    /// now on [`SlotSegment::is_copying`] shows every member that has not seen the withdrawal.
    pub fn withdraw(&self, number: u64) {
        let note = self.note(self.me, number);
        if note.flag.load(Ordering::Relaxed) >> TAG_BITS == number {
            note.signature.store(0, Ordering::Relaxed);
            note.flag.store(number << TAG_BITS | u64::from(WITHDRAWN), Ordering::Release);
        }
        fence::heavy();
    }

    // ---- declaration -----------------------------------------------------------------------------------------------

    /// Declares that this member waits in a call with this signature.
    pub fn declare(&self, number: u64, signature: u64) {
        let declaration = &self.member(self.me).declaration;
        declaration.signature.store(signature, Ordering::Relaxed);
        declaration.number.store(number, Ordering::Release);
        full_fence(Ordering::SeqCst);
    }

    /// Ends the declaration of this member.
    pub fn end_declaration(&self) {
        self.member(self.me).declaration.number.store(0, Ordering::Release);
    }

    /// Returns the number and the signature of the call in which a member has declared to wait.
    pub fn declared(&self, member: usize) -> Option<(u64, u64)> {
        let declaration = &self.member(member).declaration;
        let number = declaration.number.load(Ordering::Acquire);
        let signature = declaration.signature.load(Ordering::Acquire);
        // The signature may belong to a later call unless the number is unchanged.
        (number != 0 && declaration.number.load(Ordering::Relaxed) == number).then_some((number, signature))
    }

    /// Returns the signature of a member's, or the group's, note for a call, if it is posted.
    pub fn noted(&self, member: usize, number: u64) -> Option<u64> {
        let signature = self.tag_of(member, number).map(|_| self.signature_of(member, number))?;
        // The signature may belong to a later call unless the flag is unchanged.
        full_fence(Ordering::Acquire);
        (self.tag_of(member, number).is_some() && signature != 0).then_some(signature)
    }

    /// Announces that this member is about to copy to or from a peer's memory in a call. It must then check whether the
    /// peer has withdrawn.
    #[inline]
    pub fn begin_copying(&self, number: u64) {
        self.member(self.me).copying.0.store(number, Ordering::Release);
        fence::light();
    }

    /// Ends the announcement of [`SlotSegment::begin_copying`].
    #[inline]
    pub fn end_copying(&self) {
        self.member(self.me).copying.0.store(0, Ordering::Release);
    }

    /// Returns whether a member is copying in a call; valid after [`SlotSegment::withdraw`].
    pub fn is_copying(&self, member: usize, number: u64) -> bool {
        self.member(member).copying.0.load(Ordering::Acquire) == number
    }

    /// Returns whether a member has withdrawn its note of a call.
    #[inline]
    pub fn is_withdrawn(&self, member: usize, number: u64) -> bool {
        self.tag_of(member, number) == Some(WITHDRAWN)
    }

    /// Publishes whether a thread of this member waits, and meanwhile advances any call that it can. Only a hint.
    #[inline]
    pub fn attend(&self, attends: bool) {
        self.member(self.me).attended.0.store(u64::from(attends), Ordering::Relaxed);
    }

    /// Returns whether a thread of a member waits.
    pub fn is_attending(&self, member: usize) -> bool {
        self.member(member).attended.0.load(Ordering::Relaxed) != 0
    }

    // ---- counts ----------------------------------------------------------------------------------------------------

    #[inline]
    fn counts(&self, number: u64) -> &Counts {
        &self.memory.counts[(number % NOTES) as usize]
    }

    /// Counts this member as arrived in a call. Returns the number of arrived members.
    #[inline]
    pub fn arrive(&self, number: u64) -> u64 {
        // Acquire and release: the last member to arrive sees all earlier stores of the others.
        take(&self.counts(number).arrived, number).map_or(0, |count| count + 1)
    }

    /// Takes the next piece of the work of a call, from 0; `None` if `limit` pieces have been taken, or the call is
    /// over.
    #[inline]
    pub fn take_piece(&self, number: u64, limit: u64) -> Option<u64> {
        take_below(&self.counts(number).taken, number, limit)
    }

    /// Returns whether fewer than `limit` pieces of the work of a call have been taken.
    #[inline]
    pub fn has_pieces(&self, number: u64, limit: u64) -> bool {
        count_of(&self.counts(number).taken, number).is_some_and(|taken| taken < limit)
    }

    /// Counts a piece of the work of a call as done. Returns the number of done pieces.
    #[inline]
    pub fn count_piece(&self, number: u64) -> u64 {
        // Acquire and release: the member that counts the last piece sees the results of all pieces.
        take(&self.counts(number).done, number).map_or(0, |count| count + 1)
    }

    /// Records that a piece of the work of a call has failed at this member, which then counts it as done. `given_up`:
    /// the cause is the withdrawal or death of a member.
    #[cold]
    pub fn fail_piece(&self, number: u64, given_up: bool) {
        let failed = number << (MEMBER_BITS + 1) | u64::from(given_up) << MEMBER_BITS | self.me as u64;
        // Of several failures the maximum is kept: the one that all members must learn of.
        self.counts(number).failed.fetch_max(failed, Ordering::Relaxed);
    }

    /// Returns the failure of a piece of a call, if any; valid once all pieces are done.
    pub fn failed_piece(&self, number: u64) -> Option<FailedPiece> {
        let failed = self.counts(number).failed.load(Ordering::Relaxed);
        let member = failed as usize & MAX_MEMBERS;
        let is_of_call = failed >> (MEMBER_BITS + 1) == number && failed != 0 && member < self.size;
        is_of_call.then_some(FailedPiece { member, given_up: failed >> MEMBER_BITS & 1 != 0 })
    }

    /// Takes the next piece of a member's transfer in a call, from 0; `None` if `all` have been taken, or that member
    /// has finished the call.
    pub fn take_share(&self, member: usize, number: u64, all: u64) -> Option<u64> {
        take_below(&self.member(member).shares.cursor, number, all)
    }

    /// Counts a piece of a member's transfer as copied. With the last of `all` pieces it completes the transfer and
    /// returns true.
    pub fn count_share(&self, member: usize, number: u64, all: u64) -> bool {
        let shares = &self.member(member).shares;
        let last = take(&shares.copied, number).is_some_and(|count| count + 1 >= all);
        if last {
            // Pairs with the acquire load in `holds`.
            shares.complete.store(number, Ordering::Release);
        }
        last
    }

    // ---- lack of free notes ----------------------------------------------------------------------------------------

    /// Announces that this member cannot post until others finish earlier calls; or, with false, that it can again. A
    /// heavy fence must follow.
    pub fn ask_for_room(&self, is_room_wanted: bool) {
        if is_room_wanted {
            self.memory.room_wanted.0.fetch_add(1, Ordering::AcqRel);
        } else {
            self.memory.room_wanted.0.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Returns whether a member cannot post until others finish calls. Called after this member has changed a mark.
    #[inline]
    pub fn is_room_wanted(&self) -> bool {
        fence::light();
        self.memory.room_wanted.0.load(Ordering::Relaxed) != 0
    }

    /// Returns whether a member has finished a call.
    pub fn has_finished(&self, member: usize, number: u64) -> bool {
        self.member(member).finished.0.load(Ordering::Acquire) >= number
    }

    // ---- sleeping --------------------------------------------------------------------------------------------------

    /// Announces that this member is about to sleep until a condition holds. A heavy fence and a check of the condition
    /// must follow.
    pub fn begin_sleep(&self, awaited: Awaited) {
        let (what, value) = awaited.encode();
        let condition = &self.member(self.me).sleeping_for;
        condition.value.store(value, Ordering::Relaxed);
        condition.what.store(what, Ordering::Release);
        self.memory.sleepers.0.fetch_add(1, Ordering::AcqRel);
    }

    /// Announces that this member no longer sleeps.
    pub fn end_sleep(&self) {
        self.memory.sleepers.0.fetch_sub(1, Ordering::AcqRel);
        self.member(self.me).sleeping_for.what.store(0, Ordering::Release);
    }

    /// Widens the condition of this member, which is about to sleep, to any change: another of its threads waits too.
    pub fn await_anything(&self) {
        self.member(self.me).sleeping_for.what.store(Awaited::Anything.encode().0, Ordering::Release);
    }

    /// Requests a notification, once a condition holds, for a member that does not sleep; or, with `None`, cancels the
    /// request. A heavy fence and a check of the condition must follow.
    pub fn request(&self, awaited: Option<Awaited>) {
        let request = &self.member(self.me).requested;
        let (what, value) = awaited.map_or((0, 0), Awaited::encode);
        request.value.store(value, Ordering::Relaxed);
        match (request.what.swap(what, Ordering::AcqRel) != 0, what != 0) {
            (false, true) => _ = self.memory.sleepers.0.fetch_add(1, Ordering::AcqRel),
            (true, false) => _ = self.memory.sleepers.0.fetch_sub(1, Ordering::AcqRel),
            _ => {}
        }
    }

    /// Returns whether any member sleeps or has a request. Called after a change.
    #[inline]
    pub fn has_sleepers(&self) -> bool {
        fence::light();
        self.memory.sleepers.0.load(Ordering::Relaxed) != 0
    }

    /// Calls `wake` for each sleeping member whose condition holds now.
    #[cold]
    pub fn for_each_wakeable(&self, wake: impl FnMut(usize)) {
        full_fence(Ordering::SeqCst);
        self.for_each_granted(|member| &member.sleeping_for, wake);
    }

    /// Calls `tell` for each other member whose [request](SlotSegment::request) holds now. Follows
    /// [`SlotSegment::for_each_wakeable`], which executes the fence.
    #[cold]
    pub fn for_each_requester(&self, tell: impl FnMut(usize)) {
        self.for_each_granted(|member| &member.requested, tell);
    }

    fn for_each_granted(&self, condition: impl Fn(&Member) -> &WaitCondition, mut then: impl FnMut(usize)) {
        for member in (0..self.size).filter(|member| *member != self.me) {
            let condition = condition(self.member(member));
            let what = condition.what.load(Ordering::Acquire);
            // The index may be corrupt: no condition names a member that does not exist.
            let awaited = Awaited::decode(what, condition.value.load(Ordering::Relaxed))
                .filter(|awaited| awaited.member() <= self.size);
            if awaited.is_some_and(|awaited| self.holds(awaited)) {
                then(member);
            }
        }
    }
}

/// Increments a count that belongs to a call. Returns its previous value; `None` if it belongs to a later call.
#[inline]
fn take(count: &AtomicU64, number: u64) -> Option<u64> {
    take_below(count, number, COUNT_MASK)
}

/// Increments a count like [`take`], unless it has reached the limit.
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

/// Returns a count that belongs to a call; `None` if it belongs to a later call.
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
