//! Matching, protocols, requests, progress and waiting.

pub mod memory;
