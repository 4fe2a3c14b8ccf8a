//! What a contender's rounds gave: a median, a spread, and how much was thrown away.

use serde::Serialize;

/// Values of one contender, one for each round.
#[derive(Clone, Debug, Default)]
pub struct Series {
    quiet: Vec<f64>,
    disturbed: Vec<f64>,
}

/// A series in short.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Summary {
    /// The middle of the rounds.
    pub median: f64,
    /// One round in ten was below.
    pub p10: f64,
    /// One round in ten was above.
    pub p90: f64,
    /// Rounds that count.
    pub rounds: usize,
    /// Rounds thrown away, since the machine disturbed them.
    pub dropped: usize,
    /// Whether enough rounds were left undisturbed. Where not, the figures are those of all rounds.
    pub trusted: bool,
}

impl Series {
    /// Fewer undisturbed rounds than this say nothing.
    const ENOUGH: usize = 5;

    /// Notes a round.
    pub fn add(&mut self, value: f64, quiet: bool) {
        if quiet && value.is_finite() { self.quiet.push(value) } else { self.disturbed.push(value) }
    }

    /// Rounds so far that count.
    #[must_use]
    pub fn quiet_rounds(&self) -> usize {
        self.quiet.len()
    }

    /// A figure that no round can disturb, such as a number of bytes.
    #[must_use]
    pub fn exact(value: f64) -> Summary {
        Summary { median: value, p10: value, p90: value, rounds: 1, dropped: 0, trusted: true }
    }

    /// The series in short.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let trusted = self.quiet.len() >= Self::ENOUGH;
        let mut values = self.quiet.clone();
        if !trusted {
            values.extend(self.disturbed.iter().filter(|value| value.is_finite()));
        }
        values.sort_by(f64::total_cmp);
        Summary {
            median: quantile(&values, 0.5),
            p10: quantile(&values, 0.1),
            p90: quantile(&values, 0.9),
            rounds: self.quiet.len(),
            dropped: self.disturbed.len(),
            trusted,
        }
    }
}

/// The value below which this share of sorted values lies, the nearest one taken.
#[must_use]
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    sorted[(last as f64 * share).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_rounds_count_only_where_too_few_were_quiet() {
        let mut series = Series::default();
        for value in [1.0, 2.0, 3.0, 4.0] {
            series.add(value, true);
        }
        series.add(100.0, false);
        series.add(f64::NAN, false);
        let summary = series.summary();
        assert!(!summary.trusted);
        assert_eq!((summary.median, summary.p90), (3.0, 100.0));
        series.add(5.0, true);
        let summary = series.summary();
        assert!(summary.trusted);
        assert_eq!((summary.median, summary.p90, summary.dropped), (3.0, 5.0, 2));
    }

    #[test]
    fn quantiles_take_the_nearest_value() {
        let values: Vec<f64> = (0..=1000).map(f64::from).collect();
        assert_eq!(quantile(&values, 0.999), 999.0);
        assert_eq!(quantile(&values, 0.5), 500.0);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
