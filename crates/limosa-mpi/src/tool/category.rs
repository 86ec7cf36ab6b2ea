//! Categories: what variables and events are about (MPI-5 section 15.3.9).

use super::{control, event, performance};
use limosa_job::config::Variable;

/// One category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// The root, which holds the others.
    All,
    /// Messages: how they travel, how many there are.
    Messages,
    /// Waiting: spinning, sleeping, waking.
    Waiting,
    /// Algorithms of collectives.
    Collectives,
    /// The job: the launcher, reports of hangs, objects, errors.
    Job,
}

/// All, by index.
pub const ALL: [Category; 5] =
    [Category::All, Category::Messages, Category::Waiting, Category::Collectives, Category::Job];

impl Category {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Category::All => "limosa",
            Category::Messages => "limosa_messages",
            Category::Waiting => "limosa_waiting",
            Category::Collectives => "limosa_collectives",
            Category::Job => "limosa_job",
        }
    }

    /// What belongs to it, in one sentence.
    pub fn text(self) -> &'static str {
        match self {
            Category::All => "All variables and events of Limosa",
            Category::Messages => "How messages travel between processes, and how many there are",
            Category::Waiting => "How a blocked call waits, and how often it sleeps",
            Category::Collectives => "Which algorithms collective operations take",
            Category::Job => "The launcher, reports of hangs, communicators and errors",
        }
    }

    /// Returns the categories in it.
    pub fn categories(self) -> Vec<usize> {
        if self == Category::All { (1..ALL.len()).collect() } else { Vec::new() }
    }

    /// Returns the control variables in it, by index.
    pub fn controls(self) -> Vec<usize> {
        let all = control::variables();
        (0..all.len()).filter(|&i| Category::of(all[i]) == self).collect()
    }

    /// Returns the performance variables in it, by index.
    pub fn performances(self) -> Vec<usize> {
        let of = |name: &str| {
            let is_of_waiting = ["limosa_sleeps", "limosa_wakeups", "limosa_helper_wakeups"].contains(&name);
            match name.strip_prefix("limosa_coll_") {
                Some(_) => Category::Collectives,
                None if is_of_waiting => Category::Waiting,
                None => Category::Messages,
            }
        };
        performance::all().enumerate().filter(|(_, variable)| of(&variable.name) == self).map(|(i, _)| i).collect()
    }

    /// Returns the events in it, by index.
    pub fn events(self) -> Vec<usize> {
        if self == Category::Job { (0..event::ALL.len()).collect() } else { Vec::new() }
    }

    fn of(variable: &Variable) -> Category {
        let name = variable.name;
        let is_about = |words: &[&str]| words.iter().any(|word| name.starts_with(&format!("LIMOSA_{word}")));
        if is_about(&["WAIT", "SPIN"]) {
            Category::Waiting
        } else if is_about(&["COLL"]) {
            Category::Collectives
        } else if is_about(&["DEVICE", "HOSTS", "CMA", "EAGER", "UNEXPECTED"]) {
            Category::Messages
        } else {
            Category::Job
        }
    }
}
