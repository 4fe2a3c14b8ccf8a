//! Looks at a shared object before the system's loader does.
//!
//! The loader maps what the headers say and then runs it; where a file is cut, it dies of a bus
//! error instead of saying so.

use std::env::consts::ARCH;

use object::{
    Architecture, BinaryFormat, Endianness, File, Object, ObjectKind, ObjectSection, ObjectSegment,
    ObjectSymbol, SymbolKind,
};

/// The functions that the shared object gives out, sorted, or why it cannot be loaded here.
pub(crate) fn functions(bytes: &[u8]) -> Result<Vec<String>, String> {
    let file = File::parse(bytes).map_err(|error| format!("it is no shared object: {error}"))?;
    if file.format() != BinaryFormat::native_object() {
        return Err(format!("it is a file for another system ({:?})", file.format()));
    }
    if file.kind() != ObjectKind::Dynamic {
        return Err("it is an object file, but not a shared one".into());
    }
    check_machine(&file)?;
    check_extent(&file)?;
    let mut names = match file.format() {
        BinaryFormat::Elf => dynamic_functions(&file),
        _ => exports(&file)?,
    };
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Whether this very process could run its code.
fn check_machine(file: &File<'_>) -> Result<(), String> {
    let native = match ARCH {
        "x86_64" => Architecture::X86_64,
        "x86" => Architecture::I386,
        "aarch64" => Architecture::Aarch64,
        "arm" => Architecture::Arm,
        "riscv64" => Architecture::Riscv64,
        "powerpc64" => Architecture::PowerPc64,
        "s390x" => Architecture::S390x,
        "loongarch64" => Architecture::LoongArch64,
        // Not told apart: word size and byte order still are.
        _ => file.architecture(),
    };
    let endianness =
        if cfg!(target_endian = "little") { Endianness::Little } else { Endianness::Big };
    let same = file.architecture() == native
        && file.is_64() == cfg!(target_pointer_width = "64")
        && file.endianness() == endianness;
    if same {
        return Ok(());
    }
    let bits = if file.is_64() { 64 } else { 32 };
    Err(format!("its code is for {:?} ({bits} bits), not for {ARCH}", file.architecture()))
}

/// Whether every part that its headers promise is really there.
fn check_extent(file: &File<'_>) -> Result<(), String> {
    let cut = |error: object::Error| format!("it is cut or broken: {error}");
    let mut loaded = false;
    for segment in file.segments() {
        segment.data().map_err(cut)?;
        loaded = true;
    }
    for section in file.sections() {
        section.data().map_err(cut)?;
    }
    if loaded { Ok(()) } else { Err("it holds nothing to load".into()) }
}

fn dynamic_functions(file: &File<'_>) -> Vec<String> {
    file.dynamic_symbols()
        .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text)
        .filter_map(|symbol| symbol.name().ok())
        // The start-up code of the object itself.
        .filter(|name| !matches!(*name, "_init" | "_fini"))
        .map(str::to_owned)
        .collect()
}

fn exports(file: &File<'_>) -> Result<Vec<String>, String> {
    let exports = file.exports().map_err(|error| format!("its exports are broken: {error}"))?;
    Ok(exports
        .iter()
        .filter_map(|export| std::str::from_utf8(export.name()).ok())
        // Mach-O writes C names with an underscore in front.
        .map(|name| if cfg!(target_vendor = "apple") { name.trim_start_matches('_') } else { name })
        .map(str::to_owned)
        .collect())
}
