//! Looking for hangs, and reporting them.

use std::sync::mpsc::{self, TryRecvError};
use std::time::{Duration, Instant};

use limosa_job::config::OnHang;
use limosa_job::{RankView, State, monotonic_ns};

use super::{Hang, Job, Then, ring};
use crate::hang::alone::others_of;
use crate::hang::explain;
use crate::hang::stacks::{self, Places, Program};
use crate::hang::watch::{self, Look};
use crate::run::hosts::wire::Order;
use crate::run::outcome::Cause;

/// How long the report of a hang waits for the source lines. They take some tenths of a second; only a busy machine, or
/// a host that does not answer, makes it take so long.
const STACKS_WAIT: Duration = Duration::from_secs(30);

impl Hang {
    /// Adds what was found on a host.
    fn add(&mut self, host: Option<usize>, places: Places) {
        self.awaited.retain(|awaited| *awaited != host);
        self.found.threads.extend(places.threads);
        if places.program != Program::Compiled {
            self.found.program = places.program;
        }
        for note in places.notes {
            if !self.found.notes.contains(&note) {
                self.found.notes.push(note);
            }
        }
    }
}

impl Job<'_> {
    /// Not while the job is to end soon for a reason that is known: others wait then for a rank that has failed.
    pub(super) fn is_watching(&self) -> bool {
        self.settings.on_hang != OnHang::Off
            && self.ending.is_none()
            && self.soon.is_none()
            && self.ranks.iter().any(|rank| rank.seen_claim && rank.ended.is_none())
    }

    pub(super) fn look(&mut self) {
        if !self.has_heard_of_all() {
            return self.watch.host_is_silent(monotonic_ns());
        }
        if self.is_carrying() {
            return self.watch.begin_anew();
        }
        self.watch.is_between_hosts = !self.links.is_empty();
        let views = self.board.views();
        let neighbours = self.neighbours(&views);
        let found = self.watch.look(monotonic_ns(), &views, neighbours, others_of);
        match found {
            Look::Quiet => {}
            Look::Hang(hang) if self.hang.is_none() => {
                self.find_places(hang, &views, STACKS_WAIT, Then::GoOn);
            }
            Look::Hang(_) => {}
            // The job is never ended before its report: reading the source lines may take longer than the grace.
            Look::Overdue if self.hang.is_none() && self.settings.on_hang == OnHang::Abort => self.end(Cause::Hang),
            Look::Overdue => {}
        }
    }

    /// Looks up the source lines for the report of a hang.
    pub(super) fn find_places(&mut self, what: watch::Hang, views: &[RankView], wait: Duration, then: Then) {
        let targets: Vec<stacks::Target> = views
            .iter()
            .filter(|v| v.state == State::Running && self.board.is_here(v.rank))
            .map(|v| (v.rank, v.pid))
            .collect();
        let (send, places) = mpsc::channel();
        let wake = self.wake.clone();
        // Without the thread the channel is closed, and the report comes without source lines.
        let _ = std::thread::Builder::new().name("limosa-stacks".into()).spawn(move || {
            let _ = send.send(stacks::collect(&targets));
            ring(&wake);
        });
        self.questions += 1;
        let question = self.questions;
        self.order_all(&Order::Places(question));
        let others = (0..self.links.len()).filter(|host| self.links[*host].is_some()).map(Some);
        let awaited = others.chain([None]).collect();
        let found = Places::default();
        self.hang = Some(Hang { what, places, found, question, awaited, deadline: Instant::now() + wait, then });
    }

    /// The source lines of the ranks of another host.
    pub(super) fn add_places(&mut self, host: usize, question: u64, places: Places) {
        if let Some(hang) = self.hang.as_mut().filter(|hang| hang.question == question) {
            hang.add(Some(host), places);
        }
    }

    /// Reports the detected hang when its source lines are known, or when the time for them is over.
    pub(super) fn report_hang(&mut self, now: Instant) {
        let Some(hang) = &mut self.hang else { return };
        match hang.places.try_recv() {
            Ok(places) => hang.add(None, places),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => hang.awaited.retain(Option::is_some),
        }
        if !hang.awaited.is_empty() && now < hang.deadline {
            return;
        }
        let Some(Hang { what, then, found: places, .. }) = self.hang.take() else { return };
        let views: Vec<RankView> = self.board.views();
        if !matches!(then, Then::GoOn) {
            if self.all_wait(&views) {
                self.say(&explain::report(monotonic_ns(), &views, &what, &places, None));
            }
            return self.go_on(then);
        }
        let neighbours = self.neighbours(&views);
        if self.soon.is_some() || !self.watch.still_hangs(&views, &neighbours) {
            return;
        }
        let ends = self.settings.on_hang == OnHang::Abort;
        let ends_in = ends.then_some(self.settings.hang_grace);
        self.say(&explain::report(monotonic_ns(), &views, &what, &places, ends_in));
        match ends {
            true if what.may_be_overdue() => self.watch.begin_grace(monotonic_ns()),
            true if what.doubtful => {}
            true => self.end(Cause::Hang),
            false => self.say("hint: the job keeps waiting; Ctrl-C ends it, and --on-hang=abort would have\n"),
        }
    }
}
