//! The command `fanfold` as it is run: a process of its own, on folders made for each test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod again;
mod bad_input;
mod batch_api;
mod budgets;
mod client;
mod combinations;
mod data_folder;
mod dev;
mod ending;
mod example;
mod folder;
mod init;
mod letters;
mod mailing;
mod mcp;
mod paced;
mod plan;
mod policies;
mod reports;
mod resume;
mod run;
mod sandbox;
mod tasks;
mod up;
