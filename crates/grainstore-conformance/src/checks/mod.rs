//! The checks, by what they are about.

mod artifacts;
mod compile;
mod damage;
mod exit;
mod handles;
mod identity;
mod kernels;
mod launches;
mod lives;
mod missing;
mod threads;

use std::path::Path;

use crate::Subject;
use crate::trouble::Check;

/// One check of the battery.
pub(crate) struct Entry<S> {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&S) -> Check,
}

/// Every check, in order: what a later one takes for granted, an earlier one has shown.
pub(crate) fn all<S: Subject>() -> Vec<Entry<S>> {
    let entry = |name, run| Entry { name, run };
    vec![
        entry("missing_library", missing::library),
        entry("identity", identity::identity),
        entry("unknown_device", identity::unknown_device),
        entry("build_and_launch", kernels::build_and_launch),
        entry("wrong_source", compile::wrong_source),
        entry("missing_entry_point", compile::missing_entry_point),
        entry("define_in_key", kernels::define),
        entry("header_in_key", kernels::header),
        entry("option_in_key", kernels::option),
        entry("constant_in_key", kernels::constant),
        entry("compile_without_device", compile::without_device),
        entry("load_and_launch", artifacts::load_and_launch),
        entry("artifact_in_new_process", artifacts::in_new_process),
        entry("foreign_artifact", damage::foreign),
        entry("cut_artifact", damage::cut),
        entry("flipped_artifact", damage::flipped),
        entry("empty_artifact", damage::empty),
        entry("eight_threads_one_build", threads::one_build),
        entry("many_kernels_in_parallel", threads::many_kernels),
        entry("launch_while_cleared", launches::while_cleared),
        entry("launch_while_removed", launches::while_removed),
        entry("launch_while_evicted", launches::while_evicted),
        entry("launch_while_destroyed", launches::while_destroyed),
        entry("device_made_again", lives::made_again),
        entry("device_lost", lives::lost),
        entry("device_given_up", lives::given_up),
        entry("shutdown_twice", lives::shutdown_twice),
        entry("no_handle_left", handles::none_left),
        entry("exit_while_pinned", exit::while_pinned),
        entry("exit_after_shutdown", exit::after_shutdown),
        entry("exit_in_any_order", exit::in_any_order),
    ]
}

/// What this executable does when a check has started it again.
pub(crate) struct Task<S> {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&S, &Path) -> Check,
}

pub(crate) fn tasks<S: Subject>() -> Vec<Task<S>> {
    let task = |name, run| Task { name, run };
    vec![
        task(artifacts::TASK, artifacts::task),
        task(damage::FOREIGN, damage::foreign_task),
        task(damage::CUT, damage::cut_task),
        task(damage::FLIPPED, damage::flipped_task),
        task(damage::EMPTY, damage::empty_task),
        task(exit::PINNED, exit::pinned_task),
        task(exit::THREAD_LOCAL, exit::thread_local_task),
        task(exit::SHUT_DOWN, exit::shut_down_task),
        task(exit::ASKING, exit::asking_task),
        task(exit::ORDERS, exit::orders_task),
    ]
}
