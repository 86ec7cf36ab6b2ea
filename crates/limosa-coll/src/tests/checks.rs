//! Rejected arguments, with error class and message.

use super::*;
use crate::{CommState, allgather, allreduce, alltoall, bcast, gather, reduce, scatter};
use limosa_mpi::op::Op;

fn int() -> Arc<Datatype> {
    Datatype::named(MPI_INT32_T)
}

fn error<T>(result: Result<T>) -> (i32, String) {
    let error = result.err().expect("this is to be refused");
    (error.class, error.detail.into_owned())
}

#[test]
fn buffers_are_checked() {
    let null = std::ptr::null_mut();
    let somewhere = 4096 as *mut u8;
    let in_place = MPI_IN_PLACE as *mut u8;
    assert_eq!(error(Buffer::new(somewhere, -1, int(), "sendbuf")).0, MPI_ERR_COUNT);
    assert_eq!(error(Buffer::new(somewhere, i64::MAX, int(), "sendbuf")).0, MPI_ERR_COUNT);
    let (class, text) = error(Buffer::new(null, 3, int(), "sendbuf"));
    assert_eq!(class, MPI_ERR_BUFFER);
    assert!(text.contains("sendbuf") && text.contains('3'), "{text}");
    assert_eq!(error(Buffer::new(in_place, 3, int(), "buffer")).0, MPI_ERR_BUFFER);
    assert_eq!(error(Buffer::new(somewhere, 3, Datatype::contiguous(2, &int()).unwrap(), "sendbuf")).0, MPI_ERR_TYPE);
    assert!(Buffer::new(null, 0, int(), "sendbuf").is_ok());
    let derived = Datatype::contiguous(2, &int()).unwrap();
    derived.commit();
    assert!(Buffer::new(null, 3, derived, "sendbuf").is_ok(), "address 0 is MPI_BOTTOM for derived datatypes");
    assert!(
        Buffer::or_in_place(in_place, || -> Result<(i64, Arc<Datatype>)> { unreachable!("insignificant") }, "sendbuf")
            .unwrap()
            .is_none()
    );
    assert_eq!(error(Blocks::uneven(somewhere, &[1, -2], vec![0, 1], int(), "recvbuf")).0, MPI_ERR_COUNT);
    assert_eq!(error(Blocks::even(somewhere, i64::MAX / 2, int(), 3, "recvbuf")).0, MPI_ERR_COUNT);
}

#[test]
fn roots_are_checked() {
    let comm = Comm::without_engine(3, 1);
    let memory = Memory::new(1, &int());
    for root in [-1, 3, MPI_PROC_NULL, MPI_ROOT] {
        assert_eq!(error(bcast::plan(&Call::begin(&comm), &memory.buffer(), root)).0, MPI_ERR_ROOT);
        assert_eq!(error(gather::plan(&Call::begin(&comm), Some(&memory.buffer()), None, root)).0, MPI_ERR_ROOT);
    }
    assert_eq!(CommState::of(&comm).numbers.blocking(), 8, "calls that fail are counted");
}

#[test]
fn in_place_is_for_the_root_of_rooted_operations() {
    let comm = Comm::without_engine(3, 1);
    let (memory, sum) = (Memory::new(3, &int()), Op::builtin(MPI_SUM).unwrap());
    assert_eq!(error(gather::plan(&Call::begin(&comm), None, None, 0)).0, MPI_ERR_BUFFER);
    assert_eq!(error(scatter::plan(&Call::begin(&comm), None, None, 0)).0, MPI_ERR_BUFFER);
    assert_eq!(error(reduce::plan(&Call::begin(&comm), None, Some(&memory.buffer()), &sum, 0)).0, MPI_ERR_BUFFER);
    assert!(gather::plan(&Call::begin(&comm), None, Some(&memory.blocks(3)), 1).is_ok());
}

#[test]
fn send_and_receive_buffers_must_be_apart() {
    let comm = Comm::without_engine(2, 1);
    let (memory, sum) = (Memory::new(2, &int()), Op::builtin(MPI_SUM).unwrap());
    let (whole, blocks) = (memory.buffer(), memory.blocks(2));
    let (class, text) = error(allreduce::plan(&Call::begin(&comm), Some(&whole), &whole, &sum));
    assert_eq!(class, MPI_ERR_BUFFER);
    assert!(text.contains("MPI_IN_PLACE"), "{text}");
    assert_eq!(error(allgather::plan(&Call::begin(&comm), Some(&whole.slice(0, 1)), &blocks)).0, MPI_ERR_BUFFER);
    assert_eq!(error(allgather::plan(&Call::begin(&comm), Some(&whole.slice(1, 1)), &blocks)).0, MPI_ERR_BUFFER);
    assert_eq!(error(alltoall::plan(&Call::begin(&comm), Some(&blocks), &blocks)).0, MPI_ERR_BUFFER);
    let nothing = whole.slice(0, 0);
    assert!(allreduce::plan(&Call::begin(&comm), Some(&nothing), &nothing, &sum).is_ok());
}

#[test]
fn operations_are_checked_against_the_datatype() {
    let comm = Comm::without_engine(2, 0);
    let memory = Memory::new(1, &Datatype::named(MPI_DOUBLE));
    let (class, text) =
        error(allreduce::plan(&Call::begin(&comm), None, &memory.buffer(), &Op::builtin(MPI_BAND).unwrap()));
    assert_eq!(class, MPI_ERR_OP);
    assert!(text.contains("MPI_BAND") && text.contains("MPI_DOUBLE"), "{text}");
}

#[test]
fn lengths_that_do_not_match_are_named() {
    let comm = Comm::without_engine(2, 0);
    let (send, receive) = (Memory::new(3, &int()), Memory::new(4, &int()));
    let (class, text) = error(allgather::plan(&Call::begin(&comm), Some(&send.buffer()), &receive.blocks(2)));
    assert_eq!(class, MPI_ERR_TRUNCATE);
    assert!(text.contains("12") && text.contains('8'), "{text}");
    let (class, _) = error(allgather::plan(&Call::begin(&comm), Some(&send.buffer().slice(0, 1)), &receive.blocks(2)));
    assert_eq!(class, MPI_ERR_COUNT);
}
