//! Job description, status board and control channel.
