//! A place where tensors live: a backend and which of its devices.

use crate::Key;
use std::fmt;
use std::str::FromStr;

/// A backend and an index, written `cpu`, `meta` or `npu:0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device {
    /// The backend.
    pub key: Key,
    /// Which of the backend's devices; 0 for the host.
    pub index: u8,
}

impl Device {
    /// The host.
    pub const CPU: Device = Device { key: Key::CPU, index: 0 };
    /// Nowhere: shapes and dtypes without data.
    pub const META: Device = Device { key: Key::META, index: 0 };

    /// Whether this is the host.
    #[inline]
    pub fn is_cpu(self) -> bool {
        self.key == Key::CPU
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key {
            Key::CPU | Key::META => self.key.fmt(f),
            key => write!(f, "{key}:{}", self.index),
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Device {
    type Err = UnknownDevice;

    fn from_str(text: &str) -> Result<Device, UnknownDevice> {
        let unknown = || UnknownDevice { asked: text.to_owned() };
        let (name, index) = match text.split_once(':') {
            Some((name, index)) => (name, index.parse().map_err(|_| unknown())?),
            None => (text, 0),
        };
        let key = Key::find(name).ok_or_else(unknown)?;
        let only_one = matches!(key, Key::CPU | Key::META);
        if only_one && index != 0 { Err(unknown()) } else { Ok(Device { key, index }) }
    }
}

/// A device name that no backend answers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDevice {
    /// The name that was asked for.
    pub asked: String,
}

impl fmt::Display for UnknownDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = Key::backends().map(Key::name).collect();
        write!(
            f,
            "unknown device {:?}: known are {}, each with an optional :index",
            self.asked,
            known.join(", ")
        )
    }
}

impl std::error::Error for UnknownDevice {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        let key = Key::claim("device-test").expect("a slot is free");
        let device = Device { key, index: 3 };
        assert_eq!(device.to_string(), "device-test:3");
        assert_eq!("device-test:3".parse(), Ok(device));
        assert_eq!("device-test".parse(), Ok(Device { key, index: 0 }));
        assert_eq!("cpu".parse(), Ok(Device::CPU));
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = "tpu:1".parse::<Device>().unwrap_err().to_string();
        assert!(error.starts_with(r#"unknown device "tpu:1": known are cpu, meta"#), "{error}");
        assert!("cpu:x".parse::<Device>().is_err());
        assert!("cpu:1".parse::<Device>().is_err());
    }
}
