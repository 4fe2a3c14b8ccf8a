//! With the feature `tracing` each build is a span: S2. As a subscriber sees it: the names of spans,
//! their cache's name, and which were open when something was said.
//!
//! A program of its own: where several threads meet a span for the first time, and one of them has
//! the only subscriber, tracing may settle that nobody listens.
#![cfg(feature = "tracing")]
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use std::fmt::Debug;
use std::io::Error;
use std::sync::{Arc, Mutex};

use grainstore::Cache;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

#[derive(Default)]
struct Seen {
    spans: Vec<String>,
    open: usize,
    /// How many spans were open at each event.
    events: Vec<usize>,
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Seen>>);

struct CacheName(String);

impl Visit for CacheName {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "cache" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut cache = CacheName(String::new());
        span.record(&mut cache);
        let mut seen = self.0.lock().unwrap();
        seen.spans.push(format!("{} {}", span.metadata().name(), cache.0));
        Id::from_u64(seen.spans.len() as u64)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        let mut seen = self.0.lock().unwrap();
        let open = seen.open;
        seen.events.push(open);
    }

    fn enter(&self, _: &Id) {
        self.0.lock().unwrap().open += 1;
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().open -= 1;
    }
}

#[test]
fn s2_each_build_is_a_span_and_a_hit_is_none() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let cache = Cache::<u64, u64>::builder().name("plans").build().unwrap();
        for _ in 0..2 {
            let build = || {
                tracing::info!("inside");
                Ok::<_, Error>(1)
            };
            cache.get_or_build(&1, build).unwrap();
            tracing::info!("outside");
        }
        assert!(cache.get_or_build(&2, || Err::<u64, _>(Error::other("no"))).is_err());
    });
    let seen = log.0.lock().unwrap();
    assert_eq!(seen.spans, ["build \"plans\"", "build \"plans\""]);
    assert_eq!(seen.events, [1, 0, 0]);
}
