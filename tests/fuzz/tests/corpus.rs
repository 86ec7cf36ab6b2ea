//! The kept inputs, one by one. `tests/fuzz/run` looks for new ones.

use std::path::Path;

fn replay(name: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut inputs: Vec<_> =
        std::fs::read_dir(&folder).expect("a corpus").map(|entry| entry.expect("an entry").path()).collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "{} is empty", folder.display());
    for input in inputs {
        let data = std::fs::read(&input).expect("an input");
        if let Err(panic) = std::panic::catch_unwind(|| target(&data)) {
            eprintln!("the input is {}", input.display());
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn datatypes_are_right_or_refused() {
    replay("datatypes", limosa_fuzz::datatypes::target);
}

#[test]
fn damaged_boards_and_odd_variables_are_read_without_harm() {
    replay("jobs", limosa_fuzz::jobs::target);
}

#[test]
fn odd_command_lines_and_output_are_read_without_harm() {
    replay("launcher", limosa_fuzz::launcher::target);
}

#[test]
fn any_packet_is_a_message_or_an_error() {
    replay("packets", limosa_fuzz::packets::target);
}

#[test]
fn any_message_file_is_taken_or_refused() {
    replay("messages", limosa_fuzz::messages::target);
}

#[test]
fn whatever_is_said_is_understood_or_refused() {
    replay("protocols", limosa_fuzz::protocols::target);
}

#[test]
fn any_access_stays_in_its_window_or_is_refused() {
    replay("windows", limosa_fuzz::windows::target);
}
