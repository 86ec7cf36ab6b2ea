//! The address by which other hosts reach this one: libfabric offers all interfaces, and some lead nowhere (a bridge
//! for containers, a virtual machine's private network). The one that the logins use is known to work.

use std::net::{IpAddr, ToSocketAddrs, UdpSocket};
use std::process::{Command, Stdio};

use limosa_job::config::{Config, DeviceChoice};

use crate::run::placement::Placement;

/// The port that a route is asked for. Nothing is sent there.
const PORT: u16 = 22;

/// The address of this host that the login of its agent has used, as sshd says.
pub fn of_login() -> Option<IpAddr> {
    of_connection(&std::env::var("SSH_CONNECTION").ok()?)
}

/// The server's address in a value of `SSH_CONNECTION`: address and port of the client, then those of the server.
fn of_connection(value: &str) -> Option<IpAddr> {
    value.split_whitespace().nth(2)?.parse().ok().filter(|address: &IpAddr| !address.is_loopback())
}

/// The address of this machine on the way to the first other host of the job, if its ranks are to choose an interface.
pub fn towards_others(config: &Config, placement: &Placement) -> Option<IpAddr> {
    let here = placement.here.filter(|_| config.device == DeviceChoice::Fabric && config.fabric_interface.is_none())?;
    let (_, other) = placement.hosts.iter().enumerate().find(|(host, _)| *host != here)?;
    let name = name_for_ssh(&config.ssh, &other.name).unwrap_or_else(|| other.name.clone());
    (name.as_str(), PORT).to_socket_addrs().ok()?.find_map(|to| {
        let any: IpAddr = if to.is_ipv4() { [0u8; 4].into() } else { [0u8; 16].into() };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect(to).ok()?;
        socket.local_addr().ok().map(|own| own.ip()).filter(|own| !own.is_loopback())
    })
}

/// The name or address to which ssh connects for a host: its configuration may rename hosts.
fn name_for_ssh(ssh: &str, host: &str) -> Option<String> {
    let mut words = ssh.split_whitespace();
    let program = words.next().filter(|program| program.rsplit('/').next() == Some("ssh"))?;
    let asked = Command::new(program).arg("-G").args(words).arg(host).stdin(Stdio::null()).output().ok()?;
    let said = String::from_utf8(asked.stdout).ok()?;
    said.lines().find_map(|line| line.strip_prefix("hostname ")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_address_is_read_unless_it_means_another_machine_elsewhere() {
        assert_eq!(of_connection("10.0.0.1 51022 10.0.0.2 22"), "10.0.0.2".parse().ok());
        assert_eq!(of_connection("fd00::1 51022 fd00::2 22"), "fd00::2".parse().ok());
        for none in ["127.0.0.1 1 127.0.0.1 22", "10.0.0.1 51022", "", "a b c d"] {
            assert_eq!(of_connection(none), None, "{none}");
        }
    }
}
