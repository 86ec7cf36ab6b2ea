//! Which rank is on which host: of the hosts that options list, or of a Slurm allocation ([`allocation`]).

mod allocation;

use std::fs;
use std::ops::Range;
use std::path::Path;

use limosa_job::{HostPlan, MAX_RANKS};

use super::options::{MapBy, Options, Unusable, unusable};

/// A host of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listed {
    name: String,
    /// How many ranks it takes, if that is said.
    slots: Option<u32>,
}

/// The hosts of a job, in the order of their ranks, and the one that is this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Empty if all ranks are on this machine.
    pub hosts: Vec<HostPlan>,
    /// For each of them how many ranks it takes.
    pub slots: Vec<u32>,
    /// `None` if this machine has no ranks.
    pub here: Option<usize>,
}

impl Placement {
    /// The host of a rank, by its number, if that is not this machine.
    pub fn elsewhere(&self, rank: u32) -> Option<usize> {
        self.hosts.iter().position(|host| host.ranks.contains(&rank)).filter(|host| Some(*host) != self.here)
    }

    /// The ranks of this machine in a job of so many.
    pub fn own(&self, size: u32) -> Range<u32> {
        match self.here {
            Some(here) => self.hosts[here].ranks.clone(),
            None if self.hosts.is_empty() => 0..size,
            None => 0..0,
        }
    }

    /// Whether a rank, or any rank, is on another host.
    pub fn is_elsewhere(&self, rank: Option<u32>) -> bool {
        rank.map_or(!self.hosts.is_empty(), |rank| self.elsewhere(rank).is_some())
    }
}

/// How many ranks each section has, and on which hosts they are.
///
/// The sections share one list of hosts, whose slots are filled in order. Where no host has a number of slots, all get
/// equally many ranks. Without `-n`, a program gets all slots, one for a host without a number. Without a list, the
/// hosts are those of an allocation of Slurm, if there is one.
pub fn place(sections: &[Options]) -> Result<(Vec<u32>, Placement), Unusable> {
    let mut lists: Vec<Vec<Listed>> = sections.iter().map(listed).collect::<Result<_, _>>()?;
    if lists.iter().all(Vec::is_empty) {
        lists.fill(allocation::hosts(&|name| std::env::var(name).ok()));
    }
    let given: Vec<&Vec<Listed>> = lists.iter().filter(|list| !list.is_empty()).collect();
    let list = given.first().map_or(&[][..], |list| list.as_slice());
    if given.iter().any(|other| other.as_slice() != list) {
        return unusable(
            "the programs of the job have different lists of hosts, which is not supported yet",
            "give one list, with the first program: its slots are filled in the order of the ranks".to_owned(),
        );
    }
    let asked = sections.iter().map(|section| section.count).try_fold(0u32, |sum, count| sum.checked_add(count?));
    let list = &mapped(list, sections, asked)?[..];
    let counts: Vec<u32> = match sections {
        [only] if only.count.is_none() && !list.is_empty() => vec![all_slots(list)],
        _ => sections.iter().map(|section| section.count.unwrap_or(1)).collect(),
    };
    let size = counts.iter().map(|count| u64::from(*count)).sum::<u64>();
    let Ok(size) = u32::try_from(size).map_err(|_| ()).and_then(|n| if n > MAX_RANKS { Err(()) } else { Ok(n) }) else {
        return unusable(format!("the job would have {size} ranks, but {MAX_RANKS} are the most"), None);
    };
    let uname = rustix::system::uname();
    let placement = spread(list, size, &uname.nodename().to_string_lossy())?;
    Ok((counts, placement))
}

/// The hosts with as many slots as `-ppn` or `--map-by` gives them; `asked`: the ranks of the job, if that is said.
fn mapped(list: &[Listed], sections: &[Options], asked: Option<u32>) -> Result<Vec<Listed>, Unusable> {
    let map_by = sections.iter().find_map(|section| section.map_by);
    let (each, option) = match (sections.iter().find_map(|section| section.per_host), map_by) {
        (Some(number), Some(MapBy::PerNode(other))) if number != other => {
            return unusable(format!("-ppn gives each host {number} ranks, and --map-by {other}"), None);
        }
        (Some(number), _) => (number, format!("-ppn {number}")),
        (None, Some(MapBy::PerNode(number))) => (number, format!("--map-by ppr:{number}:node")),
        (None, Some(MapBy::Node)) => (1, "--map-by node".to_owned()),
        (None, Some(MapBy::Slot) | None) => return Ok(list.to_vec()),
    };
    if map_by == Some(MapBy::Node) && each == 1 && !list.is_empty() {
        let size = asked.unwrap_or_else(|| all_slots(list));
        if size as usize > list.len() {
            return unusable(
                format!("--map-by node would scatter {size} ranks over {} hosts in turn", list.len()),
                "the ranks of a host have consecutive numbers here: `--map-by ppr:N:node`, or -ppn N, gives each host N"
                    .to_owned(),
            );
        }
    }
    if let Some(host) = list.iter().find(|host| host.slots.is_some_and(|slots| slots < each)) {
        let slots = host.slots.unwrap_or(1);
        return unusable(
            format!("{option} asks for {each} ranks on each host, but {} takes {slots}", host.name),
            "raise the number behind its name".to_owned(),
        );
    }
    Ok(list.iter().map(|host| Listed { slots: Some(each), ..host.clone() }).collect())
}

/// All slots of these hosts; one without a number has one.
fn all_slots(list: &[Listed]) -> u32 {
    list.iter().fold(0, |sum, host| sum.saturating_add(host.slots.unwrap_or(1)))
}

/// Which of `size` ranks are on which host of the list; `own` is the name of this machine.
fn spread(list: &[Listed], size: u32, own: &str) -> Result<Placement, Unusable> {
    if list.iter().all(|host| is_here(&host.name, own)) {
        return Ok(Placement::default());
    }
    // This machine has several names.
    let mut once: Vec<Listed> = Vec::new();
    for host in list {
        let name = if is_here(&host.name, own) { own } else { &host.name };
        join(&mut once, name, host.slots);
    }
    let list = &once;
    let total = all_slots(list);
    let is_counted = list.iter().any(|host| host.slots.is_some());
    if is_counted && size > total {
        return unusable(
            format!("the job has {size} ranks, but the listed hosts take {total}"),
            format!("raise the numbers behind the names, or use fewer ranks (-n {total})"),
        );
    }
    // In equal blocks, the first ones larger.
    let (each, more) = (size / list.len() as u32, size % list.len() as u32);
    let mut placement = Placement::default();
    let mut next = 0u32;
    for (at, host) in (0..).zip(list) {
        let room = if is_counted { host.slots.unwrap_or(1) } else { each + u32::from(at < more) };
        let ranks = next..next.saturating_add(room).min(size);
        next = ranks.end;
        if ranks.is_empty() {
            continue;
        }
        if is_here(&host.name, own) {
            placement.here = Some(placement.hosts.len());
        }
        placement.slots.push(host.slots.unwrap_or(0).max(ranks.end - ranks.start));
        placement.hosts.push(HostPlan { name: host.name.clone(), ranks });
    }
    // Those that are left over would run nothing.
    if placement.hosts.len() == 1 && placement.here.is_some() {
        return Ok(Placement::default());
    }
    Ok(placement)
}

/// The hosts that a section lists, each once.
fn listed(section: &Options) -> Result<Vec<Listed>, Unusable> {
    let mut named: Vec<Listed> = Vec::new();
    if let Some(list) = &section.host {
        // A bracket that does not close is refused with its entry.
        let entries = allocation::entries(list).unwrap_or_else(|| vec![list]);
        entries.into_iter().try_for_each(|entry| add(&mut named, entry.trim(), None))?;
    }
    let mut hosts: Vec<Listed> = Vec::new();
    if let Some(file) = &section.hostfile {
        let entries = lines(file)?;
        if entries.is_empty() {
            return unusable(
                format!("the host file {} lists no host", file.display()),
                "write a host in each line: HOST, HOST:N or HOST slots=N".to_owned(),
            );
        }
        for (entry, slots) in entries {
            add(&mut hosts, &entry, slots)?;
        }
        // The names choose hosts of the file.
        for host in &mut named {
            let Some(known) = hosts.iter().find(|known| known.name == host.name) else {
                return unusable(
                    format!("the host file {} does not list {}", file.display(), host.name),
                    "with a host file, -host chooses among its hosts".to_owned(),
                );
            };
            host.slots = host.slots.or(known.slots);
        }
        if named.is_empty() {
            return Ok(hosts);
        }
    }
    Ok(named)
}

/// The entries of a host file: a name, perhaps with `:N` or `slots=N` behind it. Open MPI's `max_slots=N` means nothing
/// here, and everything else is a mistake.
fn lines(file: &Path) -> Result<Vec<(String, Option<u32>)>, Unusable> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return unusable(format!("cannot read the host file {}: {error}", file.display()), None),
    };
    let mut entries = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut words = line.split('#').next().unwrap_or("").split_whitespace();
        let Some(name) = words.next() else { continue };
        let mut slots = None;
        for word in words {
            let number_of = |name: &str| word.strip_prefix(name)?.parse().ok().filter(|number| *number > 0);
            slots = match (number_of("slots="), number_of("max_slots=").or(number_of("max-slots="))) {
                (Some(number), _) => Some(number),
                (None, Some(_)) => slots,
                (None, None) => {
                    let what = format!("line {number} of the host file {}: `{word}` says nothing", file.display());
                    return unusable(what, "a line is HOST, HOST:N or HOST slots=N, with N above 0".to_owned());
                }
            };
        }
        if allocation::entries(name).is_none_or(|entries| entries.len() > 1) {
            let what = format!("line {number} of the host file {}: `{name}` is no name of a host", file.display());
            return unusable(what, "write each host in a line of its own".to_owned());
        }
        entries.push((name.to_owned(), slots));
    }
    Ok(entries)
}

/// Adds a host to the list; if it is there, its slots.
fn add(hosts: &mut Vec<Listed>, entry: &str, slots: Option<u32>) -> Result<(), Unusable> {
    let (name, behind) = split_slots(entry);
    let slots = match behind.map(|text| text.parse().ok().filter(|slots| *slots > 0)) {
        Some(None) => return unusable(format!("`{entry}` gives the host no ranks"), "write HOST or HOST:N".to_owned()),
        Some(slots) => slots,
        None => slots,
    };
    if name.contains('[') {
        let Some(names) = allocation::names(name) else {
            return unusable(format!("`{entry}` is no list of hosts"), "write node[1-8] or node[01,07]:2".to_owned());
        };
        names.iter().for_each(|name| join(hosts, name, slots));
        return Ok(());
    }
    // A name that begins with a dash would be an option of ssh; one with a single colon has another word for a number.
    let has_a_word = name.matches(':').count() == 1;
    if name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace) || has_a_word {
        let hint = "write HOST or HOST:N, with commas between several on the command line";
        return unusable(format!("`{entry}` is no name of a host"), hint.to_owned());
    }
    join(hosts, name, slots);
    Ok(())
}

fn join(hosts: &mut Vec<Listed>, name: &str, slots: Option<u32>) {
    match hosts.iter_mut().find(|host| host.name == name) {
        Some(host) => host.slots = Some(host.slots.unwrap_or(1).saturating_add(slots.unwrap_or(1))),
        None => hosts.push(Listed { name: name.to_owned(), slots }),
    }
}

/// Name and number of `host:slots`.
fn split_slots(entry: &str) -> (&str, Option<&str>) {
    match entry.rsplit_once(':') {
        Some((host, slots)) if !host.contains(':') && slots.bytes().all(|b| b.is_ascii_digit()) => (host, Some(slots)),
        _ => (entry, None),
    }
}

/// The hosts, by their numbers, on which a spawn may start processes: those that it lists, or all of the job; none in a
/// job on this machine only. Neither the name service nor any network interface is asked.
///
/// # Errors
/// It lists a host that is none of the job.
pub fn of_spawn(section: &Options, placement: &Placement) -> Result<Vec<usize>, Unusable> {
    let uname = rustix::system::uname();
    let own = uname.nodename().to_string_lossy();
    let listed = listed(section)?;
    if placement.hosts.is_empty() {
        return match listed.iter().find(|host| !is_here(&host.name, &own)) {
            None => Ok(Vec::new()),
            Some(host) => unusable(
                format!("`{}` is not this machine, and the job has no other hosts", host.name),
                format!("this machine is called {own}; it also answers to localhost"),
            ),
        };
    }
    if listed.is_empty() {
        return Ok((0..placement.hosts.len()).collect());
    }
    let number = |host: &Listed| {
        let is_own = is_here(&host.name, &own);
        let found = placement.hosts.iter().position(|known| known.name == host.name || (is_own && known.name == own));
        found.map_or_else(
            || {
                let names: Vec<&str> = placement.hosts.iter().map(|known| known.name.as_str()).collect();
                unusable(
                    format!("`{}` is no host of this job", host.name),
                    format!("its hosts are {}", names.join(", ")),
                )
            },
            Ok,
        )
    };
    listed.iter().map(number).collect()
}

/// Chooses hosts for so many processes among the `allowed` ones: free slots are filled in order, and then all hosts in
/// turn. `free` has the free slots of all hosts of the job, without those that are given away here.
pub fn choose(free: &mut [u32], allowed: &[usize], count: u32) -> Vec<usize> {
    let mut in_turn = allowed.iter().copied().cycle();
    let next = |_| match allowed.iter().find(|host| free[**host] > 0) {
        Some(host) => {
            free[*host] -= 1;
            *host
        }
        // INVARIANT: some host is allowed.
        None => in_turn.next().expect("a host"),
    };
    (0..count).map(next).collect()
}

/// Whether a name means the machine called `own`. No server is asked.
fn is_here(host: &str, own: &str) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or("").to_ascii_lowercase();
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    matches!(host, "localhost" | "127.0.0.1" | "::1")
        || host.eq_ignore_ascii_case(own)
        || (!is_address && short(host) == short(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn list(text: &str) -> Vec<Listed> {
        let mut hosts = Vec::new();
        text.split(',').for_each(|entry| add(&mut hosts, entry, None).map_err(|e| e.what).expect("a host"));
        hosts
    }

    fn spread_of(text: &str, size: u32) -> (Vec<(String, std::ops::Range<u32>)>, Option<usize>) {
        let placement = spread(&list(text), size, "me").map_err(|error| error.what).expect("room");
        (placement.hosts.into_iter().map(|host| (host.name, host.ranks)).collect(), placement.here)
    }

    #[test]
    fn slots_are_filled_in_order() {
        let host = |name: &str, ranks| (name.to_owned(), ranks);
        assert_eq!(spread_of("a:2,me:1,localhost", 4), (vec![host("a", 0..2), host("me", 2..4)], Some(1)));
        assert_eq!(spread_of("a:2,b:2", 3), (vec![host("a", 0..2), host("b", 2..3)], None));
        assert_eq!(spread_of("a:2,b:2", 2), (vec![host("a", 0..2)], None));
        assert_eq!(spread_of("a:1,b:2,a:1", 4), (vec![host("a", 0..2), host("b", 2..4)], None));
        assert!(spread(&list("a:2,b"), 4, "me").is_err());
    }

    #[test]
    fn without_slots_the_ranks_are_spread_evenly() {
        let host = |name: &str, ranks| (name.to_owned(), ranks);
        assert_eq!(spread_of("a,b", 5), (vec![host("a", 0..3), host("b", 3..5)], None));
        assert_eq!(spread_of("a,b", 1), (vec![host("a", 0..1)], None));
    }

    #[test]
    fn a_job_on_this_machine_needs_no_agents() {
        for (text, size) in [("me", 9), ("localhost:2", 4), ("me:4,other:4", 3), ("me,localhost", 2)] {
            assert_eq!(spread_of(text, size), (Vec::new(), None), "{text}");
        }
    }

    #[test]
    fn ranks_are_spread_as_the_options_say() {
        let spread_as = |line: &str| {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            let sections = crate::run::options::parse("limosa run", &words).expect("options");
            let (_, placement) = place(&sections).map_err(|error| error.what)?;
            let on = |host: &HostPlan| format!("{}:{}", host.name, host.ranks.len());
            Ok::<String, String>(placement.hosts.iter().map(on).collect::<Vec<_>>().join(" "))
        };
        for (line, hosts) in [
            ("-hosts a,b,c,d -ppn 2 -n 4 x", "a:2 b:2"),
            ("-host a:2,b:2 --map-by node -n 2 x", "a:1 b:1"),
            ("-host a:2,b:2 --map-by ppr:1:node x", "a:1 b:1"),
            ("-host a,b --map-by ppr:2:node:oversubscribe x", "a:2 b:2"),
            ("-hosts a:2,b:2 -perhost 1 -n 2 x", "a:1 b:1"),
            ("-host a:2,b:2 --map-by core -n 3 x", "a:2 b:1"),
            ("-host n[08-10]:2,m x", "n08:2 n09:2 n10:2 m:1"),
            ("-n 2 -N 1 x", ""),
        ] {
            assert_eq!(spread_as(line).as_deref(), Ok(hosts), "{line}");
        }
        for (line, why) in [
            ("-host a,b --map-by node -n 4 x", "--map-by node would scatter 4 ranks over 2 hosts in turn"),
            ("-host a:1,b:4 -ppn 2 x", "-ppn 2 asks for 2 ranks on each host, but a takes 1"),
            ("-host a,b -ppn 2 -n 5 x", "the job has 5 ranks, but the listed hosts take 4"),
            ("-host n[1-] x", "`n[1-]` is no list of hosts"),
        ] {
            assert_eq!(spread_as(line).as_ref().map_err(String::as_str), Err(why), "{line}");
        }
    }

    #[test]
    fn names_choose_hosts_of_a_file() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), "a slots=2\nb[1-2] slots=3\n").expect("written");
        let chosen = |host: &str| {
            let words = ["-hostfile".into(), file.path().into(), "-host".into(), host.into(), OsString::from("x")];
            let sections = crate::run::options::parse("limosa run", &words).expect("options");
            listed(&sections[0]).map_err(|error| error.what)
        };
        let host = |name: &str, slots| Listed { name: name.into(), slots: Some(slots) };
        assert_eq!(chosen("b2,a:1"), Ok(vec![host("b2", 3), host("a", 1)]));
        assert!(chosen("c").is_err_and(|why| why.contains("does not list c")));
    }

    #[test]
    fn spawned_processes_fill_free_slots_and_then_all_hosts_in_turn() {
        let mut free = [1, 0, 2];
        assert_eq!(choose(&mut free, &[0, 1, 2], 2), [0, 2]);
        assert_eq!(choose(&mut free, &[0, 1, 2], 4), [2, 0, 1, 2]);
        assert_eq!(choose(&mut [9, 9], &[1], 2), [1, 1]);
    }

    #[test]
    fn this_machine_has_several_names() {
        for host in ["localhost", "127.0.0.1", "::1", "box", "BOX", "box.example.org"] {
            assert!(is_here(host, "box"), "{host}");
        }
        assert!(is_here("box", "box.example.org"));
        assert!(!is_here("10.0.0.7", "10.1.1.1") && !is_here("boxer", "box") && !is_here("", "box"));
        assert_eq!(
            (split_slots("a:4"), split_slots("a"), split_slots("::1")),
            (("a", Some("4")), ("a", None), ("::1", None))
        );
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for entry in ["", "-oProxyCommand=x", "a b", "a:0", ":3", "a:two", "a:"] {
            assert!(add(&mut Vec::new(), entry, None).is_err(), "`{entry}`");
        }
    }

    #[test]
    fn a_host_file_has_a_host_per_line() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), "# all\na slots=2 max_slots=4\n\nb:3  # more\nc\n").expect("written");
        let lines = lines(file.path()).map_err(|error| error.what).expect("read");
        assert_eq!(lines, [("a".into(), Some(2)), ("b:3".into(), None), ("c".into(), None)]);
        for wrong in ["slots=many", "slots=0", "slots = 2", "slot=2", "2"] {
            fs::write(file.path(), format!("a\nb {wrong}\n")).expect("written");
            let refused = super::lines(file.path()).map_err(|error| error.what).expect_err("a mistake");
            assert!(refused.contains("line 2 of the host file"), "{refused}");
        }
        fs::write(file.path(), "a,b\n").expect("written");
        assert!(super::lines(file.path()).is_err());
    }
}
