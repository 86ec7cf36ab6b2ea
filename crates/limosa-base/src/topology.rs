//! The hardware resources that the calling thread may use, as Linux describes them in `/sys/devices/system/cpu`.

use std::path::{Path, PathBuf};

use crate::cpu;

/// Kinds of resources, by the names of hwloc, largest first.
pub const RESOURCES: [&str; 8] = ["Machine", "Package", "NUMANode", "L3Cache", "L2Cache", "L1Cache", "Core", "PU"];

/// The instances of a resource that the calling thread may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// There are none of this kind, or they are unknown.
    None,
    /// Exactly this instance.
    One(u32),
    /// Several instances.
    Several,
}

/// Returns the instances of a resource that the calling thread may use.
pub fn use_of(resource: &str) -> Use {
    instances(Path::new("/sys/devices/system/cpu"), &cpu::numbers(), resource)
}

fn instances(root: &Path, processors: &[u32], resource: &str) -> Use {
    let mut found = processors.iter().map(|processor| instance(root, *processor, resource));
    let Some(Some(first)) = found.next() else { return Use::None };
    if found.all(|other| other == Some(first)) { Use::One(first) } else { Use::Several }
}

/// Returns the number of the instance that a processor belongs to. Where the system does not number instances, this is
/// the number of their first processor.
fn instance(root: &Path, processor: u32, resource: &str) -> Option<u32> {
    let folder = root.join(format!("cpu{processor}"));
    match resource {
        "Machine" => Some(0),
        "PU" => Some(processor),
        "Core" => first_in(folder.join("topology/core_cpus_list"))
            .or_else(|| first_in(folder.join("topology/thread_siblings_list"))),
        "Package" => first_in(folder.join("topology/physical_package_id")),
        "NUMANode" => std::fs::read_dir(folder)
            .ok()?
            .flatten()
            .find_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()),
        _ => {
            let level = resource.strip_prefix('L')?.strip_suffix("Cache")?;
            let caches = std::fs::read_dir(folder.join("cache")).ok()?.flatten().map(|entry| entry.path());
            let is_wanted = |cache: &PathBuf| {
                text_of(cache.join("level")).as_deref() == Some(level)
                    && text_of(cache.join("type")).is_some_and(|of| of != "Instruction")
            };
            caches.filter(is_wanted).find_map(|cache| first_in(cache.join("shared_cpu_list")))
        }
    }
}

fn text_of(file: PathBuf) -> Option<String> {
    Some(std::fs::read_to_string(file).ok()?.trim().to_owned())
}

/// Returns the first number in a file with a list such as `2-3,6`.
fn first_in(file: PathBuf) -> Option<u32> {
    text_of(file)?.split(['-', ',']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates the description of two packages, which are nodes, of two cores with two processors each; the cores of a
    /// package share a cache.
    fn machine(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("limosa-{name}-{}", std::process::id()));
        for processor in 0..8u32 {
            let folder = root.join(format!("cpu{processor}"));
            let (core, package) = (processor / 2 * 2, processor / 4);
            for (file, text) in [
                ("topology/core_cpus_list", format!("{core}-{}\n", core + 1)),
                ("topology/physical_package_id", format!("{package}\n")),
                ("cache/index0/level", "1\n".to_owned()),
                ("cache/index0/type", "Instruction\n".to_owned()),
                ("cache/index0/shared_cpu_list", "77\n".to_owned()),
                ("cache/index3/level", "3\n".to_owned()),
                ("cache/index3/type", "Unified\n".to_owned()),
                ("cache/index3/shared_cpu_list", format!("{}-{}\n", 4 * package, 4 * package + 3)),
                (&format!("node{package}/cpulist"), String::new()),
            ] {
                let file = folder.join(file);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, text).unwrap();
            }
        }
        root
    }

    #[test]
    fn what_processors_share_is_read_from_the_system() {
        let root = machine("topology");
        let of = |processors: &[u32], resource| instances(&root, processors, resource);
        assert_eq!(of(&[4, 5], "Core"), Use::One(4));
        assert_eq!(of(&[4, 6], "Core"), Use::Several);
        assert_eq!(of(&[4, 6], "Package"), Use::One(1));
        assert_eq!(of(&[2, 6], "NUMANode"), Use::Several);
        assert_eq!(of(&[6, 7], "NUMANode"), Use::One(1));
        assert_eq!(of(&[5, 7], "L3Cache"), Use::One(4));
        assert_eq!(of(&[1], "L1Cache"), Use::None);
        assert_eq!(of(&[3], "PU"), Use::One(3));
        assert_eq!(of(&[0, 7], "Machine"), Use::One(0));
        assert_eq!(of(&[], "Machine"), Use::None);
        std::fs::remove_dir_all(root).unwrap();
    }
}
