//! Looks into ready-made machine code before the driver does: the driver is given an address and
//! no length, and reads as far as the file's own tables say.

/// Where things are in a 64-bit ELF file, little-endian, and what they must be.
const MAGIC: &[u8] = b"\x7fELF\x02\x01";
const MACHINE: usize = 18;
/// `EM_CUDA`.
const CUDA: u16 = 190;
const SEGMENTS: Table = Table { offset: 32, entry_size: 54, count: 56, smallest: 56 };
const SECTIONS: Table = Table { offset: 40, entry_size: 58, count: 60, smallest: 64 };
const HEADER: usize = 64;

/// Where a header says what a table is like, and how large an entry of it is at least.
struct Table {
    offset: usize,
    entry_size: usize,
    count: usize,
    smallest: usize,
}

const SYMBOL_TABLE: u32 = 2;
/// A section that takes no room in the file.
const NO_BITS: u32 = 8;
const SYMBOL: usize = 24;
/// In a symbol's `st_other`: it is a kernel, not a function that kernels call.
const ENTRY: u8 = 0x10;

/// The names of its kernels, sorted, or what is wrong with it.
pub(crate) fn kernels(file: &[u8]) -> Result<Vec<String>, &'static str> {
    if file.len() < HEADER || !file.starts_with(MAGIC) || u16_at(file, MACHINE) != Some(CUDA) {
        return Err("it is no CUBIN, which is an ELF file for NVIDIA's devices");
    }
    parse(file).ok_or("it is cut or broken: its tables point outside of it")
}

/// None where a table, a segment or a section is not within the file.
fn parse(file: &[u8]) -> Option<Vec<String>> {
    for segment in entries(file, &SEGMENTS)? {
        slice(file, u64_at(segment, 8)?, u64_at(segment, 32)?)?;
    }
    let sections = entries(file, &SECTIONS)?;
    let mut kernels = Vec::new();
    for section in &sections {
        if u32_at(section, 4)? != NO_BITS {
            content(file, section)?;
        }
    }
    for table in sections.iter().filter(|section| u32_at(section, 4) == Some(SYMBOL_TABLE)) {
        let names = content(file, sections.get(u32_at(table, 40)? as usize)?)?;
        for symbol in content(file, table)?.chunks_exact(SYMBOL) {
            if symbol[5] & ENTRY != 0 {
                let name = names.get(u32_at(symbol, 0)? as usize..)?;
                let end = name.iter().position(|byte| *byte == 0)?;
                kernels.push(String::from_utf8_lossy(&name[..end]).into_owned());
            }
        }
    }
    kernels.sort_unstable();
    kernels.dedup();
    Some(kernels)
}

fn entries<'f>(file: &'f [u8], table: &Table) -> Option<Vec<&'f [u8]>> {
    let (size, count) = (u16_at(file, table.entry_size)?, u16_at(file, table.count)?);
    if count == 0 {
        return Some(Vec::new());
    }
    let size = usize::from(size);
    if size < table.smallest {
        return None;
    }
    let all = slice(file, u64_at(file, table.offset)?, (size * usize::from(count)) as u64)?;
    Some(all.chunks_exact(size).collect())
}

fn content<'f>(file: &'f [u8], section: &[u8]) -> Option<&'f [u8]> {
    slice(file, u64_at(section, 24)?, u64_at(section, 32)?)
}

fn slice(file: &[u8], offset: u64, length: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    file.get(start..start.checked_add(usize::try_from(length).ok()?)?)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_cubin_is_refused() {
        let mut header = vec![0; HEADER];
        header[..MAGIC.len()].copy_from_slice(MAGIC);
        assert!(kernels(&header).unwrap_err().contains("no CUBIN"));
        header[MACHINE] = 190;
        assert_eq!(kernels(&header), Ok(Vec::new()));
        for length in 0..HEADER {
            kernels(&header[..length]).unwrap_err();
        }
        // A table of sections that lies outside, and one that does not end.
        header[60] = 1;
        header[58] = 64;
        header[40] = 64;
        assert!(kernels(&header).unwrap_err().contains("cut or broken"));
        header[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
        kernels(&header).unwrap_err();
        header[58] = 0;
        kernels(&header).unwrap_err();
    }
}
