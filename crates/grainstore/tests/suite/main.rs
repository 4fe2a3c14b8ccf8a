//! What the cache, its keys and its hooks promise, through their public calls. One program, since to
//! link is most of what a small change costs.
//!
//! Apart are the tests that need a process of another kind: `memory` counts its bytes, `spans` hears
//! of the first build of its process, `stress` runs under a sanitizer, `loom` and `shuttle` are built
//! on the types of a model checker.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "all of this is tests")]

mod bookmarks;
mod bounds;
mod building;
#[path = "../common/mod.rs"]
mod common;
mod configuration;
mod devices;
mod drains;
mod field;
mod figures;
mod found;
mod hooks;
mod idle;
mod keys;
mod levels;
mod model;
mod pins;
mod release;
mod room;
mod slots;
mod tasks;
mod wakers;
mod weight;
