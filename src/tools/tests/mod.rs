//! The tools on real folders and with real programs.

mod files;
mod place;
mod programs;
mod races;
