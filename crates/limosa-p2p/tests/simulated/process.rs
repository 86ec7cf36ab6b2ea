//! A process of a simulated run: its engine and its operations.

use limosa_p2p::matching::{Envelope, Pattern};
use limosa_p2p::memory::{Layout, Region};
use limosa_p2p::{Completion, Engine, Failure, Matched, Mode, RequestId, Started};
use std::sync::Arc;

/// Layout of blocks with gaps between them.
struct Strided {
    block: usize,
}

impl Strided {
    fn each(&self, offset: usize, len: usize, visit: &mut dyn FnMut(usize, usize, usize) -> bool) {
        let mut done = 0;
        while done < len {
            let at = offset + done;
            let part = (self.block - at % self.block).min(len - done);
            if !visit(at / self.block * 2 * self.block + at % self.block, done, part) {
                return;
            }
            done += part;
        }
    }
}

impl Layout for Strided {
    fn size(&self) -> usize {
        1
    }

    unsafe fn pack(&self, base: *const u8, _count: usize, offset: usize, dst: &mut [u8]) {
        self.each(offset, dst.len(), &mut |at, done, part| {
            // SAFETY: the caller guarantees the memory that the layout covers.
            unsafe { std::ptr::copy_nonoverlapping(base.add(at), dst[done..].as_mut_ptr(), part) };
            true
        });
    }

    unsafe fn unpack(&self, base: *mut u8, _count: usize, offset: usize, src: &[u8]) {
        self.each(offset, src.len(), &mut |at, done, part| {
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(src[done..].as_ptr(), base.add(at), part) };
            true
        });
    }

    fn pieces(
        &self,
        base: *mut u8,
        _count: usize,
        offset: usize,
        len: usize,
        visit: &mut dyn FnMut(*mut u8, usize) -> bool,
    ) {
        self.each(offset, len, &mut |at, _, part| visit(base.wrapping_add(at), part));
    }

    fn mean_piece(&self) -> usize {
        self.block
    }
}

/// Memory of a message: contiguous bytes, or blocks.
pub struct Buffer {
    memory: Box<[u8]>,
    len: usize,
    block: Option<usize>,
}

impl Buffer {
    pub fn new(bytes: &[u8], block: Option<usize>) -> Buffer {
        let covered = if block.is_some() { 2 * bytes.len() + block.unwrap_or(0) } else { bytes.len() };
        let mut buffer = Buffer { memory: vec![0; covered].into(), len: bytes.len(), block };
        buffer.region().write(0, bytes);
        buffer
    }

    /// Returns the region for an operation during which the buffer is neither moved nor read.
    pub fn region(&mut self) -> Region {
        let base = self.memory.as_mut_ptr();
        match self.block {
            // SAFETY: buffers live as long as their engines, and are read only when the operation is complete.
            None => unsafe { Region::contiguous(base, self.len) },
            // SAFETY: as above.
            Some(block) => unsafe { Region::typed(base, self.len, Arc::new(Strided { block })) },
        }
    }

    pub fn bytes(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.region().read(0, &mut bytes);
        bytes
    }
}

/// Name of an operation in the engine, or its completion.
pub enum Progress {
    Pending(RequestId),
    /// Extracted by a matched probe and not received yet.
    Held(Matched),
    Over(Completion),
}

pub enum What {
    Send { to: u32, message: u64 },
    Receive { pattern: Pattern },
}

/// An operation.
pub struct Op {
    pub what: What,
    pub progress: Progress,
    pub buffer: Buffer,
    /// Bytes that a receive got.
    pub got: Vec<u8>,
    pub cancelled: bool,
    /// Message that a probe had seen just before this receive was started.
    pub foreseen: Option<Completion>,
}

pub struct Process {
    pub engine: Arc<Engine>,
    pub ops: Vec<Op>,
    pub is_dead: bool,
    pub stopped_for: usize,
}

fn failed(failure: Failure) -> Progress {
    Progress::Over(Completion { failure: Some(Box::new(failure)), ..Completion::default() })
}

impl Process {
    pub fn send(&mut self, to: u32, envelope: Envelope, message: u64, mut buffer: Buffer, mode: Mode) {
        let progress = match self.engine.send(to, &envelope, buffer.region(), mode) {
            Ok(Started::Done) => Progress::Over(Completion::default()),
            Ok(Started::Pending(id)) => Progress::Pending(id),
            Err(failure) => failed(failure),
        };
        self.add(What::Send { to, message }, progress, buffer);
    }

    pub fn receive(&mut self, pattern: Pattern, mut buffer: Buffer) {
        let id = self.engine.receive(&pattern, buffer.region());
        self.add(What::Receive { pattern }, Progress::Pending(id), buffer);
    }

    /// Extracts a message by a matched probe, if there is one.
    pub fn hold(&mut self, pattern: Pattern) -> bool {
        let Ok(Some(matched)) = self.engine.probe_matched(&pattern) else { return false };
        let room = matched.completion().bytes as usize;
        let foreseen = Some(matched.completion());
        self.add(What::Receive { pattern }, Progress::Held(matched), Buffer::new(&vec![0; room], None));
        self.ops.last_mut().expect("just added").foreseen = foreseen;
        true
    }

    fn add(&mut self, what: What, progress: Progress, buffer: Buffer) {
        self.ops.push(Op { what, progress, buffer, got: Vec::new(), cancelled: false, foreseen: None });
        self.see_end(self.ops.len() - 1, false);
    }

    /// Starts to receive an extracted message.
    pub fn receive_held(&mut self, index: usize) {
        let op = &mut self.ops[index];
        if matches!(op.progress, Progress::Held(_))
            && let Progress::Held(matched) = std::mem::replace(&mut op.progress, Progress::Over(Completion::default()))
        {
            op.progress = Progress::Pending(self.engine.receive_matched(matched, op.buffer.region()));
        }
    }

    pub fn cancel(&mut self, index: usize) {
        if let Progress::Pending(id) = self.ops[index].progress
            && !self.ops[index].cancelled
        {
            self.ops[index].cancelled = true;
            self.engine.cancel(id);
        }
    }

    /// Takes the completion of an operation if it is complete; with `progress`, makes progress first.
    pub fn see_end(&mut self, index: usize, progress: bool) {
        let op = &mut self.ops[index];
        let Progress::Pending(id) = op.progress else { return };
        if progress {
            self.engine.test(id);
        }
        if let Some(end) = self.engine.take(id) {
            if matches!(op.what, What::Receive { .. }) {
                op.got = op.buffer.bytes();
                op.got.truncate(end.bytes as usize);
            }
            op.progress = Progress::Over(end);
        }
    }

    pub fn is_pending(&self, index: usize) -> bool {
        !matches!(self.ops[index].progress, Progress::Over(_))
    }
}
