// What the kernels in C, OpenCL C and CUDA C++ share: the element type, and what depends on it.

#ifndef COMMON_H
#define COMMON_H

#ifdef __OPENCL_VERSION__
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#elif defined __CUDACC_RTC__
// NVRTC has no header files. What the kernels need of <float.h> and <limits.h>:
#define FLT_MAX 3.402823466e+38f
#define DBL_MAX 1.7976931348623157e+308
#define INT_MIN (-2147483647 - 1)
#else
#include <float.h>
#include <limits.h>
#include <stddef.h>
#include <tgmath.h> // exp and its like follow the element type, as OpenCL C's built-ins do
#endif

// The element type: float, double, or int where a kernel allows it.
#ifndef T
#define T float
#endif

#define JOIN_EXPANDED(a, b) a##b
#define JOIN(a, b) JOIN_EXPANDED(a, b)

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

// Where a running maximum starts: the lowest finite value of T. Minus infinity would not do, since
// the first rescaling would take infinity from infinity.
#define LOWEST_float (-FLT_MAX)
#define LOWEST_double (-DBL_MAX)
#define LOWEST_int INT_MIN
#define LOWEST_NAMED(type) LOWEST_##type
#define LOWEST_OF(type) LOWEST_NAMED(type)
#define LOWEST LOWEST_OF(T)

#endif
