/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The port contract: all that weir asks of an operating system. Each port is one os_*.c.
 *
 * Functions that can fail return 0 or an errno value; none touches errno, logs, reads options, or
 * allocates. Addresses and lengths are multiples of the page size unless said otherwise.
 */
#ifndef WR_OS_H
#define WR_OS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes in a page: a power of two from 4 KiB to 64 KiB, read at run time. */
size_t wr_os_page_size(void);

/* An address, a multiple of 64 KiB, around which nothing else is likely to be mapped and which
 * differs between processes; half a gibibyte or more below a multiple of one; NULL when the system
 * shall choose. */
void *wr_os_hint(void);

/*
 * Maps `length` zero bytes, readable and writable, not resident until touched (unless the process
 * locks its future memory). At `hint` when that is free, else elsewhere. *address is the start.
 * ENOMEM or EAGAIN when the system gives none.
 */
int wr_os_map(void *hint, size_t length, void **address);

int wr_os_unmap(void *address, size_t length);

/* Gives the memory back at once; the range stays mapped and reads as zero. Locked memory too where
 * the kernel can (Linux 5.18), else EINVAL. */
int wr_os_purge(void *address, size_t length);

/*
 * Moves the pages of a range, without copying them, to another that is mapped and does not overlap
 * it; afterwards `from` is mapped and reads as zero. Else `from` is as it was, and `to` reads as
 * zero: EFAULT when `from` is more than one mapping, EPERM when one of the two is locked (the lock
 * would end with the move, for its neighbours too), ENOSYS where no move can ever succeed (before
 * Linux 5.7); ENOTRECOVERABLE: `to` is not mapped any more. Up to five system calls.
 */
int wr_os_move(void *from, void *to, size_t length);

/* Sets *end to how many bytes from the start of the range reach behind its last resident page: 0
 * when none is. Never counts an untouched page at the end. */
int wr_os_resident(void *address, size_t length, size_t *end);

/* Asks for huge pages wherever they fit (true) or for none (false). */
int wr_os_huge(void *address, size_t length, bool huge);

/* Keeps what is touched of a range in memory until it is unmapped; if the system cannot put that
 * off, all of it is resident at once. EPERM when that is over the process's limit. Whole pages that
 * the range has a part in. */
int wr_os_lock_memory(void *address, size_t length);
/* Ends that for the whole pages inside a range. */
void wr_os_unlock_memory(void *address, size_t length);
/* Whether any of those is kept in memory already, or the system cannot tell (before Linux 5.4). */
bool wr_os_is_locked(void *address, size_t length);
/* Whether the process keeps all in memory that it maps from now on; false if the system cannot
 * tell. */
bool wr_os_locks_future(void);

/* Not 0 while the process has one thread; NULL where libc does not tell (glibc does since 2.32). */
extern char __libc_single_threaded __attribute__((weak));
#define WR_OS_ALONE (&__libc_single_threaded != NULL && __libc_single_threaded != 0)

/* Identity of the calling thread: nonzero, below 2^30, unlike any other live thread's. */
uint32_t wr_os_thread(void);
uint32_t wr_os_process(void);

/* Whether a thread of this process has that identity. */
bool wr_os_is_thread(uint32_t thread);

/*
 * A priority-inheriting wait for a lock word (lock.h): lends the caller's priority to the thread
 * named in `word` and returns 0 once the word names the caller; ENOSYS when the system cannot, and
 * then the caller has to retry after wr_os_yield.
 */
int wr_os_lock_wait(_Atomic(uint32_t) *word);
void wr_os_lock_wake(_Atomic(uint32_t) *word);
void wr_os_yield(void);

/* Before fork: takes libc's lock of the list of streams, which fork takes after all handlers and
 * whose holder may allocate. After it, in the parent: gives it back; in the child: makes it new. */
void wr_os_before_fork(void);
void wr_os_after_fork(void);
void wr_os_forked(void);

/* Whether every thread of the process has passed a full memory barrier since the call began. */
bool wr_os_barrier(void);

/* Whether the process runs with more rights than its user, so that the environment is not to be
 * trusted. */
bool wr_os_secure(void);
/* The environment, or NULL when it cannot be read yet. */
char **wr_os_environment(void);

/* Defined where weir stands under the names of libc's malloc; its address is NULL elsewhere. */
extern const char wr_replaces_malloc __attribute__((weak, visibility("hidden")));

/* mallopt(3): 1, or 0 when the value is refused. */
typedef int (*wr_os_mallopt)(int parameter, int value);

enum wr_os_malloc { WR_OS_MALLOC_OTHER, WR_OS_MALLOC_GLIBC, WR_OS_MALLOC_WEIR };

/* Whose malloc the process calls. Where it is glibc's, *tune is glibc's own mallopt; else *tune is
 * NULL or untouched. Looks names up, which may take libc's locks and allocate. */
enum wr_os_malloc wr_os_malloc(wr_os_mallopt *tune);

/* Writes all the bytes. `fd` 2 is standard error. */
int wr_os_write(int fd, const char *bytes, size_t length);
/* The same as a sink of text.h; `fd` points to an int. */
int wr_os_sink(void *fd, const char *bytes, size_t length);
/* Opens for appending, created when missing, closed on exec. */
int wr_os_append(const char *path, int *fd);
void wr_os_close(int fd);
/* Which file a descriptor stands for: equal pairs are the same file. False when it is closed. */
bool wr_os_identify(int fd, uint64_t identity[2]);
/* Another descriptor for the same file, above 2 and closed on exec; `fd` itself when there is none.
 */
int wr_os_duplicate(int fd);

/* Ends the process abnormally, leaving a core where the system does. */
_Noreturn void wr_os_abort(void);

#endif
