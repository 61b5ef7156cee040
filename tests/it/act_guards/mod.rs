//! What guards actions: gates, switches, limits, time, and what is left when a process dies.

mod dead_processes;
mod gates;
mod limits;
mod telling;
