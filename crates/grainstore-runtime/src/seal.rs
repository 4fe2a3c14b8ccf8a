//! A digest inside the artifact, for backends whose loader does not survive broken bytes.
//!
//! Stores verify what they hand out. A driver that crashes on a cut binary, or a loader that runs
//! whatever it maps, should not have to rely on that: bytes also come from elsewhere, and a sealed
//! artifact says what it was made for.

use crate::{Artifact, BackendError};

/// The member that holds the seal. It is the last one.
const MEMBER: &str = "seal";

/// Separates these digests from every other use of the hash.
const CONTEXT: &str = "grainstore artifact seal 0";

impl Artifact {
    /// The same artifact with a seal as its last member: a digest of all others and of `label`,
    /// which says what the code was made for (target and toolchain).
    #[must_use]
    pub fn sealed(self, label: &str) -> Self {
        let digest = digest(&self, label);
        self.with_member(MEMBER, format!("{digest}\n{label}").into_bytes())
    }

    /// Says whether this is, byte for byte, what [`sealed`](Self::sealed) made for `label`. The bytes
    /// of an artifact that its store has [verified](Self::verified) are not digested again.
    ///
    /// # Errors
    /// [`BackendError::InvalidArtifact`] with what is wrong.
    pub fn check_seal(&self, label: &str) -> Result<(), BackendError> {
        let invalid = |reason: String| Err(BackendError::InvalidArtifact { reason });
        let seal = match self.members().split_last() {
            Some((seal, others)) if seal.name == MEMBER && !others.is_empty() => seal,
            _ => return invalid("it has no seal, so this backend did not make it".into()),
        };
        let text = std::str::from_utf8(&seal.bytes).unwrap_or_default();
        let Some((found, made_for)) = text.split_once('\n') else {
            return invalid("its seal is broken".into());
        };
        if made_for != label {
            return invalid(format!("it was made for `{made_for}`, not for `{label}`"));
        }
        if !self.is_verified() && found != digest(self, label) {
            return invalid("its bytes are not those that were sealed".into());
        }
        Ok(())
    }
}

/// Everything but the seal, each part framed by its length.
fn digest(artifact: &Artifact, label: &str) -> String {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(label.as_bytes());
    for member in artifact.members().iter().filter(|member| member.name != MEMBER) {
        part(member.name.as_bytes());
        part(&member.bytes);
    }
    hasher.finalize().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(artifact: &Artifact, label: &str) -> String {
        artifact.check_seal(label).expect_err("should have been refused").to_string()
    }

    #[test]
    fn a_sealed_artifact_is_good_for_its_label_alone() {
        let artifact = Artifact::new("kernel.bin", b"code".to_vec()).sealed("sm_90a");
        artifact.check_seal("sm_90a").unwrap();
        assert!(refusal(&artifact, "sm_80").contains("made for `sm_90a`, not for `sm_80`"));
        assert!(
            refusal(&Artifact::new("kernel.bin", b"code".to_vec()), "sm_90a").contains("no seal")
        );
    }

    #[test]
    fn any_flipped_bit_breaks_the_seal() {
        let artifact = Artifact::new("kernel.bin", b"code".to_vec()).sealed("sm_90a");
        for (index, member) in artifact.members().iter().enumerate() {
            for bit in 0..member.bytes.len() * 8 {
                let mut bytes = member.bytes.to_vec();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let mut parts = artifact.members().to_vec();
                parts[index].bytes = bytes.into();
                let first = parts.remove(0);
                let broken = parts
                    .into_iter()
                    .fold(Artifact::new(first.name, first.bytes), |artifact, member| {
                        artifact.with_member(member.name, member.bytes)
                    });
                refusal(&broken, "sm_90a");
            }
        }
    }

    #[test]
    fn a_member_more_or_less_breaks_the_seal() {
        let sealed = Artifact::new("a", b"1".to_vec()).with_member("b", b"2".to_vec()).sealed("x");
        let seal = sealed.member("seal").unwrap().to_vec();
        refusal(&Artifact::new("a", b"1".to_vec()).with_member("seal", seal.clone()), "x");
        refusal(&sealed.clone().with_member("c", b"3".to_vec()), "x");
        refusal(
            &Artifact::new("a", b"12".to_vec())
                .with_member("b", b"".to_vec())
                .with_member("seal", seal),
            "x",
        );
    }
    #[test]
    fn what_a_store_has_verified_is_taken_at_its_word_but_for_the_label() {
        let seal = format!("{}\nsm_90a", "0".repeat(64)).into_bytes();
        let artifact = Artifact::new("kernel.bin", b"code".to_vec()).with_member("seal", seal);
        assert!(refusal(&artifact, "sm_90a").contains("not those that were sealed"));
        let verified = artifact.verified();
        verified.check_seal("sm_90a").unwrap();
        assert!(refusal(&verified, "sm_80").contains("made for `sm_90a`"));
        let changed = verified.with_member("seal", format!("{}\nsm_90a", "1".repeat(64)));
        assert!(refusal(&changed, "sm_90a").contains("not those that were sealed"));
    }
}
