//! An endpoint: what sends packets to addresses and receives them from anywhere, by a provider of libfabric.
//!
//! It owns the buffers of all packets under way. A buffer is in one of these states, and its bytes are ours in the
//! first two only:
//!
//! | state | bytes | from |
//! |---|---|---|
//! | free | ours | creation, a send that has ended, a packet that was handed out |
//! | full | ours, for reading | a receive that has ended |
//! | sending | the provider reads them | [`Endpoint::send`] |
//! | posted | the provider writes them | [`Endpoint::post`] |
//!
//! A buffer without bytes can stand for memory of the program that the provider reads or writes instead
//! ([`Endpoint::send_straight`], [`Endpoint::receive_straight`]).

use super::library::{Library, Offer, checked};
use super::sys::{
    Av, AvAttr, Cq, CqAttr, CqErrEntry, CqMsgEntry, Domain, Ep, FI_AV_TABLE, FI_CQ_FORMAT_MSG, FI_EAGAIN, FI_EAVAIL,
    FI_ENABLE, FI_ETIMEDOUT, FI_GETWAIT, FI_MR_LOCAL, FI_RECV, FI_SEND, FI_WAIT_FD, FI_WAIT_SET, Fabric, Fid, Info, Mr,
    Wait, WaitAttr,
};
use limosa_base::vm::Slice;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};

/// Operations read from the queue at once.
const BATCH: usize = 32;
/// Longest address of an endpoint.
const MAX_NAME: usize = 128;
/// The provider for TCP before version 1.18 of the library. Its `trywait` does nothing, and the descriptor of a queue
/// in which something has once ended stays readable for ever. Only a wait set can make it silent again.
const NEVER_SILENT: &str = "net";
/// An address that the provider knows.
pub type Known = u64;
/// A tag of so many random bits is not guessed.
const LEAST_TAG_BITS: u32 = 48;
/// Every source.
const ANY: Known = u64::MAX;

/// A buffer, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub usize);

/// What has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// This buffer was sent, and is free.
    Sent(Slot),
    /// This buffer could not be sent, or what it stands for not received, for an error of the library; it is free.
    Failed(Slot, i32),
    /// So many bytes were received where this buffer stands for; it is free.
    Filled(Slot, usize),
    /// This buffer holds a packet of so many bytes.
    Received(Slot, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Full,
    Sending,
    Posted,
    /// Stands for memory of the program that is posted.
    Filling,
}

/// Eight words that a provider may use while an operation is under way. Their address names the operation.
#[repr(C)]
struct Context {
    words: [u64; 8],
    slot: usize,
}

struct Buffer {
    bytes: NonNull<u8>,
    len: usize,
    state: State,
    context: Box<Context>,
    /// What the provider needs to access the memory.
    region: *mut Mr,
}

impl Buffer {
    /// What goes with each operation on the buffer; null where the provider needs nothing.
    fn descriptor(&self) -> *mut c_void {
        if self.region.is_null() {
            return null_mut();
        }
        // SAFETY: a registered region is valid as long as its buffer.
        unsafe { (*self.region).desc }
    }

    /// Notes what became of an operation that would lead to this state: false if there was no room.
    fn begun(&mut self, result: isize, state: State) -> Result<bool, i32> {
        match -result {
            0 => {
                self.state = state;
                Ok(true)
            }
            FI_EAGAIN => Ok(false),
            error => Err(error as i32),
        }
    }
}

/// An endpoint and all that it needs.
pub struct Endpoint {
    // Closed in this order.
    ep: Handle<Ep>,
    /// Sends calls ([`Endpoint::call`]); opened with the first one.
    caller: Option<Handle<Ep>>,
    cq: Handle<Cq>,
    /// What the queue tells when something has ended; `None`: it has a descriptor of its own.
    wait_set: Option<Handle<Wait>>,
    av: Handle<Av>,
    buffers: Vec<Buffer>,
    domain: Handle<Domain>,
    fabric: Handle<Fabric>,
    /// Ended, and not yet told.
    ended: VecDeque<Event>,
    must_register: bool,
    /// Receives of packets that are posted.
    receives: usize,
    descriptor: i32,
    name: Vec<u8>,
    offer: Offer,
}

// SAFETY: libfabric's objects belong to no thread; with threading by domain, calls must not come at the same time,
// which `&mut self` sees to.
unsafe impl Send for Endpoint {}

/// An object of libfabric, closed when dropped.
struct Handle<T>(*mut T);

impl<T> Handle<T> {
    fn fid(&self) -> *mut Fid {
        self.0.cast()
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        close(self.fid());
    }
}

fn close(fid: *mut Fid) {
    // SAFETY: every object of libfabric begins with such a structure, and is closed once.
    unsafe { ((*(*fid).ops).close)(fid) };
}

/// What the library refuses, for people.
fn refused(library: &Library, what: &str, error: i32) -> String {
    format!("{what}: {}", library.describe(error))
}

impl Endpoint {
    /// Opens an endpoint as offered, with room for so many packets of `len` bytes that come at once.
    ///
    /// # Errors
    /// What the provider refuses, in one sentence.
    pub fn open(offer: Offer, len: usize, receives: usize) -> Result<Endpoint, String> {
        let library = offer.library().clone();
        let no = |what: &'static str| {
            let library = library.clone();
            move |error| refused(&library, what, error)
        };
        let info = offer.info;
        let (mut fabric, mut domain, mut av, mut cq) =
            (null_mut::<Fabric>(), null_mut::<Domain>(), null_mut::<Av>(), null_mut::<Cq>());
        // SAFETY: the offer's structure is valid with all its parts, and so is each object after the call that opens
        // it. Tables of functions live as long as their objects.
        unsafe {
            checked((library.fabric)((*info).fabric_attr, &mut fabric, null_mut()))
                .map_err(no("opening the fabric"))?;
            let fabric = Handle(fabric);
            let opened = ((*(*fabric.0).ops).domain)(fabric.0, info, &mut domain, null_mut());
            checked(opened).map_err(no("opening the interface"))?;
            let domain = Handle(domain);
            let table = (*domain.0).ops;
            let mut attr = AvAttr { kind: FI_AV_TABLE, ..AvAttr::default() };
            checked(((*table).av_open)(domain.0, &mut attr, &mut av, null_mut())).map_err(no("opening addresses"))?;
            let av = Handle(av);
            let wait_set = if offer.provider == NEVER_SILENT { open_wait_set(&fabric) } else { None };
            let mut attr = queue_for(&offer, wait_set.as_ref());
            checked(((*table).cq_open)(domain.0, &mut attr, &mut cq, null_mut())).map_err(no("opening a queue"))?;
            let cq = Handle(cq);
            let ep = open_ep(&domain, info, &av, &cq).map_err(no("opening the endpoint"))?;
            let name = name_of(&ep).map_err(no("asking for the endpoint's address"))?;
            let descriptor = descriptor_of(&cq).map_err(no("asking for a descriptor"))?;
            let must_register = (*(*info).domain_attr).mr_mode & FI_MR_LOCAL != 0;
            let receives = receives.min((*(*info).rx_attr).size.max(1));
            let (buffers, ended) = (Vec::new(), VecDeque::new());
            let mut endpoint = Endpoint {
                ep,
                caller: None,
                cq,
                wait_set,
                av,
                buffers,
                domain,
                fabric,
                ended,
                must_register,
                receives,
                descriptor,
                name,
                offer,
            };
            for _ in 0..receives {
                let slot = endpoint.make(len)?;
                endpoint.post(slot);
            }
            Ok(endpoint)
        }
    }

    /// The address at which others reach it.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// What it was made from.
    pub fn offer(&self) -> &Offer {
        &self.offer
    }

    /// A descriptor that is readable when something may have ended, if [`Endpoint::may_sleep`] allows to wait for it.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is the queue's, which lives as long as the endpoint.
        unsafe { BorrowedFd::borrow_raw(self.descriptor) }
    }

    /// Whether the descriptor will be readable when something ends, and not before: otherwise something has ended
    /// already.
    pub fn may_sleep(&mut self) -> bool {
        if !self.ended.is_empty() {
            return false;
        }
        match &self.wait_set {
            // SAFETY: the set is open, and the queue, which it asks, is used by this thread alone. It does not wait so
            // long.
            Some(set) => unsafe { ((*(*set.0).ops).wait)(set.0, 0) == -FI_ETIMEDOUT },
            None => {
                let mut fids = [self.cq.fid()];
                // SAFETY: the queue is one of this fabric.
                unsafe { ((*(*self.fabric.0).ops).trywait)(self.fabric.0, fids.as_mut_ptr(), 1) == 0 }
            }
        }
    }

    /// Makes a peer's address known.
    ///
    /// # Errors
    /// The address makes no sense to the provider.
    pub fn know(&mut self, address: &[u8]) -> Result<Known, String> {
        let mut known = ANY;
        // The provider reads as much as its addresses have.
        if address.len() < self.name.len() {
            return Err("the address is too short".into());
        }
        // SAFETY: the address is as long as the provider's own; the result is written.
        let count =
            unsafe { ((*(*self.av.0).ops).insert)(self.av.0, address.as_ptr().cast(), 1, &mut known, 0, null_mut()) };
        if count == 1 && known != ANY { Ok(known) } else { Err(format!("the provider refuses the address ({count})")) }
    }

    /// Forgets a peer's address.
    pub fn forget(&mut self, mut known: Known) {
        // SAFETY: the address came from `know`.
        unsafe { ((*(*self.av.0).ops).remove)(self.av.0, &mut known, 1, 0) };
    }

    /// A new buffer, which is free.
    ///
    /// # Errors
    /// The provider cannot access it.
    pub fn make(&mut self, len: usize) -> Result<Slot, String> {
        let layout = layout(len);
        // SAFETY: the layout is not empty.
        let bytes = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        let slot = self.buffers.len();
        let context = Box::new(Context { words: [0; 8], slot });
        self.buffers.push(Buffer { bytes, len, state: State::Free, context, region: null_mut() });
        if self.must_register {
            let mut region = null_mut();
            // SAFETY: the memory is valid until the buffer is dropped, which closes the region first.
            let result = unsafe {
                let reg = (*(*self.domain.0).mr).reg;
                reg(
                    self.domain.fid(),
                    bytes.as_ptr().cast(),
                    len,
                    FI_SEND | FI_RECV,
                    0,
                    slot as u64,
                    0,
                    &mut region,
                    null_mut(),
                )
            };
            checked(result).map_err(|error| refused(self.offer.library(), "registering memory", error))?;
            self.buffers[slot].region = region;
        }
        Ok(Slot(slot))
    }

    /// The bytes of a buffer that is free, to be written.
    pub fn bytes_of(&mut self, slot: Slot) -> &mut [u8] {
        let buffer = &mut self.buffers[slot.0];
        assert!(buffer.state == State::Free, "the provider has this buffer");
        // SAFETY: the memory is that of the buffer, initialised, and the provider does not have it in this state.
        unsafe { std::slice::from_raw_parts_mut(buffer.bytes.as_ptr(), buffer.len) }
    }

    /// The first bytes of a buffer that is full.
    pub fn packet(&self, slot: Slot, len: usize) -> &[u8] {
        let buffer = &self.buffers[slot.0];
        assert!(buffer.state == State::Full, "there is no packet in this buffer");
        // SAFETY: as above; the provider does not write to it in this state.
        unsafe { std::slice::from_raw_parts(buffer.bytes.as_ptr(), len.min(buffer.len)) }
    }

    /// Begins to send the first bytes of a free buffer; false if the provider has no room, or has not connected yet.
    ///
    /// # Errors
    /// The library's.
    pub fn send(&mut self, slot: Slot, len: usize, to: Known) -> Result<bool, i32> {
        self.send_by(self.ep.0, slot, len, to)
    }

    /// As [`Endpoint::send`], from an address of its own, over a connection of its own.
    ///
    /// # Errors
    /// As for [`Endpoint::send`].
    pub fn call(&mut self, slot: Slot, len: usize, to: Known) -> Result<bool, i32> {
        let by = match &self.caller {
            Some(caller) => caller.0,
            // SAFETY: the offer's structure is valid with all its parts.
            None => self.caller.insert(unsafe { open_ep(&self.domain, self.offer.info, &self.av, &self.cq) }?).0,
        };
        self.send_by(by, slot, len, to)
    }

    fn send_by(&mut self, ep: *mut Ep, slot: Slot, len: usize, to: Known) -> Result<bool, i32> {
        let buffer = &mut self.buffers[slot.0];
        assert!(buffer.state == State::Free && len <= buffer.len, "the buffer is in use");
        let desc = buffer.descriptor();
        let context = (&raw mut *buffer.context).cast();
        // SAFETY: the bytes and the context stay where they are, and untouched, until the operation has ended.
        let result = unsafe {
            let send = (*(*ep).msg).send;
            send(ep, buffer.bytes.as_ptr().cast(), len, desc, to, context)
        };
        buffer.begun(result, State::Sending)
    }

    /// Whether a packet may have its head in a buffer, and its data in memory of the program.
    pub fn may_lend(&self) -> bool {
        // SAFETY: the offer's structure is valid with all its parts.
        !self.must_register && unsafe { (*(*self.offer.info).tx_attr).iov_limit } >= 2
    }

    /// As [`Endpoint::send`], with bytes behind those of the buffer that stay where they are.
    ///
    /// # Errors
    /// As for [`Endpoint::send`].
    ///
    /// # Safety
    /// The bytes stay readable until the operation has ended.
    pub unsafe fn send_lent(&mut self, slot: Slot, len: usize, bytes: &[u8], to: Known) -> Result<bool, i32> {
        assert!(self.may_lend(), "the provider has to register the bytes");
        let buffer = &mut self.buffers[slot.0];
        assert!(buffer.state == State::Free && len <= buffer.len, "the buffer is in use");
        let context = (&raw mut *buffer.context).cast();
        let head = libc::iovec { iov_base: buffer.bytes.as_ptr().cast(), iov_len: len };
        let data = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: as for `send`, and the caller's promise. Nothing has to be registered, so there are no descriptors.
        let result = unsafe {
            let sendv = (*(*self.ep.0).msg).sendv;
            sendv(self.ep.0, [head, data].as_ptr(), null_mut(), 2, to, context)
        };
        buffer.begun(result, State::Sending)
    }

    /// The bits of tags that the provider compares; `None` if memory of the program cannot be sent and received as it
    /// is, or if others could guess a tag.
    pub fn tag_bits(&self) -> Option<u64> {
        // SAFETY: the offer's structure is valid with all its parts.
        let format = unsafe { (*(*self.offer.info).ep_attr).mem_tag_format };
        let bits = u64::MAX.checked_shr(format.leading_zeros())?;
        (!self.must_register && bits.count_ones() >= LEAST_TAG_BITS).then_some(bits)
    }

    /// Receives that the provider has room for besides those of packets.
    pub fn spare_receives(&self) -> usize {
        // SAFETY: as above.
        unsafe { (*(*self.offer.info).rx_attr).size }.saturating_sub(2 * self.receives)
    }

    /// Begins to send bytes under a tag; false if the provider has no room. The buffer stands for them.
    ///
    /// # Errors
    /// As for [`Endpoint::send`].
    ///
    /// # Safety
    /// The bytes stay readable until the operation has ended.
    pub unsafe fn send_straight(&mut self, slot: Slot, bytes: Slice, tag: u64, to: Known) -> Result<bool, i32> {
        let buffer = &mut self.buffers[slot.0];
        assert!(buffer.state == State::Free, "the buffer is in use");
        let context = (&raw mut *buffer.context).cast();
        // SAFETY: as for `send`, and the caller's promise.
        let result = unsafe {
            let send = (*(*self.ep.0).tagged).send;
            send(self.ep.0, bytes.iov_base, bytes.iov_len, null_mut(), to, tag, context)
        };
        buffer.begun(result, State::Sending)
    }

    /// Lets the message with this tag be written to memory; false if the provider has no room. The buffer stands for
    /// it.
    ///
    /// # Errors
    /// As for [`Endpoint::send`].
    ///
    /// # Safety
    /// The memory stays writable and otherwise untouched until the operation has ended.
    pub unsafe fn receive_straight(&mut self, slot: Slot, room: Slice, tag: u64) -> Result<bool, i32> {
        let buffer = &mut self.buffers[slot.0];
        assert!(buffer.state == State::Free, "the buffer is in use");
        let context = (&raw mut *buffer.context).cast();
        // SAFETY: as for `send`, and the caller's promise.
        let result = unsafe {
            let recv = (*(*self.ep.0).tagged).recv;
            recv(self.ep.0, room.iov_base, room.iov_len, null_mut(), ANY, tag, 0, context)
        };
        buffer.begun(result, State::Filling)
    }

    /// Asks for the end of an operation that a buffer stands for. It ends as others do.
    pub fn cancel(&mut self, slot: Slot) {
        let context = (&raw mut *self.buffers[slot.0].context).cast();
        // SAFETY: the endpoint is open, and knows operations by their contexts.
        unsafe { ((*(*self.ep.0).ops).cancel)(self.ep.fid(), context) };
    }

    /// Lets the next packet that comes be written to a buffer that is free or full.
    pub fn post(&mut self, slot: Slot) {
        let buffer = &mut self.buffers[slot.0];
        assert!(matches!(buffer.state, State::Free | State::Full), "the provider has this buffer");
        let desc = buffer.descriptor();
        let context = (&raw mut *buffer.context).cast();
        // SAFETY: as for `send`.
        let result = unsafe {
            let recv = (*(*self.ep.0).msg).recv;
            recv(self.ep.0, buffer.bytes.as_ptr().cast(), buffer.len, desc, ANY, context)
        };
        // There is room for as many receives as the provider said. If it has none all the same, this one is missing.
        buffer.state = if result == 0 { State::Posted } else { State::Free };
    }

    /// Asks the provider for operations that have ended; true if there are any, which [`Endpoint::next`] gives.
    pub fn ask(&mut self) -> bool {
        if self.ended.is_empty() {
            self.read();
        }
        !self.ended.is_empty()
    }

    /// The next operation that has ended, of those that the provider was asked for.
    pub fn next(&mut self) -> Option<Event> {
        self.ended.pop_front()
    }

    fn read(&mut self) {
        let mut entries = [const { MaybeUninit::<CqMsgEntry>::uninit() }; BATCH];
        // SAFETY: as many entries are written as there is room for.
        let count = unsafe { ((*(*self.cq.0).ops).read)(self.cq.0, entries.as_mut_ptr().cast(), BATCH) };
        if count == -FI_EAVAIL {
            return self.read_error();
        }
        for entry in entries.iter().take(usize::try_from(count).unwrap_or(0)) {
            // SAFETY: the provider has written so many.
            let entry = unsafe { entry.assume_init_ref() };
            let Some(slot) = self.slot_of(entry.context) else { continue };
            let (state, event) = match self.buffers[slot.0].state {
                State::Posted => (State::Full, Event::Received(slot, entry.len)),
                State::Filling => (State::Free, Event::Filled(slot, entry.len)),
                _ => (State::Free, Event::Sent(slot)),
            };
            self.buffers[slot.0].state = state;
            self.ended.push_back(event);
        }
    }

    #[cold]
    fn read_error(&mut self) {
        let mut entry = CqErrEntry::default();
        // SAFETY: one entry is written; `err_data_size` is 0, so that nothing else is.
        let count = unsafe { ((*(*self.cq.0).ops).readerr)(self.cq.0, &mut entry, 0) };
        let Some(slot) = self.slot_of(entry.context).filter(|_| count == 1) else { return };
        let was = std::mem::replace(&mut self.buffers[slot.0].state, State::Free);
        match was {
            // Something longer than any packet, or a connection that has ended: the buffer waits for the next one.
            State::Posted => self.post(slot),
            _ => self.ended.push_back(Event::Failed(slot, entry.err)),
        }
    }

    /// The buffer of an operation that was under way.
    fn slot_of(&self, context: usize) -> Option<Slot> {
        if context == 0 {
            return None;
        }
        // SAFETY: the provider gives back the context that it got with the operation, and contexts live as long as the
        // endpoint.
        let slot = unsafe { (*(context as *const Context)).slot };
        let is_under_way = |buffer: &Buffer| !matches!(buffer.state, State::Free | State::Full);
        self.buffers.get(slot).filter(|buffer| is_under_way(buffer)).map(|_| Slot(slot))
    }
}

/// An endpoint with these addresses and this queue.
///
/// # Safety
/// The structure is valid with all its parts.
unsafe fn open_ep(
    domain: &Handle<Domain>,
    info: *mut Info,
    av: &Handle<Av>,
    cq: &Handle<Cq>,
) -> Result<Handle<Ep>, i32> {
    let mut ep = null_mut();
    // SAFETY: the objects are open, and the caller's promise. The table of functions lives as long as its object.
    unsafe {
        checked(((*(*domain.0).ops).endpoint)(domain.0, info, &mut ep, null_mut()))?;
        let ep = Handle(ep);
        let ops = (*ep.fid()).ops;
        checked(((*ops).bind)(ep.fid(), av.fid(), 0))?;
        checked(((*ops).bind)(ep.fid(), cq.fid(), FI_SEND | FI_RECV))?;
        checked(((*ops).control)(ep.fid(), FI_ENABLE, null_mut()))?;
        Ok(ep)
    }
}

/// The address at which others reach an endpoint.
fn name_of(ep: &Handle<Ep>) -> Result<Vec<u8>, i32> {
    let mut name = vec![0; MAX_NAME];
    let mut used = name.len();
    // SAFETY: the endpoint is open; no more is written than there is room for.
    checked(unsafe { ((*(*ep.0).cm).getname)(ep.fid(), name.as_mut_ptr().cast(), &mut used) })?;
    name.truncate(used);
    Ok(name)
}

/// The descriptor to wait for.
fn descriptor_of(cq: &Handle<Cq>) -> Result<i32, i32> {
    let mut descriptor = -1;
    // SAFETY: the queue is open; this command writes one number.
    checked(unsafe { ((*(*cq.fid()).ops).control)(cq.fid(), FI_GETWAIT, (&raw mut descriptor).cast()) })?;
    Ok(descriptor)
}

/// What is asked of the queue for all that ends.
fn queue_for(offer: &Offer, wait_set: Option<&Handle<Wait>>) -> CqAttr {
    // SAFETY: the offer's structure is valid with all its parts.
    let (tx, rx) = unsafe { ((*(*offer.info).tx_attr).size, (*(*offer.info).rx_attr).size) };
    CqAttr {
        size: tx.saturating_add(rx).clamp(64, 1 << 16),
        flags: 0,
        format: FI_CQ_FORMAT_MSG,
        wait_obj: if wait_set.is_some() { FI_WAIT_SET } else { FI_WAIT_FD },
        signaling_vector: 0,
        wait_cond: 0,
        wait_set: wait_set.map_or(null_mut(), |set| set.0),
    }
}

/// Opens what queues can tell when something has ended; `None` if the provider has no such thing.
fn open_wait_set(fabric: &Handle<Fabric>) -> Option<Handle<Wait>> {
    let (mut attr, mut set) = (WaitAttr { wait_obj: FI_WAIT_FD, flags: 0 }, null_mut());
    // SAFETY: the fabric is open; the set is written.
    let opened = unsafe { ((*(*fabric.0).ops).wait_open)(fabric.0, &mut attr, &mut set) };
    (opened == 0).then(|| Handle(set))
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if !self.region.is_null() {
            close(self.region.cast());
        }
        // SAFETY: it was allocated with this layout. The endpoint was closed before, so no operation is under way.
        unsafe { dealloc(self.bytes.as_ptr(), layout(self.len)) };
    }
}

fn layout(len: usize) -> Layout {
    Layout::from_size_align(len.max(1), 64).expect("buffers are short")
}

const _: () = assert!(size_of::<Context>() >= 64, "libfabric asks for eight words");
