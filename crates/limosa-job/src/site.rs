//! Launchers of others that start Limosa's programs: MPICH's and Intel MPI's hydra, Slurm's srun, Open MPI's and
//! PRRTE's prterun.
//!
//! Such a launcher gives each process a rank, and a *board of notices* on which the processes leave each other short
//! texts before they can communicate otherwise ([`Manager`]): by PMI-1 ([`pmi`]) or PMIx ([`pmix`]). With these the
//! processes of a host make themselves the segment that Limosa's own launcher would have made ([`join`]).
//!
//! Contract: what comes from a launcher is untrusted; a wrong or cut answer is an error with a sentence. A process that
//! was started as one of several never takes itself for the only one.

pub(crate) mod join;
pub mod pmi;
mod pmix;

use crate::error::JobError;
use crate::foreign;

/// What the library needs of a launcher.
pub(crate) trait Manager: Send {
    /// The launcher, for people.
    fn name(&self) -> &'static str;

    /// Number of this process among those that were started together, and how many these are.
    fn place(&self) -> (u32, u32);

    /// Number of this process's program, on a command line with several.
    fn appnum(&mut self) -> u32;

    /// Leaves a notice. `value` has at most 1000 letters, digits, commas, points, dashes and underscores.
    fn put(&mut self, key: &str, value: &str) -> Result<(), String>;

    /// Waits for all processes; from then on each sees what any has left before.
    fn fence(&mut self) -> Result<(), String>;

    /// The notice of process `from`.
    fn get(&mut self, from: u32, key: &str) -> Result<String, String>;

    /// Asks the launcher to end all processes.
    fn abort(&mut self, code: i32, message: &str);

    /// Takes leave: from now on the launcher does not miss this process when it ends.
    fn finalize(&mut self);
}

/// Longest value of a notice: hydra takes 1024 bytes.
#[cfg(test)]
pub(crate) const LONGEST: usize = 1000;

/// The launcher that has started this process as one of several; `None` if none has.
///
/// # Errors
/// There is one, but it cannot be spoken with.
pub(crate) fn find(value: &dyn Fn(&str) -> Option<String>) -> Result<Option<Box<dyn Manager>>, JobError> {
    let failed = |who: &str, what: String| {
        JobError::Foreign(format!(
            "it was started by {who}, with which it cannot speak: {what}. If the process is to be a job of its own, \
             unset {}",
            if value("PMI_FD").is_some() || value("PMI_PORT").is_some() {
                "PMI_FD, PMI_PORT, PMI_RANK and PMI_SIZE"
            } else {
                "PMIX_RANK and PMIX_NAMESPACE"
            }
        ))
    };
    let who = foreign::name(value);
    let found: Option<Box<dyn Manager>> = if let Some(found) = pmi::Client::find(who, value) {
        Some(Box::new(found.map_err(|what| failed(who, what))?))
    } else if let Some(found) = pmix::Client::find(who, value) {
        Some(Box::new(found.map_err(|what| failed(who, what))?))
    } else {
        match foreign::complaint(value) {
            Some(complaint) => return Err(JobError::Foreign(complaint)),
            None => None,
        }
    };
    let Some(mut manager) = found else { return Ok(None) };
    if manager.place().1 > 1 {
        return Ok(Some(manager));
    }
    manager.finalize();
    Ok(None)
}
