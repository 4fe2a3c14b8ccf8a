//! What tasks do. Each may be dropped at any point where it waits.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use grainstore::Error;

use crate::world::{Grain, World, device, failure, key, one_in, panic_on_purpose, roll};

pub(crate) async fn some(world: Arc<World>) {
    for _ in 0..3 {
        match roll(8) {
            0 => {
                let drain = world.kernels().evict_device(&device());
                let _ = for_a_while(drain.wait_async()).await;
            }
            1 => {
                drop(world.pop());
                let _ = for_a_while(world.kernels().room()).await;
            }
            2 => world.request(1),
            _ => request(&world).await,
        }
    }
}

/// Polls some times, and gives up: it may wait for what nobody is about to let go.
async fn for_a_while<T>(waiting: impl Future<Output = T>) -> Option<T> {
    let mut waiting = Box::pin(waiting);
    let mut left = roll(20);
    poll_fn(|context| match waiting.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
}

async fn build(world: &World, key: u8, on_device: bool) -> Result<Grain, std::io::Error> {
    for _ in 0..roll(3) {
        shuttle::future::yield_now().await;
    }
    match roll(8) {
        0 => panic_on_purpose(),
        1 => return Err(failure()),
        2 => {
            // A build inside a build, on another task or a thread it may be, too.
            let inner = world.kernels().get_or_build_async(&0, async {
                shuttle::future::yield_now().await;
                Ok::<_, Error>(world.make(0, false))
            });
            world.use_answer(inner.await, 0, false);
        }
        _ => {}
    }
    Ok(world.make(key, on_device))
}

async fn request(world: &World) {
    let (key, on_device) = (key(), one_in(3));
    let answer = if on_device {
        let device = device();
        let view = world.kernels().on(&device);
        view.get_or_build_async(&key, build(world, key, on_device)).await
    } else {
        world.kernels().get_or_build_async(&key, build(world, key, on_device)).await
    };
    world.use_answer(answer, key, on_device);
}
