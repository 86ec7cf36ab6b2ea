//! Devices that move bytes between peers.
