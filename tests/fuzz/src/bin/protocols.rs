//! The target `protocols` as a program of libFuzzer.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| limosa_fuzz::protocols::target(data));

#[cfg(not(fuzzing))]
fn main() {
    eprintln!("built without --cfg fuzzing; use tests/fuzz/run");
    std::process::exit(2);
}
