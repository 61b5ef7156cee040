//! Tests actions over HTTP and on the command line.

mod command_line;
mod commands;
mod proposals;
