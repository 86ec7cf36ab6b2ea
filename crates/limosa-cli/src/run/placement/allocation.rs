//! The hosts of a Slurm allocation, as its variables describe them: `salloc` and `sbatch` set them.

use super::Listed;

/// Most hosts that a list of Slurm's may have: bounds what a damaged variable can make us hold.
const MOST: usize = 1 << 16;

/// The hosts of the allocation that this process is in; none outside of one, or in a step of `srun`, whose
/// processes have their places already.
pub(super) fn hosts(value: &dyn Fn(&str) -> Option<String>) -> Vec<Listed> {
    if value("SLURM_STEP_ID").is_some() || value("SLURM_JOB_ID").is_none() {
        return Vec::new();
    }
    let Some(names) = value("SLURM_JOB_NODELIST").as_deref().and_then(names) else { return Vec::new() };
    // Without a number of tasks, as many as the job has processors.
    let given = ["SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"].into_iter().find_map(value);
    let slots = given.as_deref().and_then(numbers).filter(|slots| slots.len() == names.len());
    let slot = |at: usize| slots.as_ref().map(|slots| slots[at]);
    names.into_iter().enumerate().map(|(at, name)| Listed { name, slots: slot(at) }).collect()
}

/// The names of a list such as `a,node[1-3,07],b[1-2]x`; `None` if it makes no sense.
pub(super) fn names(list: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for entry in entries(list)? {
        let mut made = vec![String::new()];
        let mut rest = entry;
        while let Some((before, behind)) = rest.split_once('[') {
            let (ranges, after) = behind.split_once(']')?;
            let numbers = spread(ranges)?;
            if made.len().checked_mul(numbers.len())? > MOST {
                return None;
            }
            made = made.iter().flat_map(|name| numbers.iter().map(move |n| format!("{name}{before}{n}"))).collect();
            rest = after;
        }
        names.extend(made.into_iter().map(|name| name + rest));
    }
    let is_name = |name: &String| !name.is_empty() && !name.starts_with('-') && !name.contains([' ', '[', ']']);
    (names.len() <= MOST && names.iter().all(is_name)).then_some(names)
}

/// The parts of a list between commas outside of brackets.
pub(super) fn entries(list: &str) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut is_inside) = (Vec::new(), 0, false);
    for (at, letter) in list.char_indices() {
        match letter {
            '[' if is_inside => return None,
            '[' => is_inside = true,
            ']' => is_inside = false,
            ',' if !is_inside => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    (!is_inside).then_some(parts)
}

/// The numbers of `1-3,07`, with their leading zeros.
fn spread(ranges: &str) -> Option<Vec<String>> {
    let mut numbers = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (from, to) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        if to < from || to - from >= MOST || numbers.len() > MOST {
            return None;
        }
        numbers.extend((from..=to).map(|number| format!("{number:0width$}", width = first.len())));
    }
    Some(numbers)
}

/// The numbers of `2(x3),1`: 2, 2, 2, 1.
fn numbers(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (number, times) = match part.split_once("(x") {
            Some((number, times)) => (number, times.strip_suffix(')')?.parse::<usize>().ok()?),
            None => (part, 1),
        };
        let number = number.parse::<u32>().ok().filter(|number| *number > 0)?;
        if times > MOST || numbers.len() > MOST {
            return None;
        }
        numbers.extend(std::iter::repeat_n(number, times));
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(variables: &[(&str, &str)]) -> Vec<(String, Option<u32>)> {
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
        hosts(&value).into_iter().map(|host| (host.name, host.slots)).collect()
    }

    #[test]
    fn the_hosts_of_an_allocation_have_the_slots_of_its_tasks() {
        let job = ("SLURM_JOB_ID", "7");
        let list = ("SLURM_JOB_NODELIST", "a[1-2],b");
        let host = |name: &str, slots| (name.to_owned(), slots);
        let tasks = ("SLURM_TASKS_PER_NODE", "2(x2),1");
        assert_eq!(of(&[job, list, tasks]), [host("a1", Some(2)), host("a2", Some(2)), host("b", Some(1))]);
        assert_eq!(of(&[job, list]), [host("a1", None), host("a2", None), host("b", None)]);
        let processors = ("SLURM_JOB_CPUS_PER_NODE", "4(x3)");
        assert_eq!(of(&[job, list, processors])[2], host("b", Some(4)));
    }

    #[test]
    fn outside_of_an_allocation_and_in_a_step_there_are_none() {
        let list = ("SLURM_JOB_NODELIST", "a[1-2]");
        assert_eq!(of(&[list]), []);
        assert_eq!(of(&[("SLURM_JOB_ID", "7"), list, ("SLURM_STEP_ID", "0")]), []);
    }

    #[test]
    fn lists_of_hosts_are_written_out() {
        let of = |list: &str| names(list).map(|names| names.join(" "));
        assert_eq!(of("a").as_deref(), Some("a"));
        assert_eq!(of("n[08-11],x").as_deref(), Some("n08 n09 n10 n11 x"));
        assert_eq!(of("r[1-2]n[1,3]-ib").as_deref(), Some("r1n1-ib r1n3-ib r2n1-ib r2n3-ib"));
        for wrong in ["", "a,,b", "n[", "n[1", "n[1-]", "n[3-1]", "n[1-99999999]", "n[a-b]", "-x", "n]1["] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(list in "[a-c0-9,\\[\\]x()-]{0,30}", counts in "[0-9x(),]{0,20}") {
            prop_assert!(names(&list).is_none_or(|names| names.len() <= MOST && !names.is_empty()));
            let _ = numbers(&counts);
        }
    }
}
