//! Names of services (MPI-5 section 11.9.4): the launcher keeps which port each means, for all processes of its job.

use limosa_job::control::{Reply, Request};

use super::ask;
use crate::error::Result;
use crate::fail;

fn refused<T>(reply: Reply, is_lookup: bool) -> Result<T> {
    match reply {
        Reply::Refused { text, .. } if is_lookup => fail!(MPI_ERR_NAME, "{text}"),
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
        other => refused(other, false),
    }
}

/// Takes a name back.
///
/// # Errors
/// `MPI_ERR_SERVICE` if it is not published.
pub fn unpublish(service: &[u8]) -> Result<()> {
    match ask(&Request::Unpublish { service: service.to_vec() })?.1 {
        Reply::Done => Ok(()),
        other => refused(other, false),
    }
}

/// The port that was published under this name.
///
/// # Errors
/// `MPI_ERR_NAME` if there is none.
pub fn look_up(service: &[u8]) -> Result<Vec<u8>> {
    match ask(&Request::Lookup { service: service.to_vec() })?.1 {
        Reply::Port(port) => Ok(port),
        other => refused(other, true),
    }
}
