//! Sizes and ages as people write and read them.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

const UNITS: [(&str, u64); 4] = [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];

/// A number, whole or not, with an optional unit: `1048576`, `512K`, `1.5GiB`.
impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no size: write it like 500M, 1.5G or 1048576");
        let plain = text.trim().to_ascii_uppercase();
        let plain = plain.strip_suffix("IB").or_else(|| plain.strip_suffix('B')).unwrap_or(&plain);
        let unit = UNITS.iter().find_map(|(name, unit)| Some((plain.strip_suffix(name)?, *unit)));
        let (number, unit) = unit.unwrap_or((plain, 1));
        if let Ok(number) = number.parse::<u64>() {
            return number.checked_mul(unit).map(Self).ok_or_else(wrong);
        }
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let bytes = number * unit as f64;
        let fits = bytes.is_finite() && (0.0..u64::MAX as f64).contains(&bytes);
        if fits { Ok(Self(bytes as u64)) } else { Err(wrong()) }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((name, unit)) = UNITS.iter().find(|(_, unit)| self.0 >= *unit) else {
            return write!(f, "{} B", self.0);
        };
        let number = self.0 as f64 / *unit as f64;
        let digits = if number < 9.95 { 1 } else { 0 };
        write!(f, "{number:.digits$} {name}iB")
    }
}

/// How long ago that was, in its largest unit.
pub(super) fn ago(time: SystemTime) -> String {
    let age = SystemTime::now().duration_since(time).unwrap_or(Duration::ZERO).as_secs();
    match age {
        0..60 => "just now".into(),
        60..3600 => format!("{} min ago", age / 60),
        3600..86_400 => format!("{} h ago", age / 3600),
        _ => format!("{} d ago", age / 86_400),
    }
}

/// Seconds since the beginning of 1970, as JSON gives times.
pub(super) fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Size>().map(|size| size.0);
        assert_eq!(read("0"), Ok(0));
        assert_eq!(read("1048576"), Ok(1 << 20));
        for text in ["512K", "512k", "512 KiB".replace(' ', "").as_str(), "0.5M", "524288B"] {
            assert_eq!(read(text), Ok(512 << 10), "{text}");
        }
        assert_eq!(read("1.5G"), Ok(3 << 29));
        for wrong in ["", "G", "-1", "many", "1e40G", "99999999999999T", "nan"] {
            assert!(read(wrong).unwrap_err().contains("500M"), "{wrong}");
        }
    }

    #[test]
    fn sizes_and_ages_read_well() {
        let shown = [0, 1023, 1024, 15 << 10, 1 << 20, 5 << 30].map(|size| Size(size).to_string());
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "15 KiB", "1.0 MiB", "5.0 GiB"]);
        let before = |seconds| ago(SystemTime::now() - Duration::from_secs(seconds));
        assert_eq!(before(5), "just now");
        assert_eq!(before(130), "2 min ago");
        assert_eq!(before(2 * 3600 + 5), "2 h ago");
        assert_eq!(before(40 * 86_400 + 5), "40 d ago");
        assert_eq!(ago(SystemTime::now() + Duration::from_secs(1000)), "just now");
    }
}
