//! What a compiler leaves behind: named byte strings, enough to load the kernel again.

use bytes::Bytes;

/// A compiled kernel as bytes: a binary, and beside it whatever its backend wants to keep.
///
/// Cheap to clone: the bytes are shared.
#[derive(Clone, Debug)]
pub struct Artifact {
    members: Vec<Member>,
    /// Whether whoever made this value has verified every byte of it.
    verified: bool,
}

/// One named part of an [`Artifact`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// A plain file name: no separator, no `..`.
    pub name: String,
    /// The bytes. A store may give a view of the one buffer that it read.
    pub bytes: Bytes,
}

impl Artifact {
    /// An artifact of a single member. The first member is the one that is loaded.
    #[must_use]
    pub fn new(name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        let members = vec![Member { name: name.into(), bytes: bytes.into() }];
        Self { members, verified: false }
    }

    /// The same with one more member behind the others.
    #[must_use]
    pub fn with_member(mut self, name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        self.members.push(Member { name: name.into(), bytes: bytes.into() });
        self.verified = false;
        self
    }

    /// The same from a store that has compared a digest of all its members with the one they were
    /// put with: a [seal](Self::check_seal) is not computed over them once more.
    #[must_use]
    pub fn verified(mut self) -> Self {
        self.verified = true;
        self
    }

    pub(crate) fn is_verified(&self) -> bool {
        self.verified
    }

    /// All members, the binary first.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The bytes of the member of that name.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&[u8]> {
        self.members.iter().find(|member| member.name == name).map(|member| &*member.bytes)
    }

    /// The bytes of the first member: what the loader gets.
    #[must_use]
    pub fn binary(&self) -> &[u8] {
        self.members.first().map_or(&[], |member| &member.bytes)
    }
}

/// The members alone: who has looked at them makes no other artifact of it.
impl PartialEq for Artifact {
    fn eq(&self, other: &Self) -> bool {
        self.members == other.members
    }
}

impl Eq for Artifact {}
