//! Launchers of others: programs that they start must not take themselves for jobs of one, silently, many times.

/// What a launcher says in a program's variables: its name, the variable with the number of processes, and a variable
/// that must be set besides. Several may be set: some launchers use others.
const LAUNCHERS: [(&str, &str, &str); 4] = [
    (OPEN_MPI, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    (SLURM, "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
    (HYDRA, "PMI_SIZE", "PMI_RANK"),
    ("a launcher with PMIx", "PMIX_SIZE", "PMIX_RANK"),
];

const OPEN_MPI: &str = "Open MPI's or PRRTE's launcher (mpirun, prterun)";
const SLURM: &str = "Slurm's srun";
const HYDRA: &str = "MPICH's or Intel MPI's launcher (hydra)";

/// The launcher that has started this process, for people.
pub(crate) fn name(value: &dyn Fn(&str) -> Option<String>) -> &'static str {
    let has = |name: &str| value(name).is_some();
    if has("PRTE_LAUNCHED") || has("OMPI_COMM_WORLD_RANK") {
        OPEN_MPI
    } else if ["HYDI_CONTROL_FD", "HYDRA_LAUNCH_TYPE", "PMI_PORT"].into_iter().any(has) {
        HYDRA
    } else if has("SLURM_PROCID") {
        SLURM
    } else if has("PMI_RANK") {
        HYDRA
    } else {
        "another launcher"
    }
}

/// A sentence about the launcher that has started this process as one of several without a way to find the others;
/// `None` if none has.
pub(crate) fn complaint(value: impl Fn(&str) -> Option<String>) -> Option<String> {
    LAUNCHERS.iter().find_map(|(who, size, besides)| {
        let number = value(size)?.trim().parse::<u64>().ok().filter(|number| *number > 1)?;
        value(besides)?;
        let advice = if *who == SLURM { "`srun --mpi=pmi2`" } else { "`limosa run`" };
        Some(format!(
            "it was started by {who} as one of {number} processes, but not told how to find the others: each would be \
             a job of its own. Start the program with {advice}; if each process is to be a job of its own, unset {size}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Option<String> {
        complaint(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn one_of_several_processes_is_told_who_has_started_it() {
        let srun = of(&[("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "0")]).expect("a complaint");
        assert!(srun.contains("Slurm's srun as one of 4 processes") && srun.contains("srun --mpi=pmi2"), "{srun}");
        assert!(of(&[("PMI_SIZE", "2"), ("PMI_RANK", "1")]).is_some());
        assert!(of(&[("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "1")]).is_some());
    }

    #[test]
    fn one_process_alone_may_be_a_job_of_its_own() {
        for variables in [
            &[][..],
            &[("PMI_SIZE", "1"), ("PMI_RANK", "0")],
            &[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")],
            &[("PMI_SIZE", "many"), ("PMI_RANK", "0")],
            &[("PMI_SIZE", "4")],
        ] {
            assert_eq!(of(variables), None, "{variables:?}");
        }
    }
}
