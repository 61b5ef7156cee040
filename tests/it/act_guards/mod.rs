//! Tests the protections of actions: gates, switches, limits, time, and the death of a process.

mod dead_processes;
mod gates;
mod limits;
mod telling;
