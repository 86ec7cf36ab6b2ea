//! A kind of operation that the library does not know, made here, under the same requests and waits as all others.
//!
//! It is what the standard calls a generalised request: the program says when it has ended.

use limosa_mpi::comm::Comm;
use limosa_mpi::observe::Awaits;
use limosa_mpi::operation::{End, Operation};
use limosa_mpi::p2p::{self, SendMode};
use limosa_mpi::request::{self, Request};
use limosa_mpi::{Error, Region, Result, consts, fail, instance};
use limosa_p2p::View;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// A job of one process.
static WORLD: LazyLock<Arc<Comm>> =
    LazyLock::new(|| instance::init().expect("a job of one process").comm_world().clone());

/// The program completes it.
#[derive(Default)]
struct Generalised {
    complete: AtomicBool,
    cancelled: AtomicBool,
    starts: AtomicU32,
    freed: AtomicBool,
    fails: bool,
}

impl Generalised {
    fn complete(&self) {
        self.complete.store(true, Ordering::Release);
        WORLD.engine().notify();
    }
}

impl Operation for Generalised {
    fn start(self: Arc<Self>) -> Result<()> {
        if self.fails {
            fail!(MPI_ERR_OTHER, "it does not start");
        }
        self.complete.store(false, Ordering::Release);
        self.starts.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn progress(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }

    fn is_ready(&self, _view: &View<'_>) -> bool {
        self.progress()
    }

    fn finish(&self) -> Option<End> {
        self.look()
    }

    fn look(&self) -> Option<End> {
        let error = Error::new(consts::MPI_ERR_OTHER, "told by the operation");
        self.progress().then(|| End {
            bytes: 42,
            cancelled: self.cancelled.load(Ordering::Relaxed),
            error: Some(error),
            ..End::empty()
        })
    }

    fn cancel(&self) -> Result<()> {
        self.cancelled.store(true, Ordering::Relaxed);
        self.complete();
        Ok(())
    }

    fn release(&self) -> Result<()> {
        self.freed.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn awaits(&self) -> Option<Awaits<'_>> {
        None
    }
}

fn send_to_self(tag: i32, word: &mut u64) -> Arc<Request> {
    // SAFETY: the tests keep the word until the send is done.
    let region = unsafe { Region::contiguous((word as *mut u64).cast(), 8) };
    p2p::isend(&WORLD, region, 0, tag, SendMode::Synchronous).unwrap().into_object()
}

fn receive_from_self(tag: i32, word: &mut u64) -> Arc<Request> {
    // SAFETY: the tests leave the word alone until the receive is done.
    let region = unsafe { Region::contiguous((word as *mut u64).cast(), 8) };
    p2p::ireceive(&WORLD, region, 0, tag).unwrap().into_object()
}

#[test]
fn its_end_is_what_the_operation_says_and_is_taken_once() {
    let operation = Arc::new(Generalised::default());
    let request = Request::under_way(None, operation.clone());
    assert!(request.is_active() && !request.is_done());
    assert!(request.take().is_none() && request.look().is_none());
    operation.complete();
    assert_eq!(request.look().expect("it has ended").bytes, 42);
    let end = request.take().expect("it has ended");
    assert_eq!((end.bytes, end.error.map(|error| error.class)), (42, Some(consts::MPI_ERR_OTHER)));
    assert_eq!(request.take().expect("inactive").bytes, 0, "the end was taken");
}

#[test]
fn waiting_for_all_of_several_kinds_ends_when_the_last_has_ended() {
    let (mut sent, mut received) = (7, 0);
    let operation = Arc::new(Generalised::default());
    let receive = receive_from_self(1, &mut received);
    let requests =
        [Some(Request::under_way(None, operation.clone())), Some(receive), None, Some(send_to_self(1, &mut sent))];
    assert!(!request::test_all(&requests));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(5));
            operation.complete();
        });
        request::wait_all(&requests).expect("not interrupted");
    });
    assert!(requests.iter().flatten().all(|request| request.is_done()));
    let bytes: Vec<u64> =
        requests.iter().flatten().map(|request| request.take().expect("it has ended").bytes).collect();
    assert_eq!((bytes[0], bytes[1], received), (42, 8, 7));
}

#[test]
fn waiting_for_one_of_several_kinds_finds_the_one_that_has_ended() {
    let (mut sent, mut received) = (9, 0);
    let operation = Arc::new(Generalised::default());
    let requests = [Some(receive_from_self(2, &mut received)), Some(Request::under_way(None, operation.clone()))];
    assert_eq!(request::test_some(&requests), Some(vec![]));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(5));
            operation.complete();
        });
        assert_eq!(request::wait_any(&requests), Ok(Some(1)));
    });
    assert_eq!(request::test_some(&requests), Some(vec![1]));
    let send = [Some(send_to_self(2, &mut sent))];
    assert_eq!(request::wait_any(&requests[..1]), Ok(Some(0)));
    request::wait_all(&send).expect("not interrupted");
    assert_eq!(received, 9);
}

#[test]
fn a_persistent_one_starts_again_after_each_end_and_not_before() {
    let operation = Arc::new(Generalised::default());
    let request = Request::persistent(&WORLD, operation.clone());
    assert!(request.cancel().is_err(), "there is nothing to cancel yet");
    for _ in 0..3 {
        assert!(!request.is_active());
        request.start().unwrap();
        assert!(request.is_active() && request.take().is_none());
        assert_eq!(request.start().unwrap_err().class, consts::MPI_ERR_REQUEST, "it is active");
        operation.complete();
        assert!(request.take().is_some());
    }
    assert_eq!(operation.starts.load(Ordering::Relaxed), 3);
    request.start().unwrap();
    request.cancel().unwrap();
    assert!(request.take().expect("it has ended").cancelled);
}

#[test]
fn one_that_does_not_start_stays_inactive() {
    let request = Request::persistent(&WORLD, Arc::new(Generalised { fails: true, ..Generalised::default() }));
    for _ in 0..2 {
        assert_eq!(request.start().unwrap_err().class, consts::MPI_ERR_OTHER);
        assert!(!request.is_active());
    }
}

#[test]
fn freeing_releases_the_operation() {
    let operation = Arc::new(Generalised::default());
    let request = Request::under_way(Some(&WORLD), operation.clone());
    assert!(request.start().is_err(), "it is not persistent");
    request.release().unwrap();
    assert!(operation.freed.load(Ordering::Relaxed) && !request.is_active());
}

#[test]
fn a_request_that_is_done_is_not_waited_for() {
    let request = Request::done(None, End { bytes: 3, ..End::empty() });
    request::wait_all(&[Some(request.clone())]).expect("not interrupted");
    assert_eq!(request.take().map(|end| end.bytes), Some(3));
}
