//! Connections of ranks with ports on other hosts, over which the roots of two groups meet.
//!
//! A rank asks to reach a port ([`Request::Reach`](limosa_job::control::Request)). The launcher, or the agent of the
//! port's host, connects to it there. From then on each end is told what the other one says, until one of them goes.

use std::os::unix::net::UnixStream;

use limosa_job::control::{self, Fields, Refusal, Reply};

use super::Job;
use super::asking::Asker;
use crate::run::REQUEST;
use crate::run::hosts::wire::Order;

/// Numbers of ports among those that ask at an agent, which counts its own from 1.
const PORTS: u64 = 1 << 63;

/// Such a connection: the rank that has asked for it, and the port.
pub(super) struct Tunnel {
    pub number: u64,
    ends: [Asker; 2],
}

impl Tunnel {
    /// The ends on this host.
    pub fn streams(&self) -> impl Iterator<Item = (usize, &UnixStream)> {
        self.ends.iter().enumerate().filter_map(|(end, asker)| match asker {
            Asker::Here(stream) => Some((end, stream)),
            Asker::There { .. } => None,
        })
    }

    /// This tunnel's number and which end of it is so, if one is.
    pub fn end_of(&self, is_so: impl Fn(&Asker) -> bool) -> Option<(u64, usize)> {
        self.ends.iter().position(is_so).map(|end| (self.number, end))
    }
}

impl Job<'_> {
    /// A rank asks for a connection with a port of another rank.
    pub(super) fn reach(&mut self, asker: Asker, rank: u32, port: Vec<u8>) {
        self.reached += 1;
        let number = self.reached;
        let found = match self.ranks.get(rank as usize).map(|rank| rank.host) {
            None => Err(format!("there is no rank {rank}")),
            Some(None) => control::connect_to_port(&port)
                .and_then(|stream| control::limited(stream, REQUEST))
                .map(Asker::Here)
                .map_err(|error| format!("rank {rank} has no such open port: {error}")),
            Some(Some(host)) => {
                self.order(host, &Order::Reach(PORTS | number, port));
                Ok(Asker::There { host, ask: PORTS | number })
            }
        };
        match found {
            Ok(other) => {
                self.answer(&asker, &Reply::Done);
                self.tunnels.push(Tunnel { number, ends: [asker, other] });
            }
            Err(text) => self.answer(&asker, &Reply::Refused { why: Refusal::Name, text }),
        }
    }

    /// An end on this host says something, or has gone.
    pub(super) fn on_tunnel(&mut self, number: u64, end: usize) {
        let tunnel = self.tunnels.iter().find(|tunnel| tunnel.number == number);
        if let Some(Asker::Here(stream)) = tunnel.map(|tunnel| &tunnel.ends[end]) {
            let said = control::receive(stream).ok();
            self.pass_on(number, end, said);
        }
    }

    /// Tells the other end what this one says. `None`: it has gone.
    pub(super) fn pass_on(&mut self, number: u64, end: usize, said: Option<Fields>) {
        let Some(at) = self.tunnels.iter().position(|tunnel| tunnel.number == number) else { return };
        let tunnel = self.tunnels.swap_remove(at);
        let other = &tunnel.ends[1 - end];
        match (said, other) {
            (Some(said), _) => {
                self.tell(other, said);
                self.tunnels.push(tunnel);
            }
            (None, Asker::There { host, ask }) => self.order(*host, &Order::AskEnds(*ask)),
            // It is closed.
            (None, Asker::Here(_)) => {}
        }
    }
}
