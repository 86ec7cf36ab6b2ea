//! Where in the program a call came from, as a number: of a Python program a digest of the lines that its innermost
//! frames are at, of others the address to which the call returns.
//!
//! The address is known only at the very beginning of a function. So each function of MPI has an entry in assembly
//! language that keeps it in a variable of the thread ([`crate::entry!`]), and goes on in the wrapper. The variable is one of
//! those that exist from the thread's start, because the library is loaded with the program; with it lie the caller's
//! other variables of the thread, for which Rust would ask the system's loader with each call.

use std::arch::asm;

use crate::python;

/// A place of the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Site(
    /// The number.
    pub usize,
);

/// The function `$name` of MPI, which goes on in `$wrapper`.
#[cfg(target_arch = "x86_64")]
#[macro_export]
macro_rules! entry {
    ($name:ident, $wrapper:ident) => {
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                "mov rax, qword ptr [rip + limosa_returns_to@GOTTPOFF]",
                "mov r11, qword ptr [rsp]",
                "mov qword ptr fs:[rax], r11",
                "jmp {wrapper}",
                wrapper = sym $wrapper,
            )
        }
    };
}

/// The function `$name` of MPI, which goes on in `$wrapper`.
#[cfg(target_arch = "aarch64")]
#[macro_export]
macro_rules! entry {
    ($name:ident, $wrapper:ident) => {
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                "adrp x16, :gottprel:limosa_returns_to",
                "ldr x16, [x16, :gottprel_lo12:limosa_returns_to]",
                "mrs x17, tpidr_el0",
                "str x30, [x17, x16]",
                "b {wrapper}",
                wrapper = sym $wrapper,
            )
        }
    };
}

std::arch::global_asm!(
    ".pushsection .tbss.limosa_returns_to,\"awT\",@nobits",
    ".globl limosa_returns_to",
    ".hidden limosa_returns_to",
    ".type limosa_returns_to, @object",
    ".size limosa_returns_to, 64",
    ".balign 64",
    "limosa_returns_to:",
    ".zero 64",
    ".popsection",
);

/// What this thread keeps, beside the address to which its innermost call of MPI returns.
#[repr(C)]
pub struct Kept {
    /// That address.
    pub returns_to: usize,
    /// For the caller's use; 0 at first.
    pub own: [usize; OWN],
}

/// Words of a thread for the caller's use.
pub const OWN: usize = 7;

/// The variables of this thread.
#[inline]
pub fn kept() -> *mut Kept {
    let address: *mut Kept;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: computes the address of a variable of this thread, whose first word behind fs is its own address.
    unsafe {
        asm!(
            "mov {address}, qword ptr fs:[0]",
            "add {address}, qword ptr [rip + limosa_returns_to@GOTTPOFF]",
            address = out(reg) address,
            options(nostack, readonly),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: computes the address of a variable of this thread.
    unsafe {
        asm!(
            "adrp {address}, :gottprel:limosa_returns_to",
            "ldr {address}, [{address}, :gottprel_lo12:limosa_returns_to]",
            "mrs {base}, tpidr_el0",
            "add {address}, {base}, {address}",
            address = out(reg) address,
            base = out(reg) _,
            options(nostack, readonly, preserves_flags),
        );
    }
    address
}

/// The place of the call that returns to this address.
#[inline]
pub fn of_call(returns_to: usize) -> Site {
    Site(if python::is_here() { python::digest_of_lines().unwrap_or(returns_to) } else { returns_to })
}
