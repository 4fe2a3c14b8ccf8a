//! What is kept under one key: named members that belong together, and what is known of them.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

/// The most members a group may have.
pub const MAX_MEMBERS: usize = 1024;
/// The most bytes that a group's metadata may take as JSON text.
pub const MAX_METADATA: usize = 64 * 1024;
/// The longest name of a member, in bytes. It is a file's name on the common file systems.
pub const MAX_NAME: usize = 255;

/// Members that are stored, read and replaced together: a binary, and beside it the source, the
/// intermediate code or whatever else its owner wants back.
///
/// Cheap to clone: the bytes are shared.
///
/// ```
/// use grainstore_artifacts::Group;
/// let group = Group::new("kernel.so", vec![0x7f, b'E', b'L', b'F'])
///     .with_member("kernel.c", &b"int answer(void) { return 42; }"[..])
///     .with_metadata(serde_json::json!({ "registers": 32 }));
/// assert_eq!(group.binary().len(), 4);
/// group.check()?;
/// # Ok::<(), grainstore_artifacts::Refusal>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    members: Vec<Member>,
    metadata: Option<Value>,
    toolchain: Option<String>,
    compile_time: Option<Duration>,
}

/// One named part of a [`Group`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// A plain file name, as [`Group::check`] has it.
    pub name: String,
    /// The bytes: a view of the one buffer that the whole group was read into.
    pub bytes: Bytes,
}

impl Group {
    /// A group of one member. The first member is the binary: what a loader gets.
    #[must_use]
    pub fn new(name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        Self::default().with_member(name, bytes)
    }

    /// The same with one more member behind the others.
    #[must_use]
    pub fn with_member(mut self, name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        self.members.push(Member { name: name.into(), bytes: bytes.into() });
        self
    }

    /// The same with free metadata: any JSON, at most [`MAX_METADATA`] bytes of text.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Value) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// The same with the name and version of what made it. An empty text means unknown.
    #[must_use]
    pub fn with_toolchain(mut self, toolchain: impl Into<String>) -> Self {
        self.toolchain = Some(toolchain.into()).filter(|text| !text.is_empty());
        self
    }

    /// The same with the time it took to make: what a hit saves. Kept to the nanosecond.
    #[must_use]
    pub fn with_compile_time(mut self, time: Duration) -> Self {
        self.compile_time = Some(time);
        self
    }

    /// All members, the binary first.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The bytes of the member of that name.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Bytes> {
        self.members.iter().find(|member| member.name == name).map(|member| &member.bytes)
    }

    /// The bytes of the first member; none of them if there is none.
    #[must_use]
    pub fn binary(&self) -> &[u8] {
        self.members.first().map_or(&[], |member| &member.bytes)
    }

    /// The metadata, if there is any.
    #[must_use]
    pub fn metadata(&self) -> Option<&Value> {
        self.metadata.as_ref()
    }

    /// What made it, if that is known.
    #[must_use]
    pub fn toolchain(&self) -> Option<&str> {
        self.toolchain.as_deref()
    }

    /// How long it took to make, if that is known.
    #[must_use]
    pub fn compile_time(&self) -> Option<Duration> {
        self.compile_time
    }

    /// Whether this may be stored, and be handed out again.
    ///
    /// The members' names must be plain file names on every system, different from each other also
    /// where case does not count, so that they can always be written as files into one folder and
    /// nowhere else.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(&self) -> Result<(), Refusal> {
        let Some(binary) = self.members.first() else { return Err(Refusal::NoMembers) };
        if self.members.len() > MAX_MEMBERS {
            return Err(Refusal::TooManyMembers { count: self.members.len() });
        }
        if binary.bytes.is_empty() {
            return Err(Refusal::EmptyBinary { name: binary.name.clone() });
        }
        for member in &self.members {
            check_name(&member.name)
                .map_err(|why| Refusal::Name { name: member.name.clone(), why })?;
        }
        if self.members.len() > 1 {
            let mut names: Vec<_> =
                self.members.iter().map(|member| member.name.to_lowercase()).collect();
            names.sort_unstable();
            if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(Refusal::SameName { name: pair[0].clone() });
            }
        }
        Ok(())
    }
}

/// Names that mean a device and not a file on Windows, whatever extension they carry.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

fn check_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("it is empty");
    }
    if name.len() > MAX_NAME {
        return Err("it is longer than 255 bytes");
    }
    if name.chars().any(|c| c.is_control() || r#"/\:*?"<>|"#.contains(c)) {
        return Err("it has a character that file names can't have everywhere");
    }
    // This covers `.` and `..` as well.
    if name.ends_with(['.', ' ']) {
        return Err("it ends with a dot or a space");
    }
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_ascii_lowercase();
    let port = stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt"));
    if DEVICES.contains(&stem.as_str())
        || port.is_some_and(|n| matches!(n.as_bytes(), [b'0'..=b'9']))
    {
        return Err("it is the name of a device on Windows");
    }
    Ok(())
}

/// Why a [`Group`] may not be stored, or one that was found is not handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// It has no members.
    NoMembers,
    /// It has more than [`MAX_MEMBERS`].
    TooManyMembers {
        /// How many it has.
        count: usize,
    },
    /// Its first member has no bytes: no loader can want that.
    EmptyBinary {
        /// The member's name.
        name: String,
    },
    /// A member's name is not a plain file name.
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two members have one name, or names that differ in case alone.
    SameName {
        /// The name in lower case.
        name: String,
    },
    /// The metadata's JSON text is longer than [`MAX_METADATA`].
    MetadataTooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// It is too large for one file of this format.
    TooLarge {
        /// What is too large.
        what: &'static str,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMembers => f.write_str("the group has no members: give it a binary"),
            Self::TooManyMembers { count } => {
                write!(f, "the group has {count} members: at most {MAX_MEMBERS} fit")
            }
            Self::EmptyBinary { name } => write!(
                f,
                "the binary `{name}` is empty: see whether its compiler really made code for the \
                 target"
            ),
            Self::Name { name, why } => write!(
                f,
                "`{}` can't be a member's name, since {why}: use a plain file name",
                name.escape_debug()
            ),
            Self::SameName { name } => {
                write!(f, "two members are named `{name}` (case does not count): rename one")
            }
            Self::MetadataTooLong { length } => write!(
                f,
                "the metadata is {length} bytes of JSON, more than {MAX_METADATA}: store it as a \
                 member"
            ),
            Self::TooLarge { what } => write!(f, "{what} is too large for one artifact"),
        }
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_climb_or_collide_are_refused() {
        let bad = [
            "", ".", "..", "../x", "a/b", "/etc", "a\\b", "c:x", "x\0", "x\n", "x.", "x ", "nul",
            "NUL.txt", "Com1", "lpt9.o", "aux .c", "?",
        ];
        for name in bad {
            let refused = Group::new(name, vec![1]).check();
            assert!(matches!(refused, Err(Refusal::Name { .. })), "{name:?}: {refused:?}");
        }
        let long = "n".repeat(MAX_NAME + 1);
        assert!(Group::new(long, vec![1]).check().is_err());
    }

    #[test]
    fn plain_names_are_taken() {
        for name in ["k", ".hidden", "kernel.sm_90a.cubin", "größe.so", "com", "com10", "a..b"] {
            assert_eq!(Group::new(name, vec![1]).check(), Ok(()), "{name}");
        }
        assert_eq!(Group::new("n".repeat(MAX_NAME), vec![1]).check(), Ok(()));
    }

    #[test]
    fn names_that_differ_in_case_alone_are_refused() {
        let group = Group::new("a.bin", vec![1]).with_member("A.bin", vec![2]);
        assert_eq!(group.check(), Err(Refusal::SameName { name: "a.bin".into() }));
    }

    #[test]
    fn nothing_and_empty_binaries_are_refused_but_empty_companions_are_not() {
        assert_eq!(Group::default().check(), Err(Refusal::NoMembers));
        assert!(matches!(Group::new("k", vec![]).check(), Err(Refusal::EmptyBinary { .. })));
        assert_eq!(Group::new("k", vec![1]).with_member("log", vec![]).check(), Ok(()));
    }

    #[test]
    fn too_many_members_are_refused() {
        let full = (1..MAX_MEMBERS)
            .fold(Group::new("0", vec![1]), |group, i| group.with_member(i.to_string(), vec![]));
        assert_eq!(full.check(), Ok(()));
        let over = full.with_member("over", vec![]);
        assert_eq!(over.check(), Err(Refusal::TooManyMembers { count: MAX_MEMBERS + 1 }));
    }
}
