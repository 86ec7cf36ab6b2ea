//! The named datatypes of the standard as a table (MPI-5 sections 3.2.2, 5.1, 6.9.4, 15.5.2 and 20.3).
//!
//! Contract
//! - [`BASICS`] lists every named type that is one value of a language; [`PAIRS`] those that are a value and an index.
//! - A basic type is its representation ([`Kind`]), the group that decides which reduction operations it takes
//!   ([`Group`]), and its size in the external32 representation.
//!
//! Sizes are those of 64-bit Linux: `long` has 8 bytes and `long double` occupies 16. Fortran's default INTEGER, REAL
//! and LOGICAL have 4.

use crate::consts::*;

/// Formats of floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Float {
    /// IEEE binary16.
    Half,
    /// IEEE binary32.
    Single,
    /// IEEE binary64.
    Double,
    /// The C type `long double`: x87 extended on x86-64, IEEE binary128 on aarch64.
    Extended,
    /// IEEE binary128.
    Quad,
}

impl Float {
    /// Returns the bytes of one number, padding of `long double` included.
    pub const fn size(self) -> usize {
        match self {
            Float::Half => 2,
            Float::Single => 4,
            Float::Double => 8,
            Float::Extended | Float::Quad => 16,
        }
    }
}

/// How a value of a basic type is represented in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Two's complement integer of so many bytes.
    Signed(u8),
    /// Unsigned integer of so many bytes.
    Unsigned(u8),
    /// Floating-point number.
    Float(Float),
    /// Real and imaginary part.
    Complex(Float),
    /// C or C++ truth value: one byte.
    Bool,
    /// Fortran truth value of so many bytes; 0 is false.
    Logical(u8),
    /// Character of one byte.
    Text,
    /// Wide character of four bytes.
    Wide,
    /// Uninterpreted byte.
    Byte,
    /// Byte of a packed message.
    Packed,
}

impl Kind {
    /// Returns the bytes of one value.
    pub const fn size(self) -> usize {
        match self {
            Kind::Signed(bytes) | Kind::Unsigned(bytes) | Kind::Logical(bytes) => bytes as usize,
            Kind::Float(float) => float.size(),
            Kind::Complex(float) => 2 * float.size(),
            Kind::Wide => 4,
            Kind::Bool | Kind::Text | Kind::Byte | Kind::Packed => 1,
        }
    }

    /// Alignment that a compiler gives the value.
    pub const fn alignment(self) -> usize {
        match self {
            Kind::Complex(float) => float.size(),
            other => other.size(),
        }
    }

    /// Returns a number for type signatures, different for representations that the standard does not let match.
    pub const fn code(self) -> u64 {
        match self {
            Kind::Signed(bytes) => 0x100 + bytes as u64,
            Kind::Unsigned(bytes) => 0x200 + bytes as u64,
            Kind::Float(float) => 0x300 + float as u64,
            Kind::Complex(float) => 0x400 + float as u64,
            Kind::Bool => 0x500,
            Kind::Logical(bytes) => 0x600 + bytes as u64,
            Kind::Text => 0x700,
            Kind::Wide => 0x800,
            Kind::Byte => 0x900,
            Kind::Packed => 0xa00,
        }
    }
}

/// The groups of section 6.9.2, which say what reduction operations a type takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// C integers.
    CInteger,
    /// Fortran integers.
    FortranInteger,
    /// Addresses, counts and offsets.
    MultiLanguage,
    /// Floating-point numbers.
    FloatingPoint,
    /// Complex numbers.
    Complex,
    /// Truth values.
    Logical,
    /// `MPI_BYTE`.
    Byte,
    /// Characters and packed data, which take none.
    None,
}

/// A named type that is one value.
#[derive(Debug, PartialEq, Eq)]
pub struct Basic {
    /// Handle value of the ABI.
    pub handle: i32,
    /// Name of the standard.
    pub name: &'static str,
    /// Representation.
    pub kind: Kind,
    /// Group for reductions.
    pub group: Group,
    /// Bytes of one value in the external32 representation.
    pub external_size: usize,
}

/// There are no more handle values of named types than this.
pub const HANDLES: usize = 256;

impl Basic {
    /// Returns its number among the handle values of named types.
    #[inline]
    pub fn number(&self) -> usize {
        (self.handle - MPI_DATATYPE_NULL) as usize
    }
}

/// A named type that is a value and an index, for `MPI_MINLOC` and `MPI_MAXLOC`.
pub(super) struct NamedPair {
    pub handle: i32,
    pub name: &'static str,
    pub value: i32,
    pub index: i32,
}

macro_rules! basics {
    ($($name:ident $kind:expr, $group:ident $(, external $external:literal)?;)*) => {
        &[$(Basic {
            handle: $name,
            name: stringify!($name),
            kind: $kind,
            group: Group::$group,
            external_size: {
                #[allow(unused_mut, unused_assignments)]
                let mut size = $kind.size();
                $(size = $external;)?
                size
            },
        }),*]
    };
}

/// Every named type that is one value.
pub(super) static BASICS: &[Basic] = basics! {
    MPI_AINT Kind::Signed(8), MultiLanguage;
    MPI_COUNT Kind::Signed(8), MultiLanguage;
    MPI_OFFSET Kind::Signed(8), MultiLanguage;
    MPI_PACKED Kind::Packed, None;
    MPI_SHORT Kind::Signed(2), CInteger;
    MPI_INT Kind::Signed(4), CInteger;
    MPI_LONG Kind::Signed(8), CInteger, external 4;
    MPI_LONG_LONG Kind::Signed(8), CInteger;
    MPI_UNSIGNED_SHORT Kind::Unsigned(2), CInteger;
    MPI_UNSIGNED Kind::Unsigned(4), CInteger;
    MPI_UNSIGNED_LONG Kind::Unsigned(8), CInteger, external 4;
    MPI_UNSIGNED_LONG_LONG Kind::Unsigned(8), CInteger;
    MPI_FLOAT Kind::Float(Float::Single), FloatingPoint;
    MPI_C_FLOAT_COMPLEX Kind::Complex(Float::Single), Complex;
    MPI_CXX_FLOAT_COMPLEX Kind::Complex(Float::Single), Complex;
    MPI_DOUBLE Kind::Float(Float::Double), FloatingPoint;
    MPI_C_DOUBLE_COMPLEX Kind::Complex(Float::Double), Complex;
    MPI_CXX_DOUBLE_COMPLEX Kind::Complex(Float::Double), Complex;
    MPI_LOGICAL Kind::Logical(4), Logical;
    MPI_INTEGER Kind::Signed(4), FortranInteger;
    MPI_REAL Kind::Float(Float::Single), FloatingPoint;
    MPI_COMPLEX Kind::Complex(Float::Single), Complex;
    MPI_DOUBLE_PRECISION Kind::Float(Float::Double), FloatingPoint;
    MPI_DOUBLE_COMPLEX Kind::Complex(Float::Double), Complex;
    MPI_CHARACTER Kind::Text, None;
    MPI_LONG_DOUBLE Kind::Float(Float::Extended), FloatingPoint;
    MPI_C_LONG_DOUBLE_COMPLEX Kind::Complex(Float::Extended), Complex;
    MPI_CXX_LONG_DOUBLE_COMPLEX Kind::Complex(Float::Extended), Complex;
    MPI_C_BOOL Kind::Bool, Logical;
    MPI_CXX_BOOL Kind::Bool, Logical;
    MPI_WCHAR Kind::Wide, None, external 2;
    MPI_INT8_T Kind::Signed(1), CInteger;
    MPI_UINT8_T Kind::Unsigned(1), CInteger;
    MPI_CHAR Kind::Text, None;
    MPI_SIGNED_CHAR Kind::Signed(1), CInteger;
    MPI_UNSIGNED_CHAR Kind::Unsigned(1), CInteger;
    MPI_BYTE Kind::Byte, Byte;
    MPI_INT16_T Kind::Signed(2), CInteger;
    MPI_UINT16_T Kind::Unsigned(2), CInteger;
    MPI_INT32_T Kind::Signed(4), CInteger;
    MPI_UINT32_T Kind::Unsigned(4), CInteger;
    MPI_INT64_T Kind::Signed(8), CInteger;
    MPI_UINT64_T Kind::Unsigned(8), CInteger;
    MPI_LOGICAL1 Kind::Logical(1), Logical;
    MPI_INTEGER1 Kind::Signed(1), FortranInteger;
    MPI_LOGICAL2 Kind::Logical(2), Logical;
    MPI_INTEGER2 Kind::Signed(2), FortranInteger;
    MPI_REAL2 Kind::Float(Float::Half), FloatingPoint;
    MPI_LOGICAL4 Kind::Logical(4), Logical;
    MPI_INTEGER4 Kind::Signed(4), FortranInteger;
    MPI_REAL4 Kind::Float(Float::Single), FloatingPoint;
    MPI_COMPLEX4 Kind::Complex(Float::Half), Complex;
    MPI_LOGICAL8 Kind::Logical(8), Logical;
    MPI_INTEGER8 Kind::Signed(8), FortranInteger;
    MPI_REAL8 Kind::Float(Float::Double), FloatingPoint;
    MPI_COMPLEX8 Kind::Complex(Float::Single), Complex;
    MPI_LOGICAL16 Kind::Logical(16), Logical;
    MPI_INTEGER16 Kind::Signed(16), FortranInteger;
    MPI_REAL16 Kind::Float(Float::Quad), FloatingPoint;
    MPI_COMPLEX16 Kind::Complex(Float::Double), Complex;
    MPI_COMPLEX32 Kind::Complex(Float::Quad), Complex;
};

macro_rules! pairs {
    ($($name:ident $value:ident, $index:ident;)*) => {
        &[$(NamedPair { handle: $name, name: stringify!($name), value: $value, index: $index }),*]
    };
}

/// Every named type that is a value and an index.
pub(super) static PAIRS: &[NamedPair] = pairs! {
    MPI_FLOAT_INT MPI_FLOAT, MPI_INT;
    MPI_DOUBLE_INT MPI_DOUBLE, MPI_INT;
    MPI_LONG_INT MPI_LONG, MPI_INT;
    MPI_2INT MPI_INT, MPI_INT;
    MPI_SHORT_INT MPI_SHORT, MPI_INT;
    MPI_LONG_DOUBLE_INT MPI_LONG_DOUBLE, MPI_INT;
    MPI_2REAL MPI_REAL, MPI_REAL;
    MPI_2DOUBLE_PRECISION MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION;
    MPI_2INTEGER MPI_INTEGER, MPI_INTEGER;
};
