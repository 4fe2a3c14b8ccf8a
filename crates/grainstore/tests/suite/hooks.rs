//! Teardown hooks as their users see them: H1 to H4 and H6. How a cache is wired (H5), and that
//! owners come last, is tested where caches are at hand.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;

use grainstore::{DeviceId, Family, Framework, HookError, Hooks, Registration};

const DEVICE: DeviceId = DeviceId::new(Family::HOST, 3);

#[derive(Debug, PartialEq)]
struct Broken(&'static str);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken: {}", self.0)
    }
}

impl Error for Broken {}

type Answer = Result<(), Broken>;

/// What was called, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, entry: impl Into<String>) {
        self.0.lock().unwrap().push(entry.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// A listener that leaves this entry.
    fn listener(&self, entry: &'static str) -> impl Fn() -> Answer + Send + Sync + use<> {
        let log = self.clone();
        move || {
            log.add(entry);
            Ok(())
        }
    }
}

/// Hooks with one listener on clear-all that leaves `notified`.
fn logged() -> (Hooks, Log, Registration) {
    let (hooks, log) = (Hooks::new(), Log::default());
    let registration = hooks.on_clear_all(log.listener("notified"));
    (hooks, log, registration)
}

fn message(error: &HookError) -> String {
    error.to_string()
}

#[test]
fn h1_listeners_hear_of_their_event_alone_and_of_the_device() {
    let (hooks, log) = (Hooks::new(), Log::default());
    let on_device = {
        let log = log.clone();
        hooks.on_device_destroy(move |device| {
            log.add(format!("{device} destroyed"));
            Ok::<_, Infallible>(())
        })
    };
    let on_clear = hooks.on_clear_all(log.listener("cleared"));
    hooks.clone().notify_device_destroy(&DEVICE).unwrap();
    assert_eq!(log.take(), ["host:3 destroyed"]);
    hooks.notify_clear_all().unwrap();
    assert_eq!(log.take(), ["cleared"]);
    drop((on_device, on_clear));
}

#[test]
fn h1_a_dropped_registration_unregisters_and_a_forgotten_one_stays() {
    let (hooks, log) = (Hooks::new(), Log::default());
    let dropped = hooks.on_clear_all(log.listener("dropped"));
    hooks.on_clear_all(log.listener("forgotten")).forget();
    drop(dropped);
    hooks.notify_clear_all().unwrap();
    assert_eq!(log.take(), ["forgotten"]);
}

#[test]
fn h1_a_registration_outlives_its_hooks_and_keeps_no_listener() {
    let hooks = Hooks::new();
    let captured = Arc::new(());
    let in_listener = Arc::clone(&captured);
    let registration = hooks.on_clear_all(move || {
        let _ = &in_listener;
        Answer::Ok(())
    });
    drop(hooks);
    assert_eq!(Arc::strong_count(&captured), 1);
    drop(registration);
}

#[test]
fn h1_a_dropped_registration_drops_what_its_listener_holds() {
    let (hooks, log, registration) = logged();
    drop(registration);
    // One reference for the log itself: the listener's own is gone.
    assert_eq!(Arc::strong_count(&log.0), 1);
    hooks.notify_clear_all().unwrap();
    assert!(log.take().is_empty());
}

#[test]
fn h1_global_hooks_are_one_and_others_are_their_own() {
    let log = Log::default();
    let registration = Hooks::global().on_clear_all(log.listener("global"));
    Hooks::new().notify_clear_all().unwrap();
    assert!(log.take().is_empty());
    Hooks::global().notify_clear_all().unwrap();
    assert_eq!(log.take(), ["global"]);
    drop(registration);
}

#[test]
fn h1_handles_cross_threads() {
    fn crosses<T: Send + Sync + 'static>() {}
    crosses::<Hooks>();
    crosses::<Registration>();
    crosses::<HookError>();
}

#[test]
fn h2_listeners_are_called_in_the_order_of_registration() {
    let (hooks, log) = (Hooks::new(), Log::default());
    let registrations = ["a", "b", "c"].map(|name| hooks.on_clear_all(log.listener(name)));
    hooks.notify_clear_all().unwrap();
    assert_eq!(log.take(), ["a", "b", "c"]);
    drop(registrations);
}

#[test]
fn h2_failures_and_panics_stop_no_other_and_the_first_is_returned() {
    let (hooks, log) = (Hooks::new(), Log::default());
    hooks.on_clear_all(log.listener("before")).forget();
    hooks.on_clear_all(|| Err(Broken("first"))).forget();
    hooks.on_clear_all(|| -> Answer { panic!("second") }).forget();
    hooks.on_clear_all(|| Err("third")).forget();
    hooks.on_clear_all(log.listener("after")).forget();
    let error = hooks.notify_clear_all().unwrap_err();
    assert_eq!(log.take(), ["before", "after"]);
    assert!(matches!(error, HookError::Listener(_)));
    assert_eq!(error.downcast_ref::<Broken>(), Some(&Broken("first")));
    assert_eq!(error.source().unwrap().to_string(), "broken: first");
    assert_eq!(message(&error.clone()), "a teardown listener failed: broken: first");
}

#[test]
fn h2_a_panic_is_a_failure_with_its_message() {
    let (hooks, log) = (Hooks::new(), Log::default());
    hooks.on_device_destroy(|device| -> Answer { panic!("no {device}") }).forget();
    hooks.on_device_destroy(|_| Err(Broken("later"))).forget();
    let tell = log.listener("heard");
    hooks.on_device_destroy(move |_| tell()).forget();
    for _ in 0..2 {
        let error = hooks.notify_device_destroy(&DEVICE).unwrap_err();
        assert!(matches!(&error, HookError::Panicked { message } if message == "no host:3"));
        assert_eq!(log.take(), ["heard"]);
    }
}

#[test]
fn h2_one_registered_meanwhile_waits_for_the_next_notification() {
    let (hooks, log) = (Hooks::new(), Log::default());
    let inner = hooks.clone();
    let (log_in, late) = (log.clone(), Mutex::new(None));
    let _early = hooks.on_clear_all(move || -> Answer {
        log_in.add("early");
        let mut late = late.lock().unwrap();
        if late.is_none() {
            *late = Some(inner.on_clear_all(log_in.listener("late")));
        }
        Ok(())
    });
    hooks.notify_clear_all().unwrap();
    assert_eq!(log.take(), ["early"]);
    hooks.notify_clear_all().unwrap();
    assert_eq!(log.take(), ["early", "late"]);
}

#[test]
fn h2_one_unregistered_meanwhile_does_not_run() {
    let (hooks, log) = (Hooks::new(), Log::default());
    let victim = Arc::new(Mutex::new(None));
    let in_listener = Arc::clone(&victim);
    let _first = hooks.on_clear_all(move || -> Answer {
        drop(in_listener.lock().unwrap().take());
        Ok(())
    });
    *victim.lock().unwrap() = Some(hooks.on_clear_all(log.listener("victim")));
    let _last = hooks.on_clear_all(log.listener("last"));
    hooks.notify_clear_all().unwrap();
    assert_eq!(log.take(), ["last"]);
}

#[test]
fn h2_one_unregistered_by_another_thread_meanwhile_does_not_run() {
    let (hooks, log) = (Hooks::new(), Log::default());
    let barrier = Arc::new(Barrier::new(2));
    let in_listener = Arc::clone(&barrier);
    let _first = hooks.on_clear_all(move || -> Answer {
        in_listener.wait();
        in_listener.wait();
        Ok(())
    });
    let victim = hooks.on_clear_all(log.listener("victim"));
    let _last = hooks.on_clear_all(log.listener("last"));
    thread::scope(|scope| {
        let notifying = scope.spawn(|| hooks.notify_clear_all());
        barrier.wait();
        // The first listener is running now, so this does not wait for it, nor for any lock.
        drop(victim);
        barrier.wait();
        notifying.join().unwrap().unwrap();
    });
    assert_eq!(log.take(), ["last"]);
}

#[test]
fn h2_a_registration_may_be_dropped_inside_its_own_listener() {
    let (hooks, log) = (Hooks::new(), Log::default());
    let own = Arc::new(Mutex::new(None));
    let (in_listener, log_in) = (Arc::clone(&own), log.clone());
    let registration = hooks.on_clear_all(move || -> Answer {
        let own = in_listener.lock().unwrap().take();
        drop(own);
        log_in.add("called");
        Ok(())
    });
    *own.lock().unwrap() = Some(registration);
    hooks.notify_clear_all().unwrap();
    hooks.notify_clear_all().unwrap();
    assert_eq!(log.take(), ["called"]);
}

/// What a listener captures may itself hold a registration, or call the hooks when it is dropped.
#[test]
fn h2_a_listener_whose_drop_calls_the_hooks_does_not_deadlock() {
    struct NotifiesOnDrop(Hooks);
    impl Drop for NotifiesOnDrop {
        fn drop(&mut self) {
            self.0.notify_device_destroy(&DEVICE).unwrap();
        }
    }
    let (hooks, log) = (Hooks::new(), Log::default());
    let tell = log.listener("told");
    let inner = hooks.on_device_destroy(move |_| tell());
    let captured = (NotifiesOnDrop(hooks.clone()), inner);
    let outer = hooks.on_clear_all(move || {
        let _ = &captured;
        Answer::Ok(())
    });
    drop(outer);
    assert_eq!(log.take(), ["told"]);
    hooks.notify_device_destroy(&DEVICE).unwrap();
    assert!(log.take().is_empty());
}

#[test]
fn h2_a_listener_whose_drop_panics_within_a_notification_stops_no_other() {
    struct PanicsOnDrop;
    impl Drop for PanicsOnDrop {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let (hooks, log) = (Hooks::new(), Log::default());
    let own = Arc::new(Mutex::new(None::<Registration>));
    let (in_listener, captured) = (Arc::clone(&own), PanicsOnDrop);
    let registration = hooks.on_clear_all(move || {
        let _ = &captured;
        drop(in_listener.lock().unwrap().take());
        Answer::Ok(())
    });
    *own.lock().unwrap() = Some(registration);
    let _other = hooks.on_clear_all(log.listener("other"));
    let error = hooks.notify_clear_all().unwrap_err();
    assert!(matches!(&error, HookError::Panicked { message } if message == "dropped"));
    assert_eq!(log.take(), ["other"]);
}

#[test]
fn h2_a_listener_may_notify() {
    let (hooks, log) = (Hooks::new(), Log::default());
    let tell = log.listener("device");
    let _device = hooks.on_device_destroy(move |_| tell());
    let (inner, log_in) = (hooks.clone(), log.clone());
    let again = AtomicUsize::new(0);
    let _clear = hooks.on_clear_all(move || -> Result<(), HookError> {
        log_in.add("clear");
        inner.notify_device_destroy(&DEVICE)?;
        if again.fetch_add(1, Ordering::Relaxed) == 0 { inner.notify_clear_all() } else { Ok(()) }
    });
    hooks.notify_clear_all().unwrap();
    assert_eq!(log.take(), ["clear", "device", "clear", "device"]);
}

#[test]
fn h3_around_clear_notifies_clears_and_notifies_again() {
    let (hooks, log, _registration) = logged();
    let value = hooks.around_clear(|| {
        log.add("clear");
        Answer::Ok(()).map(|()| 7)
    });
    assert_eq!(value.unwrap(), 7);
    assert_eq!(log.take(), ["notified", "clear", "notified"]);
}

#[test]
fn h3_a_failed_clear_is_notified_of_all_the_same() {
    let (hooks, log, _registration) = logged();
    let error = hooks.around_clear(|| Err::<(), _>(Broken("driver"))).unwrap_err();
    assert!(matches!(error, HookError::Clear(_)));
    assert_eq!(error.downcast_ref(), Some(&Broken("driver")));
    assert_eq!(message(&error), "the clear failed: broken: driver");
    assert_eq!(log.take(), ["notified", "notified"]);
}

/// What a clear met while it notified others is the failure of the clear all the same.
#[test]
fn h3_a_clear_that_fails_by_a_listener_of_other_hooks_is_a_failed_clear() {
    let (hooks, log, _registration) = logged();
    let others = Hooks::new();
    let _failing = others.on_clear_all(|| Err(Broken("other")));
    let error = hooks.around_clear(|| others.notify_clear_all()).unwrap_err();
    assert!(matches!(error, HookError::Clear(_)));
    assert_eq!(error.downcast_ref(), Some(&Broken("other")));
    assert_eq!(log.take(), ["notified", "notified"]);
}

#[test]
fn h3_a_panicking_clear_is_notified_of_and_then_goes_on() {
    let (hooks, log, _registration) = logged();
    let _failing = hooks.on_clear_all(|| Err(Broken("listener")));
    let panic = catch_unwind(AssertUnwindSafe(|| {
        let _ = hooks.around_clear(|| -> Answer { panic!("driver") });
    }))
    .unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"driver"));
    assert_eq!(log.take(), ["notified", "notified"]);
}

#[test]
fn h3_a_listeners_failure_is_returned_after_the_clear_is_complete() {
    let (hooks, log, _registration) = logged();
    let calls = AtomicUsize::new(0);
    let _failing = hooks.on_clear_all(move || {
        Err(Broken(["first", "second"][calls.fetch_add(1, Ordering::Relaxed)]))
    });
    let error = hooks
        .around_clear(|| {
            log.add("clear");
            Answer::Ok(())
        })
        .unwrap_err();
    assert!(matches!(error, HookError::Listener(_)));
    assert_eq!(error.downcast_ref(), Some(&Broken("first")));
    assert_eq!(log.take(), ["notified", "clear", "notified"]);
}

#[test]
fn h3_a_failure_of_the_second_notification_alone_is_returned_too() {
    let hooks = Hooks::new();
    let calls = AtomicUsize::new(0);
    let _failing = hooks.on_clear_all(move || match calls.fetch_add(1, Ordering::Relaxed) {
        0 => Ok(()),
        _ => Err(Broken("second")),
    });
    let error = hooks.around_clear(|| Answer::Ok(())).unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&Broken("second")));
}

#[test]
fn h3_if_both_fail_the_clears_error_wins() {
    let hooks = Hooks::new();
    let _failing = hooks.on_clear_all(|| Err(Broken("listener")));
    let error = hooks.around_clear(|| Err::<(), _>(Broken("clear"))).unwrap_err();
    assert!(matches!(error, HookError::Clear(_)));
    assert_eq!(error.downcast_ref(), Some(&Broken("clear")));
}

/// A clear that can only begin if the first notification came, and only end before the second:
/// what is built in between is seen by the second.
#[test]
fn h3_what_begins_during_the_clear_is_seen_by_the_second_notification() {
    let hooks = Hooks::new();
    let memo = Arc::new(Mutex::new(vec!["old"]));
    let in_listener = Arc::clone(&memo);
    let _registration = hooks.on_clear_all(move || -> Answer {
        in_listener.lock().unwrap().clear();
        Ok(())
    });
    hooks
        .around_clear(|| -> Answer {
            assert!(memo.lock().unwrap().is_empty());
            memo.lock().unwrap().push("built meanwhile");
            Ok(())
        })
        .unwrap();
    assert!(memo.lock().unwrap().is_empty());
}

#[test]
fn h4_nested_calls_notify_once_on_each_side() {
    let (hooks, log, _registration) = logged();
    let other_handle = hooks.clone();
    hooks
        .around_clear(|| {
            log.add("outer");
            other_handle.around_clear(|| {
                log.add("inner");
                hooks.around_clear(|| {
                    log.add("innermost");
                    Answer::Ok(())
                })
            })?;
            log.add("outer again");
            Result::<_, HookError>::Ok(())
        })
        .unwrap();
    let expected = ["notified", "outer", "inner", "innermost", "outer again", "notified"];
    assert_eq!(log.take(), expected);
}

#[test]
fn h4_a_nested_failure_reaches_the_outer_caller() {
    let (hooks, log, _registration) = logged();
    let error =
        hooks.around_clear(|| hooks.around_clear(|| Err::<(), _>(Broken("inner")))).unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&Broken("inner")));
    assert_eq!(message(&error), "the clear failed: broken: inner");
    assert_eq!(log.take(), ["notified", "notified"]);
}

/// A backend's clear is an `around_clear`: a listener that calls it must not notify for ever.
#[test]
fn h4_a_clear_inside_a_listener_is_nested() {
    let (hooks, log, _registration) = logged();
    let (inner, log_in) = (hooks.clone(), log.clone());
    let _clearing = hooks.on_clear_all(move || {
        inner.around_clear(|| {
            log_in.add("inner");
            Answer::Ok(())
        })
    });
    hooks
        .around_clear(|| {
            log.add("outer");
            Answer::Ok(())
        })
        .unwrap();
    assert_eq!(log.take(), ["notified", "inner", "outer", "notified", "inner"]);
}

#[test]
fn h4_depth_is_not_leaked_by_panics_and_errors() {
    let (hooks, log, _registration) = logged();
    for nested in [false, true] {
        let clear = || -> Answer { panic!("driver") };
        let result = catch_unwind(AssertUnwindSafe(|| {
            if nested {
                let _ = hooks.around_clear(|| hooks.around_clear(clear));
            } else {
                let _ = hooks.around_clear(clear);
            }
        }));
        assert!(result.is_err());
        assert_eq!(log.take(), ["notified", "notified"]);
    }
    hooks.around_clear(|| Err::<(), _>(Broken("clear"))).unwrap_err();
    log.take();
    hooks.around_clear(|| Answer::Ok(())).unwrap();
    assert_eq!(log.take(), ["notified", "notified"]);
}

/// A panic that the outer clear catches leaves it the outermost call.
#[test]
fn h4_a_caught_nested_panic_leaves_the_outer_call_outermost() {
    let (hooks, log, _registration) = logged();
    hooks
        .around_clear(|| -> Result<(), HookError> {
            let inner = catch_unwind(AssertUnwindSafe(|| {
                let _ = hooks.around_clear(|| -> Answer { panic!("inner") });
            }));
            assert!(inner.is_err());
            hooks.around_clear(|| {
                log.add("clear");
                Answer::Ok(())
            })
        })
        .unwrap();
    assert_eq!(log.take(), ["notified", "clear", "notified"]);
}

#[test]
fn h4_another_threads_clear_notifies_on_its_own() {
    let (hooks, log, _registration) = logged();
    hooks
        .around_clear(|| -> Answer {
            thread::scope(|scope| {
                scope.spawn(|| hooks.around_clear(|| Answer::Ok(())).unwrap());
            });
            log.add("clear");
            Ok(())
        })
        .unwrap();
    assert_eq!(log.take(), ["notified", "notified", "notified", "clear", "notified"]);
}

#[test]
fn h4_other_hooks_inside_notify_on_their_own() {
    let (outer, outer_log, _outer) = logged();
    let (inner, inner_log, _inner) = logged();
    outer
        .around_clear(|| -> Result<(), HookError> {
            inner.around_clear(|| outer.around_clear(|| inner.around_clear(|| Answer::Ok(()))))
        })
        .unwrap();
    assert_eq!(outer_log.take(), ["notified", "notified"]);
    assert_eq!(inner_log.take(), ["notified", "notified"]);
}

#[test]
fn h6_a_device_of_a_refinement_is_a_device_of_the_family() {
    let hooks = Hooks::new();
    let (heard, hear) = mpsc::channel();
    let _registration = hooks.on_device_destroy(move |device| {
        heard.send((device.family() == Family::CUDA, device.index()))
    });
    for name in ["CUDA", "CUDA/PTX", "CUDA/CUBIN", "cuda/ptx", "HIP/x"] {
        hooks.notify_device_destroy(&Framework::new(name).device(1)).unwrap();
    }
    let heard: Vec<_> = hear.try_iter().collect();
    assert_eq!(heard, [(true, 1), (true, 1), (true, 1), (true, 1), (false, 1)]);
    let ptx = Framework::new("CUDA/PTX");
    assert_eq!(
        (ptx.family(), ptx.name(), &*ptx.to_string()),
        (Family::CUDA, "CUDA/PTX", "CUDA/PTX")
    );
}

/// H2 under stress: registering, unregistering and notifying on four threads at once, nothing is
/// called after its registration was dropped on the thread that notifies.
#[test]
fn h2_many_threads_register_unregister_and_notify() {
    let hooks = Hooks::new();
    let calls = Arc::new(AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let mine = Arc::new(AtomicUsize::new(0));
                    let (in_listener, all) = (Arc::clone(&mine), Arc::clone(&calls));
                    let registration = hooks.on_clear_all(move || -> Answer {
                        in_listener.fetch_add(1, Ordering::Relaxed);
                        all.fetch_add(1, Ordering::Relaxed);
                        Ok(())
                    });
                    hooks.notify_clear_all().unwrap();
                    assert!(mine.load(Ordering::Relaxed) >= 1);
                    drop(registration);
                    hooks.notify_clear_all().unwrap();
                }
            });
        }
    });
    let before = calls.load(Ordering::Relaxed);
    assert!(before >= 2000);
    hooks.notify_clear_all().unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), before, "a listener was left behind");
}
