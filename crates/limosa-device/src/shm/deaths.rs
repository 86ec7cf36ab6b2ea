//! Detection of deaths among the processes of this host.
//!
//! A process watches the processes whose numbers follow its own, at most [`MOST_WATCHED`] living ones: each by a
//! descriptor that becomes readable when the process ends, so that one sleep covers them all. A process that sees a
//! death marks it in the port of the dead process. In a larger job the other processes read these marks at intervals
//! ([`LONGEST_PAUSE`]), as they do where the system has no such descriptors.
//!
//! The program may have closed the descriptors, and opened others of the same numbers. A process whose descriptor
//! reports its end is therefore checked, and all are checked once the descriptors are lost.
//!
//! A process that has said that it leaves ([`DeathWatch::leave`]) is not missed when it ends. One that has not joined
//! is not known, and watched once it has.

use super::ports::Ports;
use crate::Address;
use limosa_base::descriptor::Descriptor;
use limosa_base::process::Identity;
use limosa_base::readiness::{StopSignal, Wakened, is_readable, wait_any};
use limosa_base::sync::{Mutex, Ordering};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// Most processes that a process watches: what they cost grows with the square of a host's processes up to here, and
/// then with their number.
const MOST_WATCHED: usize = 64;
/// Time between checks while a process is not watched: a process that has not joined yet will soon, or never.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// Longest such time; each is twice as long as the one before.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Watches for the deaths of the processes of this host. One thread waits; any thread may look.
pub struct DeathWatch {
    ports: Arc<Ports>,
    me: Address,
    found: Mutex<Watched>,
}

/// Knowledge about a process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// It is not watched.
    Nothing,
    /// It is watched, by a descriptor.
    Watched,
    /// It has to be asked about, since there is no descriptor for it.
    Asked,
    /// It has ended, is this process, or is not known to this one.
    Ended,
}

struct Watched {
    known: Vec<Known>,
    watched: Vec<(Address, Arc<Descriptor>)>,
    /// In the order in which they were found.
    dead: Vec<Address>,
}

impl DeathWatch {
    /// The first look should come so much later than the start of the job, which needs the processors, and of which all
    /// others have joined by then.
    pub const FIRST_LOOK: Duration = FIRST_PAUSE;

    pub(super) fn new(ports: Arc<Ports>, me: Address, there: Range<Address>, size: u32) -> DeathWatch {
        let mut known: Vec<Known> =
            (0..size).map(|each| if there.contains(&each) { Known::Nothing } else { Known::Ended }).collect();
        known[me as usize] = Known::Ended;
        DeathWatch { ports, me, found: Mutex::new(Watched { known, watched: Vec::new(), dead: Vec::new() }) }
    }

    /// Another process has this number now, and is watched.
    pub fn meet(&self, peer: Address) {
        let mut found = self.found.lock();
        found.watched.retain(|(watched, _)| *watched != peer);
        found.known[peer as usize] = Known::Nothing;
    }

    /// For tests: gives this process a different identity.
    #[doc(hidden)]
    pub fn stand_for(&self, process: Identity) {
        self.ports.of(self.me).is_that_of(process);
    }

    /// This process is missed from now on if it ends without having left.
    pub fn stay(&self) {
        self.ports.of(self.me).has_left.store(0, Ordering::Release);
    }

    /// Records that this process needs no other process any more, and is not needed.
    pub fn leave(&self) {
        self.ports.of(self.me).has_left.store(1, Ordering::Release);
    }

    /// Sleeps until a process has died that had not left; false if the signal was given.
    pub fn wait(&self, stop: &StopSignal) -> bool {
        let mut pause = FIRST_PAUSE;
        loop {
            if self.look() {
                return true;
            }
            let (descriptors, timeout) = self.watched(pause);
            let descriptors: Vec<BorrowedFd<'_>> = descriptors.iter().filter_map(|each| each.get().ok()).collect();
            match wait_any(&descriptors, stop, timeout) {
                Wakened::Stopped => return false,
                Wakened::Lost => {
                    self.ask_about_all();
                    if stop.sleep(pause) {
                        return false;
                    }
                    pause = (2 * pause).min(LONGEST_PAUSE);
                }
                Wakened::Readable => {}
                Wakened::TooLate => pause = (2 * pause).min(LONGEST_PAUSE),
            }
        }
    }

    /// Checks all processes instead of watching them.
    fn ask_about_all(&self) {
        let mut found = self.found.lock();
        for (address, _) in std::mem::take(&mut found.watched) {
            found.known[address as usize] = Known::Asked;
        }
    }

    /// Returns the descriptors to sleep on, and the longest time: for ever, if all processes are watched.
    fn watched(&self, pause: Duration) -> (Vec<Arc<Descriptor>>, Option<Duration>) {
        let found = self.found.lock();
        let is_complete = found.known.iter().all(|known| matches!(known, Known::Watched | Known::Ended));
        (found.watched.iter().map(|(_, descriptor)| descriptor.clone()).collect(), (!is_complete).then_some(pause))
    }

    /// Checks for deaths, without waiting; true if a process has died since the last check.
    pub fn look(&self) -> bool {
        let mut found = self.found.lock();
        let before = found.dead.len();
        let has_ended = |descriptor: &Descriptor| descriptor.get().map_or(true, is_readable);
        for (address, _) in found.watched.extract_if(.., |(_, each)| has_ended(each)).collect::<Vec<_>>() {
            let has_left = self.ports.of(address).has_left.load(Ordering::Acquire) != 0;
            match self.ports.of(address).is_alive() {
                // The descriptor is not ours any more.
                true => found.known[address as usize] = Known::Asked,
                false => self.ended(&mut found, address, has_left),
            }
        }
        let size = found.known.len() as Address;
        for address in (0..size).filter(|address| found.known[*address as usize] != Known::Ended).collect::<Vec<_>>() {
            let (port, known) = (self.ports.of(address), found.known[address as usize]);
            // A mark is another process's word; the system's counts.
            let is_suspect = known == Known::Asked || port.has_died.load(Ordering::Relaxed) != 0;
            let has_left = port.has_left.load(Ordering::Acquire) != 0;
            if is_suspect && !port.is_alive() {
                found.watched.retain(|(watched, _)| *watched != address);
                self.ended(&mut found, address, has_left);
            }
        }
        self.watch_more(&mut found);
        found.dead.len() > before
    }

    /// Returns the processes that have died and had not left, without the first `known` that were found.
    pub(super) fn dead_after(&self, known: usize) -> Vec<Address> {
        self.found.lock().dead.get(known..).map_or(Vec::new(), <[Address]>::to_vec)
    }

    fn ended(&self, found: &mut Watched, address: Address, has_left: bool) {
        found.known[address as usize] = Known::Ended;
        let port = self.ports.of(address);
        if !has_left {
            port.has_died.store(1, Ordering::Relaxed);
            found.dead.push(address);
        }
    }

    /// Watches more processes, if there are any that have joined.
    fn watch_more(&self, found: &mut Watched) {
        let size = found.known.len() as Address;
        let mut count = found.known.iter().filter(|known| matches!(known, Known::Watched | Known::Asked)).count();
        for address in (1..size).map(|distance| (self.me + distance) % size) {
            if count == MOST_WATCHED {
                return;
            }
            let process = self.ports.of(address).process().filter(|_| found.known[address as usize] == Known::Nothing);
            let Some(process) = process else { continue };
            if process.pid == std::process::id() {
                // A thread of this process, which does not die alone.
                found.known[address as usize] = Known::Ended;
                continue;
            }
            match process.watch() {
                Ok(Some(descriptor)) => {
                    found.known[address as usize] = Known::Watched;
                    found.watched.push((address, Arc::new(descriptor)));
                    count += 1;
                }
                Ok(None) => {
                    let has_left = self.ports.of(address).has_left.load(Ordering::Acquire) != 0;
                    self.ended(found, address, has_left);
                }
                Err(_) => {
                    found.known[address as usize] = Known::Asked;
                    count += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::killed;
    use super::super::{Device, Seats, ShmDevice};
    use super::*;
    use limosa_base::segment::{self, PAGE};
    use std::os::fd::AsFd;
    use std::process::{Child, Command};

    fn joined(size: u32) -> Vec<ShmDevice> {
        let file = segment::create(c"limosa-test", PAGE as u64).expect("a memfd");
        (0..size)
            .map(|rank| ShmDevice::join(file.as_fd(), PAGE as u64, &Seats::all(rank, size), true).expect("joining"))
            .collect()
    }

    fn sleeper() -> (Child, Identity) {
        let child = Command::new("sleep").arg("1000").spawn().expect("a process");
        let identity = Identity::of(child.id());
        (child, identity)
    }

    fn end(mut child: Child) {
        child.kill().expect("our child");
        child.wait().expect("our child");
    }

    #[test]
    fn a_process_that_has_left_is_not_missed_unless_it_has_come_back() {
        let devices = joined(4);
        let children: Vec<_> = (1..4).map(|_| sleeper()).collect();
        for (device, (_, identity)) in devices[1..].iter().zip(&children) {
            device.deaths.stand_for(*identity);
        }
        devices[2].deaths.leave();
        devices[3].deaths.leave();
        assert!(!devices[0].deaths.look(), "all live");
        devices[3].deaths.stay();
        children.into_iter().for_each(|(child, _)| end(child));
        while devices[0].deaths.look() {}
        let mut dead = devices[0].deaths.dead_after(0);
        dead.sort_unstable();
        assert_eq!(dead, [1, 3]);
    }

    #[test]
    fn a_death_ends_a_wait_and_so_does_the_signal() {
        let devices = joined(2);
        let (child, identity) = sleeper();
        let stop = StopSignal::new().expect("an eventfd");
        // Until it joins, its port is empty: this process itself would be taken for a process that does not die alone.
        devices[1].ports.of(1).clear();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| devices[0].deaths.wait(&stop));
            // It joins while it is being waited for.
            devices[1].deaths.stand_for(identity);
            end(child);
            assert!(waiting.join().expect("no panic"));
            let waiting = scope.spawn(|| devices[0].deaths.wait(&stop));
            stop.give();
            assert!(!waiting.join().expect("no panic"));
        });
        assert_eq!(devices[0].deaths.dead_after(0), [1]);
    }

    #[test]
    fn in_a_large_job_watching_processes_tell_the_others() {
        let size = MOST_WATCHED as u32 + 10;
        let devices = joined(size);
        let last = size - 1;
        // All but the first two and the last have died already.
        let dead = killed();
        devices[2..last as usize].iter().for_each(|device| device.deaths.stand_for(dead));
        let (child, identity) = sleeper();
        devices[last as usize].deaths.stand_for(identity);
        let (other, identity) = sleeper();
        devices[1].deaths.stand_for(identity);
        assert!(devices[0].deaths.look());
        assert_eq!(devices[0].deaths.dead_after(0).len() as u32, size - 3);
        end(child);
        assert!(devices[0].deaths.look(), "it has gone on to watch those that live");
        assert_eq!(devices[0].deaths.dead_after(size as usize - 3), [last]);
        // The mark of a living process is ignored.
        devices[0].ports.of(1).has_died.store(1, Ordering::Relaxed);
        assert!(!devices[0].deaths.look());
        end(other);
    }

    #[test]
    fn sends_to_the_dead_fail_and_the_pool_gets_its_blocks_back() {
        use crate::{Data, DeviceError, Meta, Urgency};
        let mut devices = joined(3);
        let (child, identity) = sleeper();
        devices[1].deaths.stand_for(identity);
        for len in [0, 8, 1000] {
            let _ =
                devices[0].send(1, &Meta::default(), Data::Bytes(&vec![1; len]), Urgency::Normal).expect("it lives");
        }
        assert!(!devices[0].deaths.look());
        end(child);
        assert!(devices[0].deaths.look());
        devices[0].notice_deaths();
        for len in [0, 8, 1000] {
            let sent = devices[0].send(1, &Meta::default(), Data::Bytes(&vec![1; len]), Urgency::Normal);
            assert!(matches!(sent, Err(DeviceError::Died { peer: 1, .. })));
        }
        assert!(devices[0].pool.as_ref().is_some_and(|pool| pool.blocks.next_holder(0) != Some(1)));
        assert!(matches!(devices[0].poll(&mut |_, _, _| {}), Err(DeviceError::Died { peer: 1, .. })));
        assert!(devices[0].poll(&mut |_, _, _| {}).is_ok());
    }
}
