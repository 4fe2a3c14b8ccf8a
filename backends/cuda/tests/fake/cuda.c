// A driver that is none: what the tests load in the place of libcuda where there is no NVIDIA GPU.
//
// It keeps contexts and modules as the driver does, one current context a thread, and counts what a
// caller does wrong. It can't run an image. It runs one kind of kernel by its name: "add_N", which adds
// N to each number; and it calls what a test gives it beside the image (`fake_kernels`). What it says
// about real devices is nothing.

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 2, DEPTH = 16 };

enum {
    INVALID_VALUE = 1,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    INVALID_PTX = 218,
    UNSUPPORTED_PTX = 222,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
};

struct context {
    int device;
    int modules;
    int lost;
    int user;
};

struct module {
    struct context *context;
    char *image;
    size_t length;
};

struct function {
    struct function *next;
    const struct module *module;
    unsigned add;
    char name[64];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int initialized;
static int no_device;
static int strict;
static struct context *primary[DEVICES];
static int retained[DEVICES];
static int contexts, modules, allocations, mistakes, calls;
static struct function *functions;
static char failing[64];
static int failing_code;
static void *kernels;

static _Thread_local struct context *stack[DEPTH];
static _Thread_local int depth;

static struct context *current(void) {
    return depth ? stack[depth - 1] : NULL;
}

static void mistake(const char *what) {
    fprintf(stderr, "the fake driver: %s\n", what);
    if (strict) abort();
    ++mistakes;
}

// Every call begins here; what it returns, the call returns. Call it with the lock held.
static int begin(const char *call) {
    ++calls;
    if (failing_code && !strcmp(call, failing)) {
        const int code = failing_code;
        failing_code = 0;
        return code;
    }
    return initialized ? 0 : NOT_INITIALIZED;
}

static int in_context(const char *call) {
    const int code = begin(call);
    if (code) return code;
    if (!current()) {
        mistake(call);
        return INVALID_CONTEXT;
    }
    return current()->lost ? ILLEGAL_ADDRESS : 0;
}

#define ENTER pthread_mutex_lock(&lock)
#define LEAVE(code) do { const int result = (code); pthread_mutex_unlock(&lock); return result; } while (0)

// What the tests ask, and tell it.

int fake_contexts(void) { return contexts; }
int fake_modules(void) { return modules; }
int fake_allocations(void) { return allocations; }
int fake_mistakes(void) { return mistakes; }
int fake_calls(void) { return calls; }
int fake_depth(void) { return depth; }
void *fake_current(void) { return current(); }

// The next call of this name returns this code.
void fake_fail(const char *call, int code) {
    ENTER;
    snprintf(failing, sizeof failing, "%s", call);
    failing_code = code;
    pthread_mutex_unlock(&lock);
}

// A kernel of somebody's has crashed: no call in the device's primary context succeeds any more.
void fake_lose(int device) {
    ENTER;
    if (primary[device]) primary[device]->lost = 1;
    pthread_mutex_unlock(&lock);
}

void fake_have_no_device(void) { no_device = 1; }

// From here on a mistake ends the process.
void fake_be_strict(void) { strict = 1; }

// From here on the kernels that are launched are those of this library, compiled for the processor: it
// has a function `launch_NAME` for each. Says whether it loads.
int fake_kernels(const char *library) {
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!loaded) fprintf(stderr, "the fake driver: %s\n", dlerror());
    ENTER;
    kernels = loaded;
    LEAVE(loaded != NULL);
}

// A context of the application's own, current on this thread.
void *fake_application_context(int device) {
    ENTER;
    struct context *context = calloc(1, sizeof *context);
    context->device = device;
    context->user = 1;
    ++contexts;
    stack[depth++] = context;
    pthread_mutex_unlock(&lock);
    return context;
}

// The driver's interface.

int cuInit(unsigned flags) {
    ENTER;
    if (no_device) LEAVE(NO_DEVICE);
    initialized = 1;
    LEAVE(flags ? INVALID_VALUE : begin("cuInit"));
}

int cuDriverGetVersion(int *version) {
    *version = 12040;
    return 0;
}

int cuGetErrorName(int code, const char **name) {
    switch (code) {
    case INVALID_IMAGE: *name = "CUDA_ERROR_INVALID_IMAGE"; return 0;
    case ILLEGAL_ADDRESS: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return 0;
    case NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; return 0;
    case 2: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return 0;
    default: *name = NULL; return INVALID_VALUE;
    }
}

int cuGetErrorString(int code, const char **words) {
    *words = code == ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : NULL;
    return *words ? 0 : INVALID_VALUE;
}

int cuDeviceGetCount(int *count) {
    ENTER;
    *count = DEVICES;
    LEAVE(begin("cuDeviceGetCount"));
}

int cuDeviceGet(int *device, int index) {
    ENTER;
    *device = index;
    LEAVE(index < DEVICES ? begin("cuDeviceGet") : INVALID_DEVICE);
}

int cuDeviceGetName(char *name, int length, int device) {
    snprintf(name, length, "Fake device %c", 'A' + device);
    return 0;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    memset(uuid, device + 1, 16);
    return 0;
}

// Compute capability 9.0 and 8.6.
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    ENTER;
    if (attribute == 75) *value = device == 0 ? 9 : 8;
    if (attribute == 76) *value = device == 0 ? 0 : 6;
    LEAVE(begin("cuDeviceGetAttribute"));
}

int cuDevicePrimaryCtxRetain(struct context **context, int device) {
    ENTER;
    const int code = begin("cuDevicePrimaryCtxRetain");
    if (code) LEAVE(code);
    if (!primary[device]) {
        primary[device] = calloc(1, sizeof(struct context));
        primary[device]->device = device;
        ++contexts;
    }
    ++retained[device];
    *context = primary[device];
    LEAVE(0);
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    ENTER;
    const int code = begin("cuDevicePrimaryCtxRelease");
    if (retained[device] == 0) {
        mistake("a primary context is released that nobody has");
        LEAVE(INVALID_CONTEXT);
    }
    if (--retained[device] == 0 && primary[device]) {
        if (primary[device]->modules) mistake("a context is released before its modules");
        // It stays allocated, so that a use after this is seen and not a crash.
        primary[device] = NULL;
        --contexts;
    }
    LEAVE(code);
}

int cuDevicePrimaryCtxReset_v2(int device) {
    ENTER;
    const int code = begin("cuDevicePrimaryCtxReset");
    if (code) LEAVE(code);
    if (primary[device]) {
        modules -= primary[device]->modules;
        primary[device]->lost = 1;
        primary[device] = NULL;
        --contexts;
    }
    LEAVE(0);
}

int cuCtxPushCurrent_v2(struct context *context) {
    ENTER;
    const int code = begin("cuCtxPushCurrent");
    if (code) LEAVE(code);
    if (!context || depth == DEPTH) LEAVE(INVALID_CONTEXT);
    stack[depth++] = context;
    LEAVE(0);
}

int cuCtxPopCurrent_v2(struct context **context) {
    ENTER;
    const int code = begin("cuCtxPopCurrent");
    if (!depth) {
        mistake("a context is taken from an empty stack");
        LEAVE(INVALID_CONTEXT);
    }
    *context = stack[--depth];
    LEAVE(code);
}

int cuCtxGetDevice(int *device) {
    ENTER;
    const int code = in_context("cuCtxGetDevice");
    if (!code) *device = current()->device;
    LEAVE(code);
}

int cuMemGetInfo_v2(size_t *left, size_t *all) {
    ENTER;
    *left = *all = 1 << 30;
    LEAVE(in_context("cuMemGetInfo"));
}

static uint64_t number(const char *at, int bytes) {
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    return value;
}

// The length of an image, or 0 for what is none.
static size_t length_of(const char *image) {
    if (!memcmp(image, "\x7f" "ELF", 4)) {
        if (number(image + 18, 2) != 190) return 0;
        const size_t sections = number(image + 40, 8) + number(image + 58, 2) * number(image + 60, 2);
        const size_t segments = number(image + 32, 8) + number(image + 54, 2) * number(image + 56, 2);
        const size_t length = sections > segments ? sections : segments;
        return length < 64 ? 64 : length;
    }
    const size_t length = strlen(image);
    return strstr(image, ".version") ? length : 0;
}

// Writes why into the log that the options give, as the driver does.
static void explain(unsigned count, const unsigned *options, void **values, const char *why) {
    char *log = NULL;
    size_t room = 0;
    for (unsigned i = 0; i < count; ++i) {
        if (options[i] == 5) log = values[i];
        if (options[i] == 6) room = (size_t)values[i];
    }
    if (log && room) snprintf(log, room, "%s", why);
}

static int judge(const char *image, unsigned count, unsigned *options, void **values) {
    if (!length_of(image)) return INVALID_IMAGE;
    if (image[0] == 0x7f) return 0;
    if (strstr(image, ".version 99")) return UNSUPPORTED_PTX;
    if (strstr(image, "nonsense")) {
        explain(count, options, values, "ptxas: nonsense in line 1");
        return INVALID_PTX;
    }
    return 0;
}

int cuModuleLoadDataEx(struct module **module, const char *image, unsigned count, unsigned *options,
                       void **values) {
    ENTER;
    int code = in_context("cuModuleLoadDataEx");
    if (!code && (uintptr_t)image % 8 && image[0] == 0x7f) mistake("an image at an odd address");
    if (!code) code = judge(image, count, options, values);
    if (code) LEAVE(code);
    struct module *made = calloc(1, sizeof *made);
    made->context = current();
    made->length = length_of(image);
    made->image = malloc(made->length);
    memcpy(made->image, image, made->length);
    ++made->context->modules;
    ++modules;
    *module = made;
    LEAVE(0);
}

int cuModuleUnload(struct module *module) {
    ENTER;
    const int code = in_context("cuModuleUnload");
    if (!current() || current()->lost) LEAVE(code);
    // It is unloaded even where an error comes back: that of an earlier call, as with the driver.
    if (current() != module->context) mistake("a module is unloaded in another context");
    if (!module->image) {
        mistake("a module is unloaded twice");
        LEAVE(INVALID_VALUE);
    }
    free(module->image);
    module->image = NULL;
    --module->context->modules;
    --modules;
    LEAVE(code);
}

static int is_name(char c) {
    return c == '_' || c == '$' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static int has_name(const struct module *module, const char *name) {
    const size_t length = strlen(name);
    const char *image = module->image;
    for (size_t i = 0; i + length <= module->length; ++i) {
        const int starts = i == 0 || !is_name(image[i - 1]);
        const int ends = i + length == module->length || !is_name(image[i + length]);
        if (starts && ends && !memcmp(image + i, name, length)) return 1;
    }
    return 0;
}

int cuModuleGetFunction(struct function **function, struct module *module, const char *name) {
    ENTER;
    const int code = in_context("cuModuleGetFunction");
    if (code) LEAVE(code);
    if (!module->image) mistake("a function is asked for of an unloaded module");
    if (!module->image || !has_name(module, name)) LEAVE(NOT_FOUND);
    struct function *made = calloc(1, sizeof *made);
    snprintf(made->name, sizeof made->name, "%s", name);
    if (!strncmp(name, "add_", 4)) made->add = (unsigned)strtoul(name + 4, NULL, 10);
    made->module = module;
    made->next = functions;
    functions = made;
    *function = made;
    LEAVE(0);
}

// "Machine code" of PTX: an ELF header, the text, and no tables.
struct link {
    unsigned count;
    unsigned options[8];
    void *values[8];
    char *code;
    size_t length;
};

int cuLinkCreate_v2(unsigned count, unsigned *options, void **values, struct link **link) {
    ENTER;
    const int code = in_context("cuLinkCreate");
    if (code) LEAVE(code);
    struct link *made = calloc(1, sizeof *made);
    made->count = count;
    memcpy(made->options, options, count * sizeof *options);
    memcpy(made->values, values, count * sizeof *values);
    *link = made;
    LEAVE(0);
}

int cuLinkAddData_v2(struct link *link, unsigned kind, const char *data, size_t length,
                     const char *name, unsigned count, unsigned *options, void **values) {
    (void)name, (void)count, (void)options, (void)values;
    ENTER;
    int code = in_context("cuLinkAddData");
    if (!code && (kind != 1 || data[length - 1])) mistake("PTX does not end in a NUL");
    if (!code) code = judge(data, link->count, link->options, link->values);
    if (code) LEAVE(code);
    link->length = 64 + length;
    link->code = calloc(1, link->length);
    memcpy(link->code, "\x7f" "ELF\x02\x01\x01", 7);
    link->code[18] = (char)190;
    memcpy(link->code + 64, data, length);
    // Nothing says where the text ends but a table of sections behind it, with none in it.
    memcpy(link->code + 40, &link->length, 8);
    LEAVE(0);
}

int cuLinkComplete(struct link *link, char **code, size_t *length) {
    ENTER;
    *code = link->code;
    *length = link->length;
    LEAVE(in_context("cuLinkComplete"));
}

int cuLinkDestroy(struct link *link) {
    ENTER;
    const int code = in_context("cuLinkDestroy");
    if (link->code) memset(link->code, 0xff, link->length);
    free(link->code);
    free(link);
    LEAVE(code);
}

int cuMemAlloc_v2(uint64_t *address, size_t size) {
    ENTER;
    const int code = in_context("cuMemAlloc");
    if (code) LEAVE(code);
    if (!size) LEAVE(INVALID_VALUE);
    *address = (uint64_t)(uintptr_t)malloc(size);
    ++allocations;
    LEAVE(0);
}

int cuMemFree_v2(uint64_t address) {
    ENTER;
    const int code = in_context("cuMemFree");
    if (code) LEAVE(code);
    free((void *)(uintptr_t)address);
    --allocations;
    LEAVE(0);
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) {
    ENTER;
    const int code = in_context("cuMemcpyHtoD");
    if (!code) memcpy((void *)(uintptr_t)to, from, size);
    LEAVE(code);
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) {
    ENTER;
    const int code = in_context("cuMemcpyDtoH");
    if (!code) memcpy(to, (void *)(uintptr_t)from, size);
    LEAVE(code);
}

int cuLaunchKernel(struct function *function, unsigned x, unsigned y, unsigned z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, void *stream,
                   void **arguments, void **extra) {
    (void)stream;
    const unsigned grid[] = {x, y, z}, block[] = {block_x, block_y, block_z};
    ENTER;
    const int code = in_context("cuLaunchKernel");
    if (code) LEAVE(code);
    if (shared || extra) mistake("a launch of a kind that nobody here makes");
    // Beyond these, no GPU takes a launch.
    for (int i = 0; i < 3; ++i) {
        if (!grid[i] || !block[i] || (i && grid[i] > 65535)) LEAVE(INVALID_VALUE);
    }
    if (block_x > 1024 || block_y > 1024 || block_z > 64 || block_x * block_y * block_z > 1024) {
        LEAVE(INVALID_VALUE);
    }
    if (!function->module->image) {
        mistake("a kernel of an unloaded module is launched");
        LEAVE(INVALID_VALUE);
    }
    if (current() != function->module->context) mistake("a kernel is launched in another context");
    if (kernels) {
        char symbol[80];
        snprintf(symbol, sizeof symbol, "launch_%s", function->name);
        void (*run)(void **arguments, const unsigned *grid, const unsigned *block);
        *(void **)&run = dlsym(kernels, symbol);
        if (!run) {
            mistake(symbol);
            LEAVE(NOT_FOUND);
        }
        run(arguments, grid, block);
        LEAVE(0);
    }
    const unsigned *in = (const unsigned *)(uintptr_t)*(uint64_t *)arguments[0];
    unsigned *out = (unsigned *)(uintptr_t)*(uint64_t *)arguments[1];
    for (unsigned i = 0; i < x * block_x; ++i) out[i] = in[i] + function->add;
    LEAVE(0);
}

int cuCtxSynchronize(void) {
    ENTER;
    LEAVE(in_context("cuCtxSynchronize"));
}
