//! While one rank runs under a debugger (`limosa run --debug`): the job goes on when other ranks end, for as long as
//! the debugger runs, and the terminal's keys are the debugger's.
//!
//! Debugger and launcher are in one process group. So the debugger may read the terminal, gets Ctrl-C and Ctrl-Z from
//! it, and may lend it to the program, as it would without a launcher.

use std::time::{Duration, Instant};

use limosa_job::State;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

use super::{Job, is_stdin_terminal};
use crate::message;
use crate::run::Settings;
use crate::run::outcome::Cause;
use crate::run::output::is_terminal;
use crate::run::rank::Ended;

/// Time from the end of a rank until it is told: ranks that finalize together end together.
const TOLD_AFTER: Duration = Duration::from_millis(500);

/// The state of a job with a debugger.
pub struct Debugging {
    /// Causes that would have ended the job, which have been told.
    told: Vec<Cause>,
    /// Ranks that have ended in order, and when they are told unless the debugged rank ends, too.
    ended: Vec<u32>,
    tell_at: Option<Instant>,
    /// Settings of the terminal at the start.
    terminal: Option<Termios>,
}

impl Debugging {
    /// Keeps the settings of the terminal, if there is a debugger and this process may read the terminal.
    pub fn new(settings: &Settings) -> Debugging {
        let stdin = std::io::stdin();
        let is_foreground = tcgetpgrp(&stdin).is_ok_and(|group| group == rustix::process::getpgrp());
        let terminal = settings.debugged.as_ref().filter(|_| is_foreground).and_then(|_| tcgetattr(&stdin).ok());
        Debugging { told: Vec::new(), ended: Vec::new(), tell_at: None, terminal }
    }

    /// Returns whether the user has been told of this cause already.
    pub fn has_told(&self, cause: &Cause) -> bool {
        self.told.contains(cause)
    }

    /// Returns when ended ranks are to be told.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.tell_at
    }

    /// Takes the terminal back from a program or a debugger that was killed.
    pub fn give_terminal_back(&mut self) {
        if let Some(settings) = self.terminal.take() {
            let stdin = std::io::stdin();
            // A terminal that is gone needs nothing.
            let _ = tcsetpgrp(&stdin, rustix::process::getpgrp());
            let _ = tcsetattr(&stdin, OptionalActions::Drain, &settings);
        }
    }
}

impl Job<'_> {
    /// Returns the rank whose debugger runs.
    fn debugged(&self) -> Option<u32> {
        let rank = self.settings.debugged.as_ref()?.rank;
        self.ranks.get(rank as usize).is_some_and(|rank| rank.is_debugged && rank.ended.is_none()).then_some(rank)
    }

    /// Says at a terminal which rank is under the debugger.
    pub(super) fn announce_debugger(&mut self) {
        if let Some(debugged) = self.settings.debugged.as_ref().filter(|_| is_terminal(true) && is_stdin_terminal()) {
            let (rank, word) = (debugged.rank, debugged.debugger.word());
            self.say(&format!("limosa: rank {rank} is under {word}; the job ends with the debugger\n"));
        }
    }

    /// Returns whether the signal does not concern the launcher: interrupts are the debugger's, which gets those of the
    /// terminal by itself.
    pub(super) fn is_for_debugger(&self, signal: i32, is_of_terminal: bool) -> bool {
        let Some(rank) = self.debugged().filter(|_| [libc::SIGINT, libc::SIGQUIT].contains(&signal)) else {
            return false;
        };
        if !is_of_terminal {
            self.ranks[rank as usize].signal(signal);
        }
        true
    }

    /// Tells the cause instead of ending the job for it, while the debugger runs. Returns whether the job goes on.
    pub(super) fn waits_for_debugger(&mut self, cause: &Cause) -> bool {
        let Some(rank) = self.debugged().filter(|_| self.interrupted.is_none()) else { return false };
        if cause.rank().is_none() || matches!(cause, Cause::NotStarted { .. }) {
            return false;
        }
        if !self.debugging.has_told(cause) {
            let text = self.message_for(cause, 0).unwrap_or_default();
            self.say(&text);
            if self.debugging.told.is_empty() {
                self.say(&format!("limosa: the job goes on until the debugger of rank {rank} ends\n"));
            }
            self.debugging.told.push(cause.clone());
        }
        true
    }

    /// Tells which ranks have ended, if the debugged rank goes on without them.
    pub(super) fn tell_of_ended_ranks(&mut self, now: Instant) {
        if self.debugging.tell_at.take_if(|at| *at <= now).is_none() {
            return;
        }
        let mut ended = std::mem::take(&mut self.debugging.ended);
        ended.sort_unstable();
        let goes_on = self.debugged().is_some_and(|rank| self.board.view(rank).state != State::Finalized);
        if goes_on && self.ending.is_none() {
            let verb = if ended.len() == 1 { "has" } else { "have" };
            self.say(&format!("limosa: {} {verb} ended\n", message::ranks(&ended)));
        }
    }

    /// A rank of a job with a debugger has ended. Returns whether nothing else follows from that.
    pub(super) fn ended_beside_debugger(&mut self, rank: u32, ended: Ended, state: State) -> bool {
        if !self.ranks[rank as usize].is_debugged {
            if ended == Ended::Code(0) && self.debugged().is_some() {
                self.debugging.ended.push(rank);
                self.debugging.tell_at.get_or_insert(Instant::now() + TOLD_AFTER);
            }
            return false;
        }
        let has_left = ended == Ended::Code(0) && state != State::Finalized && self.running() > 0;
        let cause = self.debugging.told.first().cloned().or(has_left.then_some(Cause::DebuggerLeft { rank }));
        if let Some(cause) = cause {
            self.end(cause);
        }
        self.ending.is_some()
    }
}
