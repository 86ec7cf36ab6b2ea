//! The standard's constants, generated from `api/mpi5.json`.
//!
//! Handles are `i32` values, as `MPI_Comm_toint` and its siblings return them; addresses with a meaning
//! (`MPI_IN_PLACE`) are `usize`.

/// An MPI error class or user-defined error code.
pub type ErrorClass = i32;

include!(concat!(env!("OUT_DIR"), "/consts.rs"));

/// Returns the name of a predefined error class.
pub fn error_class_name(class: ErrorClass) -> Option<&'static str> {
    let at = ERROR_CLASS_NAMES.binary_search_by_key(&class, |entry| entry.0).ok()?;
    Some(ERROR_CLASS_NAMES[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_classes_have_names() {
        assert_eq!(error_class_name(MPI_ERR_COUNT), Some("MPI_ERR_COUNT"));
        assert_eq!(error_class_name(MPI_ERR_LASTCODE), Some("MPI_ERR_LASTCODE"));
        assert_eq!(error_class_name(MPI_ERR_LASTCODE + 1), None);
    }
}
