//! Waking tasks at a time, without a runtime.
//!
//! A task that waits for a value to become idle has to ask again now and then, and no executor can
//! be assumed. One thread for the whole process does it: started by the first such wait, gone when
//! there is none left.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::contain::contain;
use crate::sync::{Condvar, Instant, Mutex, process_wide, start_thread};

#[derive(Default)]
struct Alarms {
    next: u64,
    due: BTreeMap<(Instant, u64), Waker>,
    running: bool,
}

process_wide! {
    static ALARMS: Mutex<Option<Alarms>> = Mutex::new(None);
}
process_wide! {
    static CHANGED: Condvar = Condvar::new();
}

fn wake_at(time: Instant, waker: Waker) {
    let mut guard = ALARMS.lock();
    let alarms = guard.get_or_insert_with(Alarms::default);
    alarms.next += 1;
    alarms.due.insert((time, alarms.next), waker);
    if alarms.running {
        CHANGED.notify_all();
        return;
    }
    alarms.running = start_thread("grainstore-timer", run);
    if !alarms.running {
        // No thread is to be had: the waiting task polls itself along.
        let waiting = std::mem::take(&mut alarms.due);
        drop(guard);
        for waker in waiting.into_values() {
            let _ = contain(|| waker.wake());
        }
    }
}

fn run() {
    let mut guard = ALARMS.lock();
    loop {
        let Some(alarms) = guard.as_mut() else { return };
        let now = Instant::now();
        let Some((&(time, _), _)) = alarms.due.first_key_value() else {
            alarms.running = false;
            return;
        };
        if time > now {
            guard = CHANGED.wait_timeout(guard, time - now);
            continue;
        }
        let waker = alarms.due.pop_first().map(|(_, waker)| waker);
        drop(guard);
        let _ = contain(|| waker.map(Waker::wake));
        guard = ALARMS.lock();
    }
}

/// Ready when `ready` says so, which is asked at each wake, or at the deadline if there is one.
pub(crate) struct Until<F> {
    deadline: Option<Instant>,
    /// Whom the alarm wakes.
    armed: Option<Waker>,
    ready: F,
}

impl<F: FnMut(&Waker) -> bool + Unpin> Until<F> {
    /// `ready` keeps the waker it is given if it says no.
    pub(crate) fn new(deadline: Option<Instant>, ready: F) -> Self {
        Self { deadline, armed: None, ready }
    }
}

impl<F: FnMut(&Waker) -> bool + Unpin> Future for Until<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if (self.ready)(context.waker()) {
            return Poll::Ready(());
        }
        if let Some(deadline) = self.deadline {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            let waker = context.waker();
            if !self.armed.as_ref().is_some_and(|armed| armed.will_wake(waker)) {
                self.armed = Some(waker.clone());
                wake_at(deadline, context.waker().clone());
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::task::Wake;
    use std::time::Duration;

    use super::*;
    use crate::sync::Arc;

    /// Says when it was woken.
    struct Bell(Sender<Instant>);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            let _ = self.0.send(Instant::now());
        }
    }

    fn bell() -> (Waker, Receiver<Instant>) {
        let (sender, rung) = channel();
        (Waker::from(Arc::new(Bell(sender))), rung)
    }

    #[test]
    fn who_waits_for_the_same_time_is_woken_as_well_and_nobody_early() {
        let bells: Vec<_> = (0..3).map(|_| bell()).collect();
        let (late, soon) = (Duration::from_millis(40), Duration::from_millis(20));
        let now = Instant::now();
        let times = [late, late, soon].map(|after| now + after);
        for ((waker, _), time) in bells.iter().zip(times) {
            wake_at(time, waker.clone());
        }
        for ((_, rung), time) in bells.iter().zip(times) {
            assert!(rung.recv().unwrap() >= time);
        }
    }

    #[test]
    fn its_thread_is_gone_when_nobody_waits_and_comes_again() {
        for _ in 0..3 {
            let (waker, rung) = bell();
            wake_at(Instant::now(), waker);
            rung.recv().unwrap();
            while ALARMS.lock().as_ref().is_some_and(|alarms| alarms.running) {
                std::thread::yield_now();
            }
        }
    }
}
