//! The table of the `LIMOSA_*` variables: names, forms, defaults, and what each is for.

use crate::names::{
    ENV_COLL_TUNED, ENV_FD, ENV_HOST_ADDRESS, ENV_ID, ENV_LOCAL_RANK, ENV_LOCAL_SIZE, ENV_PID, ENV_RANK, ENV_SIZE,
};

/// The declaration of one variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it may be set to.
    pub form: Form,
    /// Its value when not set.
    pub default: &'static str,
    /// What it does, in one sentence.
    pub text: &'static str,
    /// What sets it.
    pub audience: Audience,
}

/// What a variable may be set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A device, or `shm,` and one that reaches other hosts.
    Device,
    /// 1 or 0 (also on/off, yes/no, true/false).
    Switch,
    /// A whole number in this range, and its unit.
    Number {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
        /// Unit, as words after the number.
        unit: &'static str,
    },
    /// Seconds, with a fraction if wanted.
    Seconds,
    /// Parts of the library and levels of events.
    Filter,
    /// The name of a file.
    Path,
    /// Anything.
    Text,
}

/// What sets a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The user.
    User,
    /// The launcher, for the ranks; of use to scripts.
    Rank,
    /// The launcher, for the library only.
    Internal,
}

/// Every variable, in the order in which `limosa env` lists them.
pub const VARIABLES: &[Variable] = &[
    user(
        "LIMOSA_WAIT",
        Form::Choice(&["auto", "poll", "block"]),
        "auto",
        "How a blocked call waits: spin then sleep, only spin, or sleep at once",
    ),
    user(
        "LIMOSA_SPIN_US",
        Form::Number { min: 0, max: 1_000_000, unit: "microseconds" },
        "50",
        "How long a blocked call spins before it sleeps",
    ),
    user(
        "LIMOSA_DEVICE",
        Form::Device,
        "shm",
        "How processes reach each other: by shared memory; by a network, with libfabric, between hosts; by files in this \
         folder; by files in folders of their hosts, which ssh carries; or by messages only, as between hosts (for \
         tests). Behind `shm,` it is what reaches other hosts; inside of one, memory is shared, also if there is only one",
    ),
    user(
        "LIMOSA_FABRIC_LIBRARY",
        Form::Path,
        "",
        "File of libfabric; otherwise where the system finds it, or the packages of other MPI libraries have it",
    ),
    user(
        "LIMOSA_FABRIC_PROVIDER",
        Form::Text,
        "",
        "The provider of libfabric to use, such as tcp or verbs; otherwise the fastest one, on one host TCP",
    ),
    user(
        "LIMOSA_FABRIC_INTERFACE",
        Form::Text,
        "",
        "The network interface to use, such as eth0; otherwise the one by which ssh reaches the host, or none if all ranks \
         are on one machine",
    ),
    user(
        "LIMOSA_PMIX_LIBRARY",
        Form::Path,
        "",
        "File of PMIx's library, for programs that prterun or `srun --mpi=pmix` starts; otherwise the launcher's own, or \
         where the system finds it",
    ),
    user(
        "LIMOSA_FILE_NOTIFY",
        Form::Choice(&["auto", "inotify", "clock"]),
        "auto",
        "How processes that exchange files learn of new ones: the system says so, or a clock ticks; auto: by the file \
         system",
    ),
    user("LIMOSA_FILE_KEEP", Form::Switch, "0", "Keep the files of messages that were received"),
    user(
        "LIMOSA_HOSTS",
        Form::Number { min: 1, max: 4096, unit: "hosts" },
        "1",
        "Number of hosts to imitate, in blocks of equal size: \
         only processes of one host share memory (for tests)",
    ),
    user(
        "LIMOSA_CMA",
        Form::Switch,
        "1",
        "Copy large messages directly from the partner's memory if the system allows it",
    ),
    user(
        "LIMOSA_COLL",
        Form::Choice(&["auto", "p2p"]),
        "auto",
        "How blocking collectives communicate: directly in shared memory if all ranks share it, or by messages",
    ),
    user(
        "LIMOSA_COLL_TABLE",
        Form::Path,
        "",
        "File with a table of collective algorithms; its rows replace the built-in ones",
    ),
    user(
        "LIMOSA_TUNING",
        Form::Text,
        "",
        "File that `limosa tune` has written, for the launcher, or off; otherwise limosa/tuning.json in \
         ${XDG_CONFIG_HOME:-~/.config}, if it is there",
    ),
    user(
        "LIMOSA_TUNED",
        Form::Text,
        "",
        "Which collectives are done by others, where the library for that is loaded (`limosa run --tuned`)",
    ),
    forced("LIMOSA_COLL_BARRIER", &["auto", "flags", "messages", "dissemination", "leaders"]),
    forced(
        "LIMOSA_COLL_BCAST",
        &["auto", "slots", "rounds", "single_copy", "messages", "linear", "binomial", "scatter_exchange", "leaders"],
    ),
    forced("LIMOSA_COLL_GATHER", &["auto", "slots", "single_copy", "messages", "linear", "binomial", "leaders"]),
    forced("LIMOSA_COLL_SCATTER", &["auto", "slots", "single_copy", "messages", "linear", "binomial", "leaders"]),
    forced(
        "LIMOSA_COLL_ALLGATHER",
        &["auto", "slots", "rounds", "single_copy", "messages", "exchange", "bruck", "ring", "leaders"],
    ),
    forced("LIMOSA_COLL_ALLTOALL", &["auto", "slots", "rounds", "single_copy", "messages", "exchange", "leaders"]),
    forced(
        "LIMOSA_COLL_REDUCE",
        &["auto", "slots", "rounds", "pieces", "messages", "binomial", "binomial_rotated", "sliced", "leaders"],
    ),
    forced(
        "LIMOSA_COLL_ALLREDUCE",
        &["auto", "slots", "rounds", "pieces", "messages", "recursive_doubling", "sliced", "leaders"],
    ),
    forced("LIMOSA_COLL_REDUCE_SCATTER", &["auto", "slots", "rounds", "pieces", "messages", "exchange", "via_reduce"]),
    forced("LIMOSA_COLL_SCAN", &["auto", "slots", "rounds", "pieces", "messages", "doubling"]),
    forced("LIMOSA_COLL_NEIGHBOR_ALLGATHER", &["auto", "slots", "single_copy", "messages", "exchange"]),
    forced("LIMOSA_COLL_NEIGHBOR_ALLTOALL", &["auto", "slots", "single_copy", "messages", "exchange"]),
    user(
        "LIMOSA_EAGER",
        Form::Number { min: 0, max: 1 << 24, unit: "bytes" },
        "65536",
        "Largest message that is sent before its receiver asks for it; up to \
         four times as much if there are more processes than processors",
    ),
    user(
        "LIMOSA_UNEXPECTED_BYTES",
        Form::Number { min: 0, max: 1 << 40, unit: "bytes" },
        "268435456",
        "How many bytes of unexpected messages a rank stores while it \
         does not wait for a message; beyond that the senders wait",
    ),
    user(
        "LIMOSA_CHECK",
        Form::Switch,
        "0",
        "Compare the datatypes of sender and receiver, and say what is left at MPI_Finalize; slower",
    ),
    user(
        "LIMOSA_STRICT",
        Form::Switch,
        "0",
        "Make errors of mistakes that other libraries let pass, and that are told as warnings otherwise; LIMOSA_CHECK \
         does so, too",
    ),
    user(
        "LIMOSA_ON_HANG",
        Form::Choice(&["report", "abort", "off"]),
        "report",
        "What is done when all ranks wait for each other, by the launcher or by a rank that has none",
    ),
    user(
        "LIMOSA_HANG_AFTER",
        Form::Seconds,
        "1",
        "Time without any progress after which a hang is reported; five times as long if ranks poll, ten or sixty times \
         if it is in doubt",
    ),
    user(
        "LIMOSA_HANG_GRACE",
        Form::Seconds,
        "30",
        "Time from the report of a possible hang to the end of the job, with LIMOSA_ON_HANG=abort",
    ),
    user(
        "LIMOSA_LOG",
        Form::Filter,
        "",
        "Which events inside the library are shown: parts (coll, mpi, p2p) and levels (error, warn, info, debug, \
         trace), as in p2p=debug,coll=info; a level alone is for all parts",
    ),
    user(
        "LIMOSA_LOG_FILE",
        Form::Path,
        "",
        "Where they are written: each rank adds its number to this name; otherwise stderr",
    ),
    user("LIMOSA_PYTHON_FAST_PATH", Form::Switch, "1", "Use the compiled part of `import limosa` where it was built"),
    user(
        "LIMOSA_SSH",
        Form::Text,
        "ssh -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=0 -x -T",
        "Command that runs a command line on another host; both are put behind it",
    ),
    user("LIMOSA_LOGIN_LIMIT", Form::Seconds, "120", "Time that a login on another host may take"),
    user(
        "LIMOSA_HOST_LIMIT",
        Form::Seconds,
        "60",
        "Time without a sign of life after which another host counts as lost; a network may be interrupted for half of it",
    ),
    user(
        "LIMOSA_LOGINS",
        Form::Number { min: 1, max: 1 << 16, unit: "hosts" },
        "16",
        "How many hosts the launcher logs in to; with more, each host logs in to as many of them",
    ),
    user("LIMOSA_TAG_OUTPUT", Form::Switch, "0", "Begin each line of output with its rank"),
    user(
        "LIMOSA_PROFILE",
        Form::Path,
        "",
        "Folder for what the profiler records, where it is loaded (`limosa run --profile`)",
    ),
    user(
        "LIMOSA_PROFILE_EVENTS",
        Form::Number { min: 0, max: 1 << 40, unit: "calls" },
        "0",
        "How many calls of each rank the profiler records with their times",
    ),
    user(
        "LIMOSA_DIALECT",
        Form::Choice(&["auto", "pympi", "mympi", "boost", "matlabmpi", "mpi", "mpitb", "pmatlab", "mpj"]),
        "auto",
        "Which module called `mpi` a Python script means (auto: decided by its names), which toolbox an Octave script, or mpj for Java",
    ),
    rank(ENV_RANK, "Rank of this process in its job"),
    rank(ENV_SIZE, "Number of ranks of the job"),
    rank(ENV_LOCAL_RANK, "Number of this process among those of its host: 0, 1, ..."),
    rank(ENV_LOCAL_SIZE, "Number of ranks of the job on this host"),
    internal(ENV_HOST_ADDRESS, "Address by which other hosts reach this one, for the choice of the network interface"),
    internal(ENV_COLL_TUNED, "Rows of the tuning file, for the table of collective algorithms"),
    internal(ENV_ID, "Id of the job"),
    internal(ENV_PID, "Process id of the launcher"),
    internal(ENV_FD, "Descriptor of the job's memory"),
];

/// The collective operations of which an algorithm can be forced, and the variables for it.
pub(super) const COLLECTIVES: [(&str, &str); 12] = [
    ("barrier", "LIMOSA_COLL_BARRIER"),
    ("bcast", "LIMOSA_COLL_BCAST"),
    ("gather", "LIMOSA_COLL_GATHER"),
    ("scatter", "LIMOSA_COLL_SCATTER"),
    ("allgather", "LIMOSA_COLL_ALLGATHER"),
    ("alltoall", "LIMOSA_COLL_ALLTOALL"),
    ("reduce", "LIMOSA_COLL_REDUCE"),
    ("allreduce", "LIMOSA_COLL_ALLREDUCE"),
    ("reduce_scatter", "LIMOSA_COLL_REDUCE_SCATTER"),
    ("scan", "LIMOSA_COLL_SCAN"),
    ("neighbor_allgather", "LIMOSA_COLL_NEIGHBOR_ALLGATHER"),
    ("neighbor_alltoall", "LIMOSA_COLL_NEIGHBOR_ALLTOALL"),
];

const fn user(name: &'static str, form: Form, default: &'static str, text: &'static str) -> Variable {
    Variable { name, form, default, text, audience: Audience::User }
}

const fn forced(name: &'static str, names: &'static [&'static str]) -> Variable {
    user(
        name,
        Form::Choice(names),
        "auto",
        "Algorithm of this collective, where it applies; messages: the best of those that use messages",
    )
}

const fn rank(name: &'static str, text: &'static str) -> Variable {
    Variable { name, form: Form::Text, default: "", text, audience: Audience::Rank }
}

const fn internal(name: &'static str, text: &'static str) -> Variable {
    Variable { name, form: Form::Text, default: "", text, audience: Audience::Internal }
}
