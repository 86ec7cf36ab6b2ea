"""Micro-benchmarks: ping-pong, broadcast, reduce, allreduce."""
