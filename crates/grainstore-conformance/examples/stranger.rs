//! A stranger's backend, whole, and the battery over it.
//!
//! Its kernels are programs of a little stack language, such as `in 5 +`, which leaves its result on
//! the stack for every number of the input. The "driver" is a module below: it hands out handles,
//! complains about stale ones, and knows how many there are, as a vendor's library would.
//!
//!     cargo run --example stranger -p grainstore-conformance

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grainstore::{DeviceId, Family};
use grainstore_conformance::{BoxError, Cannot, Subject};
use grainstore_runtime::{
    Artifact, Backend, BackendError, DeviceInfo, KernelSpec, KernelSpecBuilder, Language, Target,
    Toolchain,
};

fn main() -> ExitCode {
    let report = grainstore_conformance::run(&Stranger);
    println!("{report}");
    if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

// ---- The backend ------------------------------------------------------------------------------

const LANGUAGE: Language = Language::Other("stack");
const TARGET: &str = "abacus-32";

/// The backend: a driver, and a context on each device in use.
#[derive(Default)]
pub(crate) struct Stack {
    driver: Arc<driver::Driver>,
    contexts: Mutex<HashMap<u32, Arc<Context>>>,
}

/// A loaded program. It holds its context, so that a late release is safe.
pub(crate) struct Program {
    handle: u64,
    context: Arc<Context>,
}

struct Context {
    handle: u64,
    driver: Arc<driver::Driver>,
}

impl Stack {
    pub(crate) fn live_handles(&self) -> usize {
        self.driver.handles()
    }

    fn context(&self, device: &DeviceId) -> Result<Arc<Context>, BackendError> {
        self.target(device)?;
        let make = || {
            let (handle, driver) = (self.driver.create_context(), Arc::clone(&self.driver));
            Arc::new(Context { handle, driver })
        };
        Ok(Arc::clone(lock(&self.contexts).entry(device.index()).or_insert_with(make)))
    }

    fn program(&self, device: &DeviceId, code: &[u8]) -> Result<Program, BackendError> {
        let context = self.context(device)?;
        let handle = self
            .driver
            .create_program(context.handle, code)
            .map_err(|error| BackendError::failed("create_program", error))?;
        Ok(Program { handle, context })
    }
}

impl Program {
    pub(crate) fn run(&self, input: &[u32]) -> Result<Vec<u32>, String> {
        self.context.driver.run(self.handle, input)
    }
}

// Modules that are dropped by other ways than `unload` leave nothing behind either.
impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.context.driver.destroy(self.handle);
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let _ = self.driver.destroy(self.handle);
    }
}

impl Backend for Stack {
    type Module = Program;

    fn name(&self) -> &str {
        "stack"
    }

    fn family(&self) -> Family {
        Family::new("Abacus")
    }

    fn languages(&self) -> &[Language] {
        &[LANGUAGE]
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, BackendError> {
        let id = DeviceId::new(self.family(), 0);
        Ok(vec![DeviceInfo { id, name: "Abacus".into(), driver: "beads 1.0".into() }])
    }

    fn target(&self, device: &DeviceId) -> Result<Target, BackendError> {
        if *device == DeviceId::new(self.family(), 0) {
            return Ok(Target::new(TARGET));
        }
        Err(BackendError::NoDevice {
            message: format!("there is no {device}: there is one abacus"),
        })
    }

    fn toolchain(&self, _: &Target) -> Result<Toolchain, BackendError> {
        Ok(Toolchain::new("stack compiler 1.0"))
    }

    fn build(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
    ) -> Result<(Program, Option<Artifact>), BackendError> {
        let target = self.target(device)?;
        let artifact = self.compile_for(&target, spec)?;
        Ok((self.program(device, artifact.binary())?, Some(artifact)))
    }

    fn load(
        &self,
        device: &DeviceId,
        _: &KernelSpec,
        artifact: &Artifact,
    ) -> Result<Program, BackendError> {
        // The driver runs whatever it is given: nothing may get there that was not made here.
        artifact.check_seal(TARGET)?;
        self.program(device, artifact.binary())
    }

    fn unload(&self, module: Program) -> Result<(), BackendError> {
        drop(module);
        Ok(())
    }

    fn destroy_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        // It goes with the last module that needs it.
        drop(lock(&self.contexts).remove(&device.index()));
        Ok(())
    }

    fn compiles_ahead(&self) -> bool {
        true
    }

    fn compile_for(&self, _: &Target, spec: &KernelSpec) -> Result<Artifact, BackendError> {
        Ok(Artifact::new("program", compile(spec)?).sealed(TARGET))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// ---- The compiler -----------------------------------------------------------------------------

/// Words to code: a byte for each operation, and four more for a number. `NAME` stands for a
/// define, `<NAME>` for a header, and `--then=WORD` is an option that adds a word at the end.
fn compile(spec: &KernelSpec) -> Result<Vec<u8>, BackendError> {
    if let Some(entry) = spec.entry() {
        return Err(BackendError::NoEntryPoint { entry: entry.into(), available: Vec::new() });
    }
    let text = String::from_utf8_lossy(spec.source());
    let mut words: Vec<&str> = text.split_whitespace().collect();
    for option in spec.options() {
        words.extend(
            option
                .strip_prefix("--then=")
                .ok_or_else(|| {
                    BackendError::unsupported(
                        format!("the option `{option}`"),
                        "there is only `--then=`",
                    )
                })?
                .split(','),
        );
    }
    let mut code = Vec::new();
    for word in words {
        compile_word(word, spec, &mut code)?;
    }
    Ok(code)
}

fn compile_word(word: &str, spec: &KernelSpec, code: &mut Vec<u8>) -> Result<(), BackendError> {
    if let Some((_, value)) = spec.defines().iter().find(|(name, _)| name == word) {
        return compile_word(value, spec, code);
    }
    let header = word.strip_prefix('<').and_then(|word| word.strip_suffix('>'));
    if let Some((_, text)) = spec.headers().iter().find(|(name, _)| header == Some(name)) {
        let text = String::from_utf8_lossy(text).into_owned();
        return text.split_whitespace().try_for_each(|word| compile_word(word, spec, code));
    }
    match word {
        "in" => code.push(driver::INPUT),
        "+" => code.push(driver::ADD),
        word => {
            let Ok(number) = word.parse::<u32>() else {
                let log = format!("{}: error: what is `{word}`?", spec.name());
                return Err(BackendError::Compile { log });
            };
            code.push(driver::PUSH);
            code.extend(number.to_le_bytes());
        }
    }
    Ok(())
}

// ---- The driver -------------------------------------------------------------------------------

/// What would be a vendor's library: it trusts its callers, and counts its handles.
mod driver {
    use std::collections::HashMap;
    use std::sync::Mutex;

    use super::lock;

    pub(crate) const INPUT: u8 = 1;
    pub(crate) const ADD: u8 = 2;
    pub(crate) const PUSH: u8 = 3;

    #[derive(Default)]
    pub(crate) struct Driver(Mutex<Table>);

    #[derive(Default)]
    struct Table {
        last: u64,
        /// The code of a program; nothing for a context.
        handles: HashMap<u64, Option<Vec<u8>>>,
    }

    impl Driver {
        pub(crate) fn handles(&self) -> usize {
            lock(&self.0).handles.len()
        }

        pub(crate) fn create_context(&self) -> u64 {
            lock(&self.0).create(None)
        }

        pub(crate) fn create_program(&self, context: u64, code: &[u8]) -> Result<u64, String> {
            let mut table = lock(&self.0);
            match table.handles.get(&context) {
                Some(None) => Ok(table.create(Some(code.to_vec()))),
                _ => Err(format!("{context} is no context")),
            }
        }

        pub(crate) fn run(&self, program: u64, input: &[u32]) -> Result<Vec<u32>, String> {
            let code = match lock(&self.0).handles.get(&program) {
                Some(Some(code)) => code.clone(),
                _ => return Err(format!("{program} is no program")),
            };
            input.iter().map(|number| run(&code, *number)).collect()
        }

        pub(crate) fn destroy(&self, handle: u64) -> Result<(), String> {
            let found = lock(&self.0).handles.remove(&handle);
            found.map(drop).ok_or_else(|| format!("{handle} is no handle"))
        }
    }

    impl Table {
        fn create(&mut self, code: Option<Vec<u8>>) -> u64 {
            self.last += 1;
            self.handles.insert(self.last, code);
            self.last
        }
    }

    fn run(code: &[u8], number: u32) -> Result<u32, String> {
        let mut stack: Vec<u32> = Vec::new();
        let mut at = 0;
        while let Some(operation) = code.get(at) {
            at += 1;
            match *operation {
                INPUT => stack.push(number),
                ADD => {
                    let (a, b) = (stack.pop(), stack.pop());
                    stack.push(a.zip(b).map(|(a, b)| a.wrapping_add(b)).ok_or("underflow")?);
                }
                _ => {
                    let bytes = code.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
                    stack.push(u32::from_le_bytes(bytes.ok_or("the program ends in a number")?));
                    at += 4;
                }
            }
        }
        stack.pop().ok_or_else(|| "nothing is left on the stack".into())
    }
}

// ---- The subject: all that the battery needs to know -------------------------------------------

pub(crate) struct Stranger;

fn spec(source: &str) -> KernelSpecBuilder {
    KernelSpec::builder("add", LANGUAGE).source(source)
}

fn made(spec: KernelSpecBuilder) -> KernelSpec {
    spec.build().unwrap_or_else(|error| panic!("the subject's own kernel: {error}"))
}

impl Subject for Stranger {
    type Backend = Stack;

    fn name(&self) -> &str {
        "stack"
    }

    fn backend(&self) -> Result<Stack, BackendError> {
        Ok(Stack::default())
    }

    fn kernel(&self, add: u32) -> KernelSpec {
        made(spec(&format!("in {add} +")))
    }

    fn wrong(&self) -> KernelSpec {
        made(spec("in five +"))
    }

    fn launch(&self, module: &Program, input: &[u32]) -> Result<Vec<u32>, BoxError> {
        Ok(module.run(input)?)
    }

    fn live_handles(&self, backend: &Stack) -> usize {
        backend.live_handles()
    }

    fn with_header(&self, add: u32) -> Result<KernelSpec, Cannot> {
        Ok(made(spec("in <number> +").header("number", add.to_string())))
    }

    fn with_define(&self, add: u32) -> Result<KernelSpec, Cannot> {
        Ok(made(spec("in ADD +").define("ADD", add.to_string())))
    }

    fn with_option(&self, add: u32) -> Result<KernelSpec, Cannot> {
        Ok(made(spec("in").option(format!("--then={add},+"))))
    }

    fn with_constant(&self, _: u32) -> Result<KernelSpec, Cannot> {
        Err(Cannot::because("the stack language has no specialization constants"))
    }

    fn without_library(&self, _: &std::path::Path) -> Result<Stack, Cannot> {
        Err(Cannot::because("the driver is part of the backend"))
    }
}
