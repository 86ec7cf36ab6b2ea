//! Call sites as numbers: for a Python program a digest of the lines of its innermost frames, for others the return
//! address.
//!
//! The return address is known only at the very beginning of a function. Each function of MPI therefore has an entry in
//! assembly language that stores it in a thread-local variable ([`crate::entry!`]) and continues in the wrapper. The
//! variable exists from the thread's start (initial-exec TLS), because the library is loaded with the program. Beside
//! it are further thread-local words for the caller of this module; for ordinary ones Rust would call the dynamic
//! loader each time.

use std::arch::asm;

use crate::{fortran, python};

/// A call site.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Site(
    /// The number.
    pub usize,
);

/// Defines the function `$name` of MPI, which continues in `$wrapper`.
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

/// Defines the function `$name` of MPI, which continues in `$wrapper`.
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

/// Thread-local words: the return address of the innermost call of MPI, and words of the caller of this module.
#[repr(C)]
pub struct Kept {
    /// Return address.
    pub returns_to: usize,
    /// Words of the caller; initially 0.
    pub own: [usize; OWN],
}

/// Number of words of the caller per thread.
pub const OWN: usize = 7;

/// Returns the words of this thread.
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

/// Returns the call site of the call with this return address.
#[inline]
pub fn of_call(returns_to: usize) -> Site {
    let lines = if python::is_here() { python::digest_of_lines() } else { None };
    Site(lines.unwrap_or_else(|| fortran::caller(returns_to)))
}
