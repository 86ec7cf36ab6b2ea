//! Where calls come from, in words: a line of a Python program, a line of a program that was compiled with `-g`, or a
//! function and an address.

use std::collections::HashMap;
use std::sync::Mutex;

use limosa_base::place::address;
pub(crate) use limosa_base::place::words;
use limosa_interpose::python;
use limosa_interpose::site::{self, Site};

/// Folders of libraries, whose lines are not the user's.
const LIBRARIES: [&str; 4] = ["/site-packages/", "/dist-packages/", "/lib/python", "<frozen"];

/// A folder in the path of our Python package.
const PACKAGE: &str = "/limosa/";

/// A place in words, and whether a line of our Python package is the innermost.
type Known = (String, bool);

static KNOWN: Mutex<Option<HashMap<usize, Known>>> = Mutex::new(None);

/// The place of the call of this thread that has just begun. Called without any lock of ours: it may wait for Python's.
pub(crate) fn here() -> Site {
    static IS_PYTHON_SOUGHT: std::sync::Once = std::sync::Once::new();
    IS_PYTHON_SOUGHT.call_once(python::find);
    // SAFETY: the variables of a thread live as long as it does.
    let returns_to = unsafe { (*site::kept()).returns_to };
    let site = site::of_call(returns_to);
    let is_known = |known: &Option<HashMap<usize, Known>>| known.as_ref().is_some_and(|all| all.contains_key(&site.0));
    if !KNOWN.lock().is_ok_and(|known| is_known(&known)) {
        let text = python::lines().map_or_else(
            || (address(site.0), false),
            |lines| (of_user(&lines), lines.split('\t').next().is_some_and(|line| line.contains(PACKAGE))),
        );
        if let Ok(mut known) = KNOWN.lock() {
            known.get_or_insert_default().insert(site.0, text);
        }
    }
    site
}

/// What is known of a place, in a form that another process can make words of.
pub(crate) fn text(site: Site) -> String {
    known(site).0
}

/// The place is in our Python package, whose users need not free anything.
pub(crate) fn is_in_package(site: Site) -> bool {
    known(site).1
}

fn known(site: Site) -> Known {
    let known = KNOWN.lock().ok().and_then(|known| known.as_ref()?.get(&site.0).cloned());
    known.unwrap_or_default()
}

/// The innermost line that is not a library's: `file:line`.
fn of_user(lines: &str) -> String {
    let own = lines.split('\t').find(|line| !LIBRARIES.iter().any(|folder| line.contains(folder)));
    let line = own.or(lines.split('\t').next()).unwrap_or_default();
    let line = line.rsplit_once(" in ").map_or(line, |(line, _)| line);
    line.rsplit('/').next().unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_the_users_innermost_line() {
        let lines =
            "/v/lib/python3.11/site-packages/x/y.py:3 in f\t/home/a/heat.py:31 in step\t/home/a/heat.py:80 in main";
        assert_eq!(words(&of_user(lines)), ", at heat.py:31");
    }
}
