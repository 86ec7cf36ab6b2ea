//! Jobs over several hosts.
//!
//! The *head* is the launcher that the user has started. On each other host it starts an *agent* by ssh, and both talk
//! over ssh's standard input and output ([`wire`]). An agent carries out what the head asks for and reports what
//! happens; it decides nothing, so that the head's main loop ([`super::launch`]) treats ranks of all hosts alike.
//!
//! The logins form a tree, so that many hosts do not all burden the head ([`callers`]). That changes the way only: an
//! agent passes on what the head and the agents behind it say, unread, and spreads what the head tells all hosts of a
//! rank.
//!
//! | file | holds |
//! |---|---|
//! | here | which host logs in to which, the devices between them, and what a program is told of its host |
//! | [`address`] | by which address other hosts reach this one |
//! | [`wire`] | messages between head and agents |
//! | [`login`] | a login on another host, of the head or of an agent |
//! | [`door`] | brings a new connection to an agent or a courier that runs |
//! | [`link`] | the head's end of a connection |
//! | [`tree`] | orders on their way through the tree of logins |
//! | [`agent`] | `limosa agent` |
//! | [`courier`] | what carries files between hosts that share no folder |
//! | [`folders`] | folders for the files of messages |

pub mod address;
pub mod agent;
pub mod courier;
pub mod door;
pub mod folders;
pub mod link;
pub mod login;
#[cfg(test)]
mod simulated;
pub mod tree;
pub mod wire;

use std::ffi::OsString;
use std::net::IpAddr;

use limosa_device::fabric::Library;
use limosa_job::ENV_HOST_ADDRESS;
use limosa_job::config::{Config, DeviceChoice};

use super::options::{Unusable, unusable};
use super::placement::Placement;
use super::plan::{self, App, Plan};

/// For each host the one that logs in to it; `None`: this machine does.
///
/// This machine and each other host log in to up to `width` hosts, in the order of the list, so that a host comes
/// behind the one that logs in to it. An address that means another machine on each host is for this machine.
pub fn callers(placement: &Placement, width: usize) -> Vec<Option<usize>> {
    let is_loopback = |name: &str| name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    let mut callers = vec![None; placement.hosts.len()];
    let others: Vec<usize> = (0..callers.len())
        .filter(|host| Some(*host) != placement.here && !is_loopback(&placement.hosts[*host].name))
        .collect();
    for (at, host) in others.iter().enumerate().skip(width) {
        callers[*host] = Some(others[at / width - 1]);
    }
    callers
}

/// The plan, unless its ranks on several hosts could not reach each other. Where no device is named, it is libfabric,
/// or files that ssh carries if there is no libfabric here.
///
/// # Errors
/// A sentence about that.
pub fn check(mut plan: Plan) -> Result<Plan, Unusable> {
    if plan.placement.hosts.is_empty() {
        return Ok(plan);
    }
    let config = plan::config_of_ranks(&plan);
    match config.device {
        DeviceChoice::Shm if !plan::names_device(&plan) => {
            let has_library = Library::load(config.fabric_library.as_deref()).is_ok();
            let device = if has_library { "shm,fabric" } else { "shm,file:local" };
            plan.apps.iter_mut().for_each(|app| app.env.push(("LIMOSA_DEVICE".into(), device.into())));
            Ok(plan)
        }
        DeviceChoice::Shm | DeviceChoice::Messages => unusable(
            "no device reaches the other hosts",
            "pass --device file:FOLDER, with a folder that all hosts share, --device file:local, or --device fabric"
                .to_owned(),
        ),
        DeviceChoice::Files(_) | DeviceChoice::LocalFiles(_) | DeviceChoice::Fabric => Ok(plan),
    }
}

/// The program with what its ranks on this host are to do: where each host has a folder of its own, which one it is;
/// and the address by which other hosts reach this one.
pub fn pinned(app: &App, device: &DeviceChoice, address: Option<IpAddr>) -> App {
    let mut app = app.clone();
    if let (DeviceChoice::Fabric, Some(address)) = (device, address) {
        app.env.push((ENV_HOST_ADDRESS.into(), address.to_string().into()));
    }
    if let DeviceChoice::LocalFiles(folder) = device {
        let mut value = OsString::from("file:local:");
        value.push(folder);
        app.env.push(("LIMOSA_DEVICE".into(), value));
    }
    app
}

/// For each rank its host, and the devices that reach the others (`--show-map`).
pub fn map_of(plan: &Plan, config: &Config) -> String {
    let is_alone = plan.placement.hosts.is_empty();
    let (inside, between) = match &config.device {
        DeviceChoice::Shm => ("shm", None),
        _ if is_alone && config.shares_memory && config.hosts == 1 => ("shm", None),
        DeviceChoice::Messages => ("messages", None),
        DeviceChoice::Files(folder) => {
            (if is_alone { "file" } else { "shm" }, Some(format!("file:{}", folder.display())))
        }
        DeviceChoice::LocalFiles(folder) if is_alone => ("file", Some(format!("file:{}", folder.display()))),
        // Other hosts may have theirs elsewhere.
        DeviceChoice::LocalFiles(_) => ("shm", Some("file:local".to_owned())),
        DeviceChoice::Fabric => (if is_alone { "fabric" } else { "shm" }, Some("fabric".to_owned())),
    };
    let uname = rustix::system::uname();
    let own = uname.nodename().to_string_lossy().into_owned();
    let mut text = String::new();
    for rank in 0..plan.ranks.len() as u32 {
        let host = plan.placement.hosts.iter().find(|host| host.ranks.contains(&rank));
        let name = host.map_or(&own, |host| &host.name);
        let devices = match (host, &between) {
            (Some(_), Some(device)) => format!("{inside} on this host, {device} to others"),
            (None, Some(device)) => device.clone(),
            _ => inside.to_owned(),
        };
        text.push_str(&format!("limosa: rank {rank} on {name}: {devices}\n"));
    }
    text
}

/// The variables of this process that mean something on other hosts, too: all but those that describe this host, this
/// login or this process.
pub fn portable_variables() -> Vec<(OsString, OsString)> {
    const LOCAL: [&str; 11] = [
        "HOSTNAME",
        "SHLVL",
        "PWD",
        "OLDPWD",
        "_",
        "DISPLAY",
        "XAUTHORITY",
        "XDG_RUNTIME_DIR",
        "DBUS_SESSION_BUS_ADDRESS",
        "STY",
        "TMUX",
    ];
    const FAMILIES: [&str; 6] = ["SSH_", "XDG_SESSION_", "LIMOSA_JOB_", "PMI_", "MPI_LOCAL", "OMPI_COMM_WORLD_"];
    let is_local = |name: &str| LOCAL.contains(&name) || FAMILIES.iter().any(|family| name.starts_with(family));
    std::env::vars_os().filter(|(name, _)| !name.to_str().is_some_and(is_local)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use limosa_job::HostPlan;

    #[test]
    fn logins_form_a_tree() {
        let names = ["a", "b", "me", "c", "127.0.0.9", "d", "e", "f"];
        let host = |(rank, name): (u32, &str)| HostPlan { name: name.into(), ranks: rank..rank + 1 };
        let hosts = (0..).zip(names).map(host).collect();
        let placement = Placement { hosts, slots: vec![1; names.len()], here: Some(2) };
        let name = |host: usize| placement.hosts[host].name.as_str();
        let tree = |width| callers(&placement, width).into_iter().map(|by| by.map_or("", name)).collect::<Vec<_>>();
        assert_eq!(tree(2), ["", "", "", "a", "", "a", "b", "b"]);
        assert_eq!(tree(1), ["", "a", "", "b", "", "c", "d", "e"]);
        assert_eq!(tree(16), [""; 8]);
    }
}
