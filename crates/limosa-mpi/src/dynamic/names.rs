//! Names of services (MPI-5 section 11.9.4).
//!
//! A launcher keeps the port of each name that was published in its job. A lookup asks the process's own launcher
//! first, and then those of all other jobs of the same user. Nothing is written anywhere, so no name outlives its job.

use std::os::unix::net::UnixStream;

use limosa_job::control::{self, Reply, Request};

use super::{ask, job};
use crate::error::Result;
use crate::fail;

fn refused<T>(reply: Reply) -> Result<T> {
    match reply {
        Reply::Refused { text, .. } => fail!(MPI_ERR_SERVICE, "{text}"),
        _ => fail!(MPI_ERR_INTERN, "the launcher's answer is not understood"),
    }
}

/// Publishes a port under a name.
///
/// # Errors
/// `MPI_ERR_SERVICE` if the name is taken.
pub fn publish(service: &[u8], port: &[u8]) -> Result<()> {
    match ask(&Request::Publish { service: service.to_vec(), port: port.to_vec() })?.1 {
        Reply::Done => Ok(()),
        other => refused(other),
    }
}

/// Takes a name back.
///
/// # Errors
/// `MPI_ERR_SERVICE` if it is not published.
pub fn unpublish(service: &[u8]) -> Result<()> {
    match ask(&Request::Unpublish { service: service.to_vec() })?.1 {
        Reply::Done => Ok(()),
        other => refused(other),
    }
}

/// Returns the port that was published under this name: in this job, or else in a different job of this user.
///
/// # Errors
/// `MPI_ERR_NAME` if there is none, or if several other jobs have published different ones.
pub fn look_up(service: &[u8]) -> Result<Vec<u8>> {
    let job = job()?;
    let request = Request::Lookup { service: service.to_vec() };
    // A program without a launcher has published nothing.
    if let Ok(own) = control::connect(job.id())
        && let Some(port) = found(&own, &request)
    {
        return Ok(port);
    }
    let mut ports: Vec<Vec<u8>> =
        control::connect_to_others(job.id()).iter().filter_map(|other| found(other, &request)).collect();
    ports.sort_unstable();
    ports.dedup();
    let name = String::from_utf8_lossy(service);
    match (ports.pop(), ports.len()) {
        (Some(port), 0) => Ok(port),
        (Some(_), more) => fail!(
            MPI_ERR_NAME,
            "the name `{name}` is published in {} other jobs: which one is meant cannot be known",
            more + 1
        ),
        (None, _) => fail!(
            MPI_ERR_NAME,
            "no name `{name}` is published in this job, or in another job of this user whose launcher is on this host"
        ),
    }
}

fn found(launcher: &UnixStream, request: &Request) -> Option<Vec<u8>> {
    control::send(launcher, &request.fields()).ok()?;
    match control::receive(launcher).and_then(Reply::read) {
        Ok(Reply::Port(port)) => Some(port),
        _ => None,
    }
}
