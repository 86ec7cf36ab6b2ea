//! A datatype for the time of an operation.

use std::ops::Deref;
use std::sync::Arc;

use super::Datatype;

/// A reference to a datatype that keeps it alive. Named types always exist and are not counted, which saves the fast
/// path some atomic operations, each of which waits until everything written before has reached the other processors.
#[derive(Clone)]
pub enum Held {
    /// It always exists.
    Always(&'static Arc<Datatype>),
    /// It is counted.
    Counted(Arc<Datatype>),
}

impl Deref for Held {
    type Target = Arc<Datatype>;

    #[inline]
    fn deref(&self) -> &Arc<Datatype> {
        match self {
            Held::Always(datatype) => datatype,
            Held::Counted(datatype) => datatype,
        }
    }
}

impl From<Arc<Datatype>> for Held {
    fn from(datatype: Arc<Datatype>) -> Held {
        Held::Counted(datatype)
    }
}

impl From<&Arc<Datatype>> for Held {
    fn from(datatype: &Arc<Datatype>) -> Held {
        Held::Counted(datatype.clone())
    }
}
