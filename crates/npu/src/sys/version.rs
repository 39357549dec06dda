//! Which release of CANN a library is of, and whether it is one that this crate knows.

use super::error::LoadError;
use super::symbols::Origin;
use super::{Probed, text_of};
use cresset_acl::code::SUCCESS;
use cresset_acl::constant::package;
use cresset_acl::types::PackageVersion;
use std::fmt;

/// A release of CANN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

/// The interface did not change within these, but for functions that were added.
const MAJORS: std::ops::RangeInclusive<u32> = 8..=9;
const KNOWN: &str = "8.1 to 9.1, and others of major version 8 or 9";

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Version {
    /// What the library says; `None` if this one cannot tell.
    pub(super) fn of(probed: &Probed) -> Option<Version> {
        Version::by_number(probed).or_else(|| Version::by_text(probed))
    }

    /// Major times 10⁷, minor times 10⁵, patch times 10³.
    fn by_number(probed: &Probed) -> Option<Version> {
        let mut number = 0;
        // SAFETY: the name ends with a zero byte and is only read; the result has a place.
        let code = unsafe { probed.aclsysGetVersionNum?(c"runtime".as_ptr().cast_mut(), &mut number) };
        let number = u32::try_from(number).ok().filter(|&number| code == SUCCESS && number > 0)?;
        Some(Version {
            major: number / 10_000_000,
            minor: number / 100_000 % 100,
            patch: number / 1000 % 100,
        })
    }

    fn by_text(probed: &Probed) -> Option<Version> {
        let mut version = PackageVersion::NONE;
        // SAFETY: the result has a place.
        let code = unsafe { probed.aclsysGetCANNVersion?(package::CANN, &mut version) };
        if code != SUCCESS {
            return None;
        }
        *version.version.last_mut()? = 0;
        // SAFETY: ended by a zero byte, at the latest by the last one.
        parse(&unsafe { text_of(version.version.as_ptr()) })
    }

    /// Fails on a release that might declare functions otherwise, unless told to go on.
    pub(super) fn check(self, origin: &Origin) -> Result<(), LoadError> {
        let any = std::env::var("CRESSET_NPU_VERSION").is_ok_and(|value| value == "any");
        if MAJORS.contains(&self.major) || any {
            return Ok(());
        }
        Err(LoadError::version(&self.to_string(), KNOWN, origin))
    }
}

/// Texts such as `8.1.RC1` and `8.0.0.alpha002`; what is no number counts as 0.
fn parse(text: &str) -> Option<Version> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    let major = parts.next()??;
    let mut next = || parts.next().flatten().unwrap_or(0);
    Some(Version { major, minor: next(), patch: next() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_releases_are_read() {
        let read = |text| parse(text).map(|version| version.to_string());
        assert_eq!(read("8.1.RC1").as_deref(), Some("8.1.0"));
        assert_eq!(read("9.0.1").as_deref(), Some("9.0.1"));
        assert_eq!(read("8.0.0.alpha002").as_deref(), Some("8.0.0"));
        assert_eq!((read(""), read("RC1")), (None, None));
    }
}
