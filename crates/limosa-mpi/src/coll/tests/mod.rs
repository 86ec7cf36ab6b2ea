//! Tests of the collectives without an engine.
