//! Buffered sends (MPI-5 section 3.6): the buffers that programs attach, and how much of them is in use.
//!
//! The bytes of buffered messages are kept on this library's heap; an attached buffer is the allowance for them. Each
//! message takes its packed size and `MPI_BSEND_OVERHEAD` from the allowance until it has been sent.
//!
//! There is a buffer per process, and one per session and per communicator for those that attach one;
//! `MPI_BUFFER_AUTOMATIC` is an allowance without limit.

use crate::check;
use crate::comm::Comm;
use crate::consts::{MPI_BSEND_OVERHEAD, MPI_BUFFER_AUTOMATIC};
use crate::error::{Result, error_of};
use crate::fail;
use crate::observe::{Awaits, Waiting};
use crate::operation::{End, Operation};
use crate::world::{SendBuffer, World};
use limosa_p2p::matching::Envelope;
use limosa_p2p::memory::Region;
use limosa_p2p::{Engine, Interrupted, Mode, Started, View};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The flush of a buffer: every message that leaves it tells the engine, which looks again.
impl Operation for SendBuffer {
    fn start(self: Arc<Self>) -> Result<()> {
        Ok(())
    }

    fn progress(&self) -> bool {
        self.is_empty()
    }

    fn is_ready(&self, _view: &View<'_>) -> bool {
        self.is_empty()
    }

    fn finish(&self) -> Option<End> {
        self.look()
    }

    fn look(&self) -> Option<End> {
        self.is_empty().then(End::empty)
    }

    fn cancel(&self) -> Result<()> {
        fail!(MPI_ERR_REQUEST, "the flush of a buffer cannot be cancelled")
    }

    fn release(&self) -> Result<()> {
        Ok(())
    }

    fn awaits(&self) -> Option<Awaits<'_>> {
        None
    }
}

/// Which buffer is meant: that of the process or of a communicator.
#[derive(Clone, Copy)]
pub enum BufferOwner<'a> {
    /// The process's buffer in this world.
    Process(&'a World),
    /// That of the session with this number.
    Session(&'a World, u64),
    /// The communicator's.
    Comm(&'a Comm),
}

impl<'a> BufferOwner<'a> {
    fn key(self) -> u64 {
        match self {
            BufferOwner::Process(_) => 0,
            BufferOwner::Session(_, number) => key_of_session(number),
            BufferOwner::Comm(comm) => comm.context(),
        }
    }

    /// Returns the world in which it is attached.
    pub fn world(self) -> &'a World {
        match self {
            BufferOwner::Process(world) | BufferOwner::Session(world, _) => world,
            BufferOwner::Comm(comm) => comm.world(),
        }
    }
}

fn key_of_session(number: u64) -> u64 {
    number << 1 | 1
}

/// Returns the buffer for a message on this communicator: its own, or that of the session that it comes from, or that
/// of the process.
fn buffer_for(comm: &Comm) -> Option<Arc<SendBuffer>> {
    let buffers = comm.world().buffers.0.lock();
    let session = || {
        Some(comm.group().session())
            .filter(|number| *number != 0)
            .and_then(|number| buffers.get(&key_of_session(number)))
    };
    buffers.get(&comm.context()).or_else(session).or_else(|| buffers.get(&0)).cloned()
}

/// Attaches a buffer.
///
/// # Errors
/// `MPI_ERR_BUFFER` if there is one already.
pub fn attach(place: BufferOwner<'_>, address: usize, bytes: usize) -> Result<()> {
    let mut buffers = place.world().buffers.0.lock();
    if buffers.contains_key(&place.key()) {
        fail!(MPI_ERR_BUFFER, "a buffer for buffered sends is attached already: detach it first");
    }
    buffers.insert(place.key(), Arc::new(SendBuffer { address, bytes, used: Arc::default() }));
    Ok(())
}

/// Detaches the buffer, after all messages in it have been sent; gives its address and length, both 0 if there was
/// none.
///
/// # Errors
/// [`Interrupted`]: it is still attached.
pub fn detach(place: BufferOwner<'_>) -> std::result::Result<(usize, usize), Interrupted> {
    let Some(buffer) = find(place) else { return Ok((0, 0)) };
    flush_buffer(&buffer, place.world())?;
    place.world().buffers.0.lock().remove(&place.key());
    Ok(buffer.attached())
}

/// Waits until no message is left in the buffer at this place.
///
/// # Errors
/// [`Interrupted`]: some are.
pub fn flush(place: BufferOwner<'_>) -> std::result::Result<(), Interrupted> {
    find(place).map_or(Ok(()), |buffer| flush_buffer(&buffer, place.world()))
}

fn flush_buffer(buffer: &SendBuffer, world: &World) -> std::result::Result<(), Interrupted> {
    buffer.flush(world.engine(), &Waiting::nothing_in_particular())
}

/// Returns the buffer at this place.
pub fn find(place: BufferOwner<'_>) -> Option<Arc<SendBuffer>> {
    place.world().buffers.0.lock().get(&place.key()).cloned()
}

/// Returns bytes to a buffer's allowance; a thread that waits for an empty buffer checks it again.
fn give_back(used: &AtomicUsize, bytes: usize, engine: &Engine) {
    if used.fetch_sub(bytes, Ordering::AcqRel) == bytes {
        engine.notify();
    }
}

/// Copies the message and sends it in the background.
pub(crate) fn send(comm: &Comm, world: u32, envelope: &Envelope, region: &Region) -> Result<()> {
    let Some(buffer) = buffer_for(comm) else {
        fail!(MPI_ERR_BUFFER, "no buffer for buffered sends is attached: call MPI_Buffer_attach first");
    };
    let data = check::without_header(region.len() as u64) as usize;
    let bytes = data + MPI_BSEND_OVERHEAD as usize;
    let used = buffer.used.fetch_add(bytes, Ordering::AcqRel);
    if buffer.address != MPI_BUFFER_AUTOMATIC && used + bytes > buffer.bytes {
        give_back(&buffer.used, bytes, comm.engine());
        // Perhaps some of it is already on its way.
        comm.engine().poll();
        let used = buffer.used.fetch_add(bytes, Ordering::AcqRel);
        if used + bytes > buffer.bytes {
            give_back(&buffer.used, bytes, comm.engine());
            fail!(
                MPI_ERR_BUFFER,
                "a buffered send of {data} bytes needs {bytes} bytes of buffer, but {used} of the attached {} bytes are \
                 in use",
                buffer.bytes
            );
        }
    }
    let mut copy = vec![0u8; region.len()].into_boxed_slice();
    region.read(0, &mut copy);
    // SAFETY: the copy lives in the continuation below until the message is away.
    let parcel = unsafe { Region::contiguous(copy.as_mut_ptr(), copy.len()) };
    let account = buffer.used.clone();
    match comm.engine().send(world, envelope, parcel, Mode::Standard) {
        Ok(Started::Done) => give_back(&account, bytes, comm.engine()),
        Ok(Started::Pending(id)) => comm.engine().then(
            id,
            Box::new(move |engine, _| {
                drop(copy);
                give_back(&account, bytes, engine);
            }),
        ),
        Err(failure) => {
            give_back(&account, bytes, comm.engine());
            return Err(error_of(failure));
        }
    }
    Ok(())
}
