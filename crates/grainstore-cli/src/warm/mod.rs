//! `grainstore warm`: every kernel of a manifest, compiled into the store.
//!
//! The backends say what is here ([`places`]), manifest and places become a plan ([`plan`]), several
//! threads work it off ([`work`], [`make`]), and what came of it is told ([`tell`], [`report`]).

mod keys;
mod make;
mod places;
mod plan;
mod report;
mod tell;
mod work;

use std::env;
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;
use std::time::Instant;

use grainstore_artifacts::ArtifactStore;
use grainstore_runtime::Runtime;

use crate::args;
use crate::backends::{Backends, LEFT_OUT, left_out};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::manifest::{self, Found, KnownBackend, Manifest, ManifestError};
use crate::output::{self, Progress, counted, human};
use crate::store::open_to_change;
pub(crate) use keys::{Wanted, wanted};
use make::make;
use plan::{Asked, Plan};
use report::{Outcome, Report, Row};
use tell::{Warnings, tell, tell_skipped};

/// Does it and tells it.
pub(crate) fn run(arguments: &args::Warm) -> Result<Exit, Failure> {
    let began = Instant::now();
    let backends = Backends::new();
    let known = backends.known();
    let chosen = choose(&arguments.backends, &known)?;
    let manifest = read(arguments.manifest.as_deref(), &known)?;
    if let Some(wrong) = &manifest.wrong {
        output::error(wrong);
    }

    let by_all = arguments.backends.is_empty();
    if !places::any(&manifest, &chosen) {
        let plan = Plan::new(&manifest, &[], by_all).map_err(Failure::usage)?;
        tell_skipped(&plan.skipped);
        return Err(nothing_to_do(&manifest, arguments, &plan));
    }

    // Nothing was asked of a driver until here, nor anything made on disk until the targets are known.
    let interrupt = Interrupt::install(backends.stop());
    if !arguments.targets.is_empty() {
        let without_store = backends.runtime().build().map_err(Failure::environment)?;
        let known = places::targets(&without_store, &manifest, &chosen, arguments);
        if let Some(exit) = begun_nothing(&interrupt) {
            return Ok(exit);
        }
        known?;
    }
    let store = open_to_change(&arguments.common.store)?;
    let threads = arguments.jobs.map_or_else(cores, NonZeroUsize::get);
    let warnings = Warnings::default();
    let runtime = runtime(&backends, &store, threads, &warnings)?;
    let asked = if arguments.targets.is_empty() {
        Ok(places::devices(&runtime, &manifest, &chosen))
    } else {
        places::targets(&runtime, &manifest, &chosen, arguments)
    };
    if let Some(exit) = begun_nothing(&interrupt) {
        return Ok(exit);
    }
    let asked = asked?;
    // Which backends a target leaves out, the user has said.
    let all = by_all && arguments.targets.is_empty();
    let plan = Plan::new(&manifest, &asked, all).map_err(Failure::usage)?;
    tell_skipped(&plan.skipped);
    if plan.jobs.is_empty() {
        return Err(nothing_to_do(&manifest, arguments, &plan));
    }

    let progress = Progress::new(plan.jobs.len(), arguments.quiet);
    let work = work::run(
        &plan.jobs,
        threads,
        |job| make(&runtime, job),
        || interrupt.exit().is_some(),
        |job, row| {
            warnings.tell(&progress);
            // What fails once a signal has come, fails because of it.
            if interrupt.exit().is_none() {
                tell(&progress, job, row);
            }
        },
    );
    progress.finish();
    warnings.tell(&progress);
    if let Err(error) = runtime.shutdown() {
        output::warn(&error);
    }
    if let Some(exit) = interrupt.exit() {
        let kept = work.rows.iter().filter(|row| row.outcome != Outcome::Failed).count();
        let all = counted(plan.jobs.len(), "kernel", "kernels");
        output::note(format!("done and kept: {kept} of {all}"));
        return Ok(exit);
    }

    let wrong = manifest.wrong.iter().flat_map(ManifestError::kernels);
    let rows = work.rows.into_iter().chain(wrong.map(|(name, error)| Row::wrong(name, error)));
    let report = Report::new(rows.collect(), work.walls, began.elapsed());
    if arguments.common.json {
        output::print_json(&report)?;
    } else {
        output::print(report.table())?;
        output::note(format!(
            "done in {}; the store is {}",
            human(began.elapsed()),
            store.path().display()
        ));
    }
    conclude(&report, &store, &asked, !arguments.backends.is_empty())
}

/// How to end, where a signal has come before the work: what is not here then, may be so because of it.
fn begun_nothing(interrupt: &Interrupt) -> Option<Exit> {
    let exit = interrupt.exit()?;
    output::note("nothing was begun");
    Some(exit)
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// The backends that were named, or all.
fn choose<'k>(
    names: &[String],
    known: &'k [KnownBackend],
) -> Result<Vec<&'k KnownBackend>, Failure> {
    if let Some(name) = names.iter().find(|name| !known.iter().any(|known| known.name == **name)) {
        if LEFT_OUT.contains(&name.as_str()) {
            return Err(Failure::environment(left_out(name)));
        }
        let all: Vec<_> = known.iter().map(|known| known.name.as_str()).collect();
        let help = manifest::suggestion(name, &all, "backends");
        return Err(Failure::usage(format!("unknown backend `{name}`\n  = help: {help}")));
    }
    Ok(known.iter().filter(|known| names.is_empty() || names.contains(&known.name)).collect())
}

fn read(manifest: Option<&Path>, known: &[KnownBackend]) -> Result<Manifest, Failure> {
    if let Some(path) = manifest {
        return Manifest::read(path, known).map_err(Failure::usage);
    }
    let folder = env::current_dir().map_err(|error| {
        Failure::environment(format!(
            "the current folder is gone: {error}; go to one that is there"
        ))
    })?;
    let path = match manifest::find(&folder).map_err(Failure::usage)? {
        Found::Nearest(path) => path,
        Found::Examples(path) => {
            output::note(format!(
                "no {} here or above: taking the example kernels, {}",
                manifest::FILE_NAME,
                path.display()
            ));
            path
        }
    };
    Manifest::read(&path, known).map_err(Failure::usage)
}

fn runtime(
    backends: &Backends,
    store: &ArtifactStore,
    threads: usize,
    warnings: &Warnings,
) -> Result<Runtime, Failure> {
    let warnings = warnings.clone();
    backends
        .runtime()
        .store(store.clone())
        // A kernel that is in the store need not stay in memory. Each thread holds one, and may
        // find the place of another not given back yet.
        .capacity(threads.saturating_mul(2))
        .on_warning(move |warning| warnings.note(warning.to_string()))
        .build()
        .map_err(Failure::environment)
}

fn nothing_to_do(manifest: &Manifest, arguments: &args::Warm, plan: &Plan) -> Failure {
    let path = manifest.path.display();
    if plan.skipped.is_empty() {
        let names = arguments.backends.join(" or ");
        return Failure::usage(format!("no kernel of {path} is for {names}"));
    }
    Failure::environment(format!(
        "no kernel of {path} can be compiled here: see above; `grainstore doctor` says what is here"
    ))
}

/// How to end, once everything that could be done is done.
fn conclude(
    report: &Report,
    store: &ArtifactStore,
    asked: &[Asked],
    by_name: bool,
) -> Result<Exit, Failure> {
    let lost = store.statistics().write_failures;
    if lost > 0 {
        return Err(Failure::environment(format!(
            "{} could not be kept in {}: see above",
            counted(lost, "compiled kernel", "compiled kernels"),
            store.path().display()
        )));
    }
    if let Some(missing) = asked.iter().find(|asked| by_name && asked.places.is_err()) {
        let name = &missing.backend.name;
        return Err(Failure::environment(format!("the backend {name} is not here: see above")));
    }
    Ok(if report.failed() > 0 { Exit::SomeFailed } else { Exit::Ok })
}
