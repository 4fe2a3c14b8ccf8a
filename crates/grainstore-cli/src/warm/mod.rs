//! `grainstore warm`: every kernel of a manifest, compiled into the store.
//!
//! The manifest becomes a plan ([`plan`]), the plan is worked off by several threads ([`work`]),
//! and what came of it is told ([`report`]).

mod plan;
mod report;
mod work;

use std::env;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use grainstore_artifacts::ArtifactStore;
use grainstore_runtime::{BackendCache, Device, Origin, Runtime, RuntimeError};

use crate::args;
use crate::backends::Backends;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::manifest::{self, Found, KnownBackend, Manifest};
use crate::output::{self, Progress, RED, YELLOW, human, millis};
use plan::{Asked, Job, Plan, Skip};
use report::{Outcome, Report, Row};

/// Does it and tells it.
pub(crate) fn run(arguments: &args::Warm) -> Result<Exit, Failure> {
    let began = Instant::now();
    let backends = Backends::new();
    let known = backends.known();
    let chosen = choose(&arguments.backends, &known)?;
    let manifest = read(arguments, &known)?;

    // Nothing was made on disk or asked of a driver until here.
    let folder = arguments.store.folder().map_err(Failure::environment)?;
    let store = ArtifactStore::open(&folder).map_err(|error| {
        Failure::environment(format!("the store {} can't be used: {error}", folder.display()))
    })?;
    let threads = arguments.jobs.map_or_else(cores, NonZeroUsize::get);
    let warnings = Warnings::default();
    let runtime = runtime(&backends, &store, threads, &warnings)?;
    let asked = ask(&runtime, &manifest, chosen);
    let plan = Plan::new(&manifest, &asked, arguments.backends.is_empty())
        .map_err(Failure::environment)?;
    tell_skipped(&plan.skipped);
    if plan.jobs.is_empty() {
        return Err(nothing_to_do(&manifest, arguments, &plan));
    }

    let host = Arc::clone(&backends.host);
    let interrupt = Interrupt::install(move || {
        output::note("interrupted: ending what is under way; once more to leave at once");
        host.stop();
    });
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
        output::note(format!("{kept} of {} kernels are done and kept", plan.jobs.len()));
        return Ok(exit);
    }

    let report = Report::new(work.rows, work.walls, began.elapsed());
    if arguments.json {
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

fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// The backends that were named, or all.
fn choose<'k>(
    names: &[String],
    known: &'k [KnownBackend],
) -> Result<Vec<&'k KnownBackend>, Failure> {
    if let Some(name) = names.iter().find(|name| !known.iter().any(|known| known.name == **name)) {
        let all: Vec<_> = known.iter().map(|known| known.name.as_str()).collect();
        let help = manifest::suggestion(name, &all, "backends");
        return Err(Failure::usage(format!("unknown backend `{name}`\n  = help: {help}")));
    }
    Ok(known.iter().filter(|known| names.is_empty() || names.contains(&known.name)).collect())
}

fn read(arguments: &args::Warm, known: &[KnownBackend]) -> Result<Manifest, Failure> {
    if let Some(path) = &arguments.manifest {
        return Manifest::read(path, known).map_err(Failure::usage);
    }
    let folder = env::current_dir()
        .map_err(|error| Failure::environment(format!("the current folder is gone: {error}")))?;
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

/// Asks the backends that some kernel wants for their devices, all at once: a driver may take its
/// time to start.
fn ask(runtime: &Runtime, manifest: &Manifest, chosen: Vec<&KnownBackend>) -> Vec<Asked> {
    let wanted = chosen
        .into_iter()
        .filter(|backend| manifest.kernels.iter().any(|kernel| plan::wants(kernel, backend)));
    thread::scope(|scope| {
        let asked: Vec<_> = wanted
            .map(|backend| (backend, scope.spawn(|| devices(runtime, &backend.name))))
            .collect();
        asked
            .into_iter()
            .map(|(backend, devices)| Asked {
                backend: backend.clone(),
                devices: devices.join().unwrap_or_else(|_| Err("its driver panicked".into())),
            })
            .collect()
    })
}

/// The devices of a backend, if it has any and a compiler for each.
fn devices(runtime: &Runtime, name: &str) -> Result<Vec<Device>, String> {
    let Some(cache) = runtime.backends().iter().find(|cache| cache.name() == name) else {
        return Err("this program was built without it".into());
    };
    let devices = cache.devices().map_err(|error| bare(&error))?;
    if devices.is_empty() {
        return Err("it has no device".into());
    }
    for device in &devices {
        BackendCache::toolchain(cache, device).map_err(|error| bare(&error))?;
    }
    Ok(devices)
}

/// The backend's own words, where there are such: which backend and kernel, the caller says.
fn bare(error: &RuntimeError) -> String {
    error.backend_error().map_or_else(|| error.to_string(), ToString::to_string)
}

/// One job: the kernel is loaded too, so that what is in the store is known to be good.
fn make(runtime: &Runtime, job: &Job) -> Row {
    let began = Instant::now();
    let made = runtime.kernel_with_outcome(&job.device, &job.spec);
    let fingerprint =
        runtime.key(&job.device, &job.spec).ok().map(|key| key.fingerprint().to_string());
    let (outcome, elapsed, compile_time, error) = match made {
        Ok((_, made)) => {
            let outcome = match &made.origin {
                Origin::Compiled => Outcome::Compiled,
                Origin::Store(name) if &**name == "disk" => Outcome::Disk,
                Origin::Store(_) => Outcome::Remote,
                _ => Outcome::Memory,
            };
            (outcome, made.elapsed, made.compile_time.unwrap_or_default(), None)
        }
        Err(error) => (Outcome::Failed, began.elapsed(), Duration::ZERO, Some(bare(&error))),
    };
    Row {
        name: job.kernel.to_string(),
        backend: job.backend.to_string(),
        device: job.device.id().to_string(),
        variant: job.variant.to_string(),
        outcome,
        ms: millis(elapsed),
        fingerprint,
        error,
        compile_time,
    }
}

/// One line for what was compiled, the whole log for what failed, nothing for what was there.
fn tell(progress: &Progress, job: &Job, row: &Row) {
    let name = title(&row.name, &row.variant);
    match &row.error {
        Some(error) => {
            progress.aside(|| {
                let place = job.device.id();
                output::note(format!("{RED}error{RED:#}: {name} on {place}: {}", error.trim_end()));
            });
            progress.passed();
        }
        None if row.outcome == Outcome::Compiled => {
            let took = human(Duration::from_secs_f64(row.ms / 1e3));
            progress.done(format!("compiled {name} for {} in {took}", job.backend));
        }
        None => progress.passed(),
    }
}

fn title(name: &str, variant: &str) -> String {
    if variant.is_empty() { name.to_owned() } else { format!("{name} [{variant}]") }
}

/// What is left out, by reason.
fn tell_skipped(skipped: &[Skip]) {
    let mut rest = skipped;
    while let Some(first) = rest.first() {
        let same = rest.iter().take_while(|skip| skip.reason == first.reason).count();
        let names: Vec<_> = rest[..same].iter().map(|skip| skip.kernel.as_str()).collect();
        output::note(format!("{YELLOW}skipped{YELLOW:#} {}: {}", names.join(", "), first.reason));
        rest = &rest[same..];
    }
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
            "{lost} compiled kernels could not be kept in {}: see above",
            store.path().display()
        )));
    }
    if let Some(missing) = asked.iter().find(|asked| by_name && asked.devices.is_err()) {
        let name = &missing.backend.name;
        return Err(Failure::environment(format!("the backend {name} is not here: see above")));
    }
    Ok(if report.failed() > 0 { Exit::SomeFailed } else { Exit::Ok })
}

/// What went wrong without stopping anything, kept until the thread that writes comes by.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    fn note(&self, warning: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(warning);
    }

    fn tell(&self, progress: &Progress) {
        let noted = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for warning in noted {
            progress.aside(|| output::warn(&warning));
        }
    }
}
