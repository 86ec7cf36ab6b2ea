//! Fences between processes. Models with loom have none.

#[cfg(not(loom))]
mod processes;

fn main() {
    #[cfg(not(loom))]
    processes::main();
}
