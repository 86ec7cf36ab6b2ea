//! What ranks ask the launcher for ([`limosa_job::control`]): spawns ([`super::spawn`]), names of ports, and
//! connections with ports on other hosts ([`super::tunnels`]). Ranks of other hosts ask the agent there, which passes
//! it on.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use limosa_job::control::{self, Fields, Refusal, Reply, Request};

use super::Job;
use crate::run::REQUEST;
use crate::run::hosts::tree;
use crate::run::hosts::wire::Order;

/// The sender of a request.
pub(super) enum Asker {
    /// A rank of this host.
    Here(UnixStream),
    /// A rank of another host, which has this number at the agent there.
    There { host: usize, ask: u64 },
}

impl Job<'_> {
    /// A rank of this host asks for something.
    pub(super) fn on_control(&mut self) {
        if let Some(stream) = self.control.as_ref().and_then(|control| control::accept(control, REQUEST)) {
            let request = control::receive(&stream).and_then(Request::read);
            self.on_request(Asker::Here(stream), request);
        }
    }

    /// A rank of another host asks for something, says something more of what it has asked for, or has gone.
    pub(super) fn on_asker(&mut self, host: usize, ask: u64, fields: Option<Fields>) {
        let is_its = |asker: &Asker| matches!(asker, Asker::There { host: h, ask: a } if (*h, *a) == (host, ask));
        if let Some((number, end)) = self.tunnels.iter().find_map(|tunnel| tunnel.end_of(is_its)) {
            return self.pass_on(number, end, fields);
        }
        let under_way = self.spawning.iter().find(|spawning| is_its(&spawning.asker)).map(|spawning| spawning.number);
        match (under_way, fields) {
            (Some(number), fields) => {
                let is_go = fields.is_some_and(|fields| matches!(Request::read(fields), Ok(Request::Go)));
                self.proceed(number, is_go);
            }
            (None, Some(fields)) => self.on_request(Asker::There { host, ask }, Request::read(fields)),
            (None, None) => {}
        }
    }

    fn on_request(&mut self, asker: Asker, request: std::io::Result<Request>) {
        let reply = match request {
            Ok(Request::Spawn { rank, folder, programs }) => {
                match self.place(rank, &PathBuf::from(OsString::from_vec(folder)), &programs) {
                    Ok(placed) => return self.begin_spawn(asker, placed),
                    Err((why, text)) => Reply::Refused { why, text },
                }
            }
            Ok(Request::Reach { rank, port }) => return self.reach(asker, rank, port),
            Ok(Request::Go) => Reply::Refused { why: Refusal::Request, text: "there is nothing to start".into() },
            Ok(other) => self.named(other),
            Err(error) => Reply::Refused { why: Refusal::Request, text: error.to_string() },
        };
        self.answer(&asker, &reply);
    }

    /// Answers the asking rank, which may have ended.
    pub(super) fn answer(&mut self, asker: &Asker, reply: &Reply) {
        self.tell(asker, reply.fields());
    }

    pub(super) fn tell(&mut self, asker: &Asker, fields: Fields) {
        match asker {
            Asker::Here(stream) => drop(control::send(stream, &fields)),
            Asker::There { host, ask } => self.order(*host, &Order::Answer(*ask, fields)),
        }
    }

    pub(super) fn order(&mut self, host: usize, order: &Order) {
        tree::order(&mut self.links, host, order);
    }

    fn named(&mut self, request: Request) -> Reply {
        let refused = |text: String| Reply::Refused { why: Refusal::Name, text };
        let show = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        match request {
            Request::Publish { service, .. } if self.names.contains_key(&service) => {
                refused(format!("the name `{}` is published already: unpublish it first", show(&service)))
            }
            Request::Publish { service, port } => {
                self.names.insert(service, port);
                Reply::Done
            }
            Request::Unpublish { service } => match self.names.remove(&service) {
                Some(_) => Reply::Done,
                None => refused(format!("no name `{}` is published in this job", show(&service))),
            },
            Request::Lookup { service } => match self.names.get(&service) {
                Some(port) => Reply::Port(port.clone()),
                None => refused(format!("no name `{}` is published in this job", show(&service))),
            },
            Request::Spawn { .. } | Request::Go | Request::Reach { .. } => {
                refused("the request is not understood".into())
            }
        }
    }
}
