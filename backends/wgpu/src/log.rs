//! What wgpu says of a source that it does not take, with the place and the line.

use std::error::Error;

use grainstore_runtime::{BackendError, KernelSpec};
use wgpu::{CompilationInfo, CompilationMessageType};

/// A shader that is wrong in itself.
pub(crate) fn shader(
    spec: &KernelSpec,
    error: &wgpu::Error,
    info: &CompilationInfo,
) -> BackendError {
    if let wgpu::Error::OutOfMemory { .. } = error {
        return out_of_memory("create_shader_module");
    }
    let file = file(spec);
    let messages: Vec<_> = info
        .messages
        .iter()
        .filter(|message| message.message_type == CompilationMessageType::Error)
        .map(|message| {
            let place = message.location.map(|at| (at.line_number, at.line_position));
            readable(&file, place, &message.message)
        })
        .collect();
    if messages.is_empty() {
        return BackendError::Compile { log: format!("{file}: {}", chain(error)) };
    }
    BackendError::Compile { log: messages.join("\n") }
}

/// A shader that does not make the pipeline that was asked for. The place is one of its functions.
pub(crate) fn pipeline(spec: &KernelSpec, function: &str, error: &wgpu::Error) -> BackendError {
    if let wgpu::Error::OutOfMemory { .. } = error {
        return out_of_memory("create_pipeline");
    }
    BackendError::Compile { log: format!("{}: in `{function}`: {}", file(spec), chain(error)) }
}

/// What the shader is called in messages.
pub(crate) fn file(spec: &KernelSpec) -> String {
    format!("{}.wgsl", spec.name())
}

fn out_of_memory(call: &str) -> BackendError {
    BackendError::failed(call, "out of memory")
}

/// The message with its place in front, as other compilers have it, and the parser's own name for
/// the source taken out.
fn readable(file: &str, place: Option<(u32, u32)>, message: &str) -> String {
    let message = message.trim();
    let message = [format!("Shader '{file}' parsing "), "Shader validation ".to_owned()]
        .iter()
        .find_map(|front| message.strip_prefix(front))
        .unwrap_or(message)
        .replace("\u{2500} wgsl:", &format!("\u{2500} {file}:"));
    match place {
        Some((line, column)) => format!("{file}:{line}:{column}: {message}"),
        None => format!("{file}: {message}"),
    }
}

/// What an error says, and what the errors below it say.
fn chain(error: &wgpu::Error) -> String {
    let mut text = Vec::new();
    // The outermost repeats the others, and the next names the call.
    let mut next = error.source().and_then(Error::source);
    while let Some(error) = next {
        let line = error.to_string();
        if text.last() != Some(&line) {
            text.push(line);
        }
        next = error.source();
    }
    if text.is_empty() { error.to_string() } else { text.join(": ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_comes_first() {
        let message = "\nShader 'k.wgsl' parsing error: no definition in scope for identifier: `y`\n  \
                       \u{250c}\u{2500} wgsl:2:12\n  \u{2502}\n2 \u{2502}     x[0] = y;\n";
        assert_eq!(
            readable("k.wgsl", Some((2, 12)), message),
            "k.wgsl:2:12: error: no definition in scope for identifier: `y`\n  \
             \u{250c}\u{2500} k.wgsl:2:12\n  \u{2502}\n2 \u{2502}     x[0] = y;"
        );
        assert_eq!(readable("k.wgsl", None, "no"), "k.wgsl: no");
    }
}
