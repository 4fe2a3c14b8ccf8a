// CUDA C++ on the processor, so that the example kernels' sources are not only compiled but run where
// there is no NVIDIA GPU. Included before a kernel's own source, which is taken as it is.
//
// One block after the other. A block's threads take turns on one thread of the system: each runs up to
// the next barrier, or to its end. The order of the turns is the threads' own at one launch and the
// reverse at the next, so that a barrier too few shows at one of them. What runs at the same time in a
// GPU does not here: of races nothing else is seen, nor of warps, caches or speed.

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <utility>

#define __CUDACC_RTC__ 1 // What tells a source that it has no header files, as with NVRTC.
#define __global__
#define __shared__ static // There is one block at a time.
#define __launch_bounds__(threads)
#define __align__(bytes) alignas(bytes)

struct Index {
    unsigned x, y, z;
};
static Index threadIdx, blockIdx, blockDim, gridDim;

static float rsqrt(float x) { return 1 / sqrt(x); }
static double rsqrt(double x) { return 1 / sqrt(x); }

namespace device {

struct Thread {
    ucontext_t at;
    char *stack;
    Index index;
    bool ended;
};

const size_t STACK = 64 * 1024;

static ucontext_t scheduler;
static Thread *running;
static void (*body)();

static void run() {
    body();
    running->ended = true;
}

static void barrier() {
    swapcontext(&running->at, &scheduler);
}

static void resume(Thread *thread) {
    running = thread;
    threadIdx = thread->index;
    swapcontext(&scheduler, &thread->at);
}

// All threads of a block from their start to their end.
static void block(Thread *threads, unsigned count, bool forwards) {
    for (unsigned i = 0; i < count; ++i) {
        Thread &thread = threads[i];
        getcontext(&thread.at);
        thread.at.uc_stack.ss_sp = thread.stack;
        thread.at.uc_stack.ss_size = STACK;
        thread.at.uc_link = &scheduler;
        makecontext(&thread.at, run, 0);
        thread.index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
        thread.ended = false;
    }
    for (unsigned left = count; left;) {
        left = 0;
        for (unsigned i = 0; i < count; ++i) {
            Thread &thread = threads[forwards ? i : count - 1 - i];
            if (!thread.ended) resume(&thread);
            if (!thread.ended) ++left;
        }
        if (left && left != count) {
            fprintf(stderr, "only %u of a block's %u threads come to a barrier\n", left, count);
            abort();
        }
    }
}

static void launch(void (*kernel)(), const unsigned grid[3], const unsigned shape[3]) {
    static bool forwards;
    forwards = !forwards;
    body = kernel;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {shape[0], shape[1], shape[2]};
    const unsigned count = shape[0] * shape[1] * shape[2];
    Thread *threads = new Thread[count];
    for (unsigned i = 0; i < count; ++i) threads[i].stack = new char[STACK];
    for (blockIdx.z = 0; blockIdx.z < grid[2]; ++blockIdx.z) {
        for (blockIdx.y = 0; blockIdx.y < grid[1]; ++blockIdx.y) {
            for (blockIdx.x = 0; blockIdx.x < grid[0]; ++blockIdx.x) {
                block(threads, count, forwards);
            }
        }
    }
    for (unsigned i = 0; i < count; ++i) delete[] threads[i].stack;
    delete[] threads;
}

// Where the caller keeps the parameters, as `cuLaunchKernel` is told.
static void **parameters;

// A parameter, as wide as the kernel's source declares it.
template <typename P>
static P parameter(size_t place) {
    P value;
    memcpy(&value, parameters[place], sizeof value);
    return value;
}

template <auto Kernel>
struct Call;

template <typename... P, void (*Kernel)(P...)>
struct Call<Kernel> {
    template <size_t... Place>
    static void with(std::index_sequence<Place...>) {
        Kernel(parameter<P>(Place)...);
    }
    static void one() { with(std::index_sequence_for<P...>()); }
};

} // namespace device

#define __syncthreads device::barrier

// What the fake driver calls for a launch of the kernel.
#define LAUNCHED(kernel)                                                                          \
    extern "C" void launch_##kernel(void **parameters, const unsigned grid[3],                    \
                                    const unsigned block[3]) {                                    \
        device::parameters = parameters;                                                          \
        device::launch(device::Call<kernel>::one, grid, block);                                   \
    }
