//! What the launches need of a GPU API: three calls, so that a kernel's launch is written once for
//! all of them.

use std::marker::PhantomData;

use crate::{CaseError, Element, margin};

/// Elements in a device's memory, with their margin.
pub(crate) struct Buffer<T, M> {
    memory: M,
    len: usize,
    elements: PhantomData<T>,
}

impl<T, M> Buffer<T, M> {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }
}

/// An argument of a kernel. Numbers come before buffers: in WGSL they are a buffer of their own.
pub(crate) enum Arg<'a, T, M> {
    /// A number of 32 bits without a sign: a count or an extent.
    Size(usize),
    /// A `T` by value.
    Value(T),
    /// Elements.
    Buffer(&'a Buffer<T, M>),
}

/// The same without its type.
pub(crate) enum Plain<'a, M> {
    Number(Vec<u8>),
    Memory(&'a M),
}

/// A kernel's module on its device, with a queue on which each launch sees what the ones before it
/// wrote.
pub(crate) trait Gpu {
    /// A part of the device's memory.
    type Memory;

    /// Memory that holds a copy of these bytes.
    fn create(&self, content: &[u8]) -> Result<Self::Memory, CaseError>;

    /// Copies as many bytes back, when all launches before are done.
    fn read(&self, memory: &Self::Memory, content: &mut [u8]) -> Result<(), CaseError>;

    /// Launches a function of the module: so many groups, each of so many items.
    ///
    /// # Safety
    /// The arguments are those that the function's source declares, and it stays within the memory.
    unsafe fn enqueue(
        &self,
        function: &str,
        groups: [usize; 3],
        local: [usize; 3],
        arguments: &[Plain<'_, Self::Memory>],
    ) -> Result<(), CaseError>;

    /// A buffer that holds a copy of these elements.
    fn upload<T: Element>(&self, elements: &[T]) -> Result<Buffer<T, Self::Memory>, CaseError> {
        let memory = self.create(bytemuck::cast_slice(&margin::extend(elements)))?;
        Ok(Buffer { memory, len: elements.len(), elements: PhantomData })
    }

    /// A buffer for results.
    fn output<T: Element>(&self, len: usize) -> Result<Buffer<T, Self::Memory>, CaseError> {
        let memory = self.create(bytemuck::cast_slice(&margin::room::<T>(len)))?;
        Ok(Buffer { memory, len, elements: PhantomData })
    }

    /// The elements of a buffer, when all launches before are done.
    fn download<T: Element>(&self, buffer: &Buffer<T, Self::Memory>) -> Result<Vec<T>, CaseError> {
        let mut extended = margin::room::<T>(buffer.len);
        self.read(&buffer.memory, bytemuck::cast_slice_mut(&mut extended))?;
        margin::trim(extended)
    }

    /// Launches a function in as many dimensions as it has.
    ///
    /// # Safety
    /// As [`enqueue`](Self::enqueue).
    unsafe fn launch<T: Element, const DIMENSIONS: usize>(
        &self,
        function: &str,
        groups: [usize; DIMENSIONS],
        local: [usize; DIMENSIONS],
        args: &[Arg<'_, T, Self::Memory>],
    ) -> Result<(), CaseError> {
        let sizes = |given: [usize; DIMENSIONS]| {
            let mut all = [1; 3];
            all[..DIMENSIONS].copy_from_slice(&given);
            all
        };
        let plain: Vec<_> = args
            .iter()
            .map(|arg| match arg {
                // No test is so large that a size would not fit.
                Arg::Size(size) => Plain::Number((*size as u32).to_ne_bytes().into()),
                Arg::Value(value) => Plain::Number(bytemuck::bytes_of(value).into()),
                Arg::Buffer(buffer) => Plain::Memory(&buffer.memory),
            })
            .collect();
        // SAFETY: The caller promises arguments and bounds.
        unsafe { self.enqueue(function, sizes(groups), sizes(local), &plain) }
    }
}
