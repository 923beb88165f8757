/* Shared by all kernels. Python reads the signatures of kernels from these sources (__init__.py). */
#ifndef VANI_H
#define VANI_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A function that Python calls. It takes int64_t numbers and the arrays below. */
#define KERNEL __attribute__((visibility("default"))) int64_t

/* An array that the kernel only reads; MAYBE: it may be a null pointer. Its length is a sum of products of numbers. */
#define IN(type, name, length) const type *name
#define MAYBE(type, name, length) const type *name
/* An array of the caller that the kernel modifies. */
#define INOUT(type, name, length) type *name
/* An array allocated for the call, uninitialised; ZEROS: zeroed; ROWS: cut to the number of rows the kernel returns. */
#define OUT(type, name, length) type *name
#define ZEROS(type, name, length) type *name
#define ROWS(type, name, length) type *name

/* Return value of kernels that return no number of rows: the work is done, or numpy decides and everything that the
   kernel wrote is invalid. */
enum { DONE = 0, NOT_ME = -1 };

#endif
