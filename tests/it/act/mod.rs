//! Actions over HTTP and on the command line: what they do and what they say.

mod command_line;
mod commands;
mod proposals;
