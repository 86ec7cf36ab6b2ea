//! Fences between processes; there are none in models with loom.

#[cfg(not(loom))]
mod processes;

fn main() {
    #[cfg(not(loom))]
    processes::main();
}
