//! What happens in windows that no caller can open: a handle that ends between two of our steps.

use std::sync::Arc;
use std::thread;

use grainstore::Pinned;

use super::{BackendCache, Device};
use crate::activity::Gate as Door;
use crate::fake::{Call, Fake, spec};
use crate::loaded::Loaded;
use crate::{Backend, RuntimeError, Settings};

fn cache(fake: &Fake) -> (BackendCache<Fake>, Device) {
    let cache = BackendCache::new(fake.clone(), Settings::new()).unwrap();
    let device = cache.devices().unwrap().remove(0);
    (cache, device)
}

#[test]
fn a_handle_that_ended_after_it_was_looked_at_gets_no_kernel_of_the_next_life() {
    let fake = Fake::new();
    let (cache, old) = cache(&fake);
    let saxpy = spec("saxpy");
    let key = cache.key(&old, &saxpy).unwrap();
    cache.destroy_device(&old).unwrap();
    let new = cache.devices().unwrap().remove(0);

    // Nothing is there: it builds nothing for the new life.
    let error = cache.miss(&old, key, &saxpy, &mut None).unwrap_err();
    assert!(matches!(error, RuntimeError::DeviceDestroyed { .. }), "{error}");
    assert_eq!(fake.builds(), 0);

    // The new life's own kernel is there: it is not handed out.
    cache.kernel(&new, &saxpy).unwrap();
    // Once the long way, after which it is at hand for this thread.
    cache.kernel(&new, &saxpy).unwrap();
    assert!(cache.at_hand(&new, &saxpy).is_some());
    let hits = cache.statistics().hits;
    assert!(cache.in_memory(&old, &saxpy).is_none());
    assert_eq!(cache.statistics().hits, hits, "it counts as no use");
    let error = cache.miss(&old, key, &saxpy, &mut None).unwrap_err();
    assert!(matches!(error, RuntimeError::DeviceDestroyed { .. }), "{error}");
}

/// Each device finds its own kernel at its own place, or, from the seventeenth on, by its key; and
/// each cache its own, whichever the place leads to.
#[test]
fn devices_and_caches_that_ask_with_one_spec_get_each_its_own() {
    let fake = Fake::new().with_devices(18);
    let (first, second) = (cache(&fake).0, cache(&fake).0);
    let saxpy = spec("saxpy");
    let hit = |cache: &BackendCache<Fake>, device: &Device| {
        let kernel = cache.kernel(device, &saxpy).unwrap();
        assert_eq!(kernel.device(), device.id());
        kernel
    };
    for cache in [&first, &second] {
        let devices = cache.devices().unwrap();
        let kernels: Vec<_> = devices.iter().map(|device| hit(cache, device)).collect();
        for _ in 0..3 {
            for (device, kernel) in devices.iter().zip(&kernels) {
                assert!(Pinned::ptr_eq(&hit(cache, device), kernel));
            }
        }
        drop(kernels);
        devices.iter().for_each(|device| drop(hit(cache, device)));
        for (at, device) in devices.iter().enumerate() {
            assert_eq!(cache.at_hand(device, &saxpy).is_some(), at < 16, "device {at}");
            assert!(cache.in_memory(device, &saxpy).is_some());
        }
    }
    // A place is of the cache that went the longest way last.
    let device = first.devices().unwrap().remove(0);
    drop(hit(&first, &device));
    assert!(first.at_hand(&device, &saxpy).is_none() && first.in_memory(&device, &saxpy).is_some());
    first.remove(&device, &saxpy).unwrap().wait().unwrap();
    (0..3).for_each(|_| drop(hit(&first, &device)));
    assert!(first.at_hand(&device, &saxpy).is_some());
    assert_eq!(fake.builds(), 37);
}

#[test]
fn a_good_handle_whose_build_was_doomed_for_another_asks_again() {
    let fake = Fake::new();
    let (cache, device) = cache(&fake);
    let gate = fake.hold_builds();
    thread::scope(|scope| {
        let kernel = scope.spawn(|| cache.kernel(&device, &spec("saxpy")));
        gate.arrived(1);
        let drain = cache.cache().evict_device(&device.id());
        gate.open();
        kernel.join().unwrap().unwrap();
        drain.wait().unwrap();
    });
    assert_eq!((fake.builds(), fake.modules()), (2, 1));
}

#[test]
fn a_module_whose_device_is_lost_or_whose_backend_is_closed_is_forgotten() {
    let fake = Fake::new();
    let (cache, device) = cache(&fake);
    let load = || {
        let (module, _) = fake.build(&device.id(), &spec("saxpy")).unwrap();
        Loaded::new(module, Arc::clone(device.life()))
    };
    let door = &cache.inner.door;
    door.unload(load()).unwrap();
    assert_eq!(fake.calls(Call::Unload), 1);

    cache.give_up(&device);
    door.unload(load()).unwrap();
    assert_eq!((fake.calls(Call::Unload), fake.leaked()), (1, 0));

    let (cache, device) = self::cache(&fake);
    let (module, _) = fake.build(&device.id(), &spec("saxpy")).unwrap();
    let late = Loaded::new(module, Arc::clone(device.life()));
    cache.shutdown().unwrap();
    assert!(cache.inner.door.activity.gate() == Door::Closed);
    cache.inner.door.unload(late).unwrap();
    assert_eq!((fake.calls(Call::Unload), fake.leaked()), (1, 0));
}
