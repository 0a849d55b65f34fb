/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux: the port contract over system calls. They are made directly, not through libc's mmap,
 * madvise and so on, because other preloaded libraries wrap those and allocate inside; and errno
 * is put back, because free must not change it. No lock; every function is thread-safe.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attr.h"
#include "bits.h"
#include "os.h"

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_COLD
#define MADV_COLD 20
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
/* From linux/membarrier.h, which older distributions lack. */
#define MEMBARRIER_PRIVATE_EXPEDITED (1 << 3)
#define MEMBARRIER_REGISTER_PRIVATE_EXPEDITED (1 << 4)

/* 4 MiB in one call; small, for the stack of a thread whose page faults are counted. */
#define PROBE_PAGES 1024
/* Spans start at multiples of this. */
#define HINT_UNIT ((uintptr_t)1 << 16)

extern char **environ;

static int result(long value, int saved) {
  int error = value < 0 ? errno : 0;
  errno = saved;
  return error;
}

size_t wr_os_page_size(void) {
  size_t size = getauxval(AT_PAGESZ);
  return size != 0 ? size : 4096;
}

void *wr_os_hint(void) {
#if WR_TSAN || UINTPTR_MAX < UINT64_MAX
  return NULL;
#else
  /* The stack lies at the top of the address space, whose size differs (39 to 48 bits). Between
   * its half and five eighths lie neither mappings that the kernel places from the top down, nor
   * position-independent programs and their brk at two thirds. */
  uint64_t random = 0;
  int saved = errno;
  uintptr_t top = (uintptr_t)1 << (wr_bits_log2((uintptr_t)&random) + 1);
  uintptr_t spread;
  /* Without randomness, early in the boot of a machine, the address is the same each time. */
  (void)syscall(SYS_getrandom, &random, sizeof random, GRND_NONBLOCK);
  errno = saved;
  spread = random % (top / 8);
  /* In the lower half of a gibibyte, which one node of the page map covers. */
  return (void *)wr_bits_down((top / 2 + spread) & ~((uintptr_t)1 << 29), HINT_UNIT);
#endif
}

/* mmap of memory of the process's own; -1 for a failure, and then errno is set. */
static long map(void *address, size_t length, int flags) {
  flags |= MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef SYS_mmap2
  return syscall(SYS_mmap2, address, length, PROT_READ | PROT_WRITE, flags, -1, 0L);
#else
  return syscall(SYS_mmap, address, length, PROT_READ | PROT_WRITE, flags, -1, 0L);
#endif
}

/* ThreadSanitizer sees these system calls no more than the order that the kernel brings into them:
 * that who maps an address does so after who has unmapped it. */
#if WR_TSAN
static _Atomic(unsigned) unmapped;
#endif

static void before_unmap(void) {
#if WR_TSAN
  /* Release: pairs with the acquire of after_map. */
  atomic_fetch_add_explicit(&unmapped, 1, memory_order_release);
#endif
}

static void after_map(void) {
#if WR_TSAN
  /* Acquire: pairs with the release of before_unmap. */
  (void)atomic_load_explicit(&unmapped, memory_order_acquire);
#endif
}

int wr_os_map(void *hint, size_t length, void **address) {
  int saved = errno;
  long got = map(hint, length, 0);
  /* An address may have its top bit set on 32-bit systems; only -1 is a failure. */
  if (got == -1)
    return result(-1, saved);
  errno = saved;
  after_map();
  *address = (void *)got;
  return 0;
}

int wr_os_unmap(void *address, size_t length) {
  int saved = errno;
  before_unmap();
  return result(syscall(SYS_munmap, address, length), saved);
}

int wr_os_purge(void *address, size_t length) {
  int saved = errno;
  long got = syscall(SYS_madvise, address, length, MADV_DONTNEED);
  /* madvise(2): EINVAL for locked pages, which Linux 5.18 gives back under another name. */
  if (got != 0 && errno == EINVAL)
    got = syscall(SYS_madvise, address, length, MADV_DONTNEED_LOCKED);
  return result(got, saved);
}

#if WR_TSAN || UINTPTR_MAX < UINT64_MAX
int wr_os_move(void *from, void *to, size_t length) {
  /* Without a place of weir's own in the address space, a target that mremap unmaps and then does
   * not fill may be somebody else's before it is mapped again. */
  (void)from, (void)to, (void)length;
  return ENOSYS;
}
#else
/* 0 when a range lies in one mapping, and neither it nor the target is locked. errno may change. */
static int check_movable(char *from, void *to, size_t length) {
  size_t page = wr_os_page_size();
  /* mremap(2): to grow a range in place fails with EFAULT when it is not one mapping, and mostly
   * with ENOMEM when it is. If there was room, the page goes again. */
  if (syscall(SYS_mremap, from, length, length + page, 0) != -1)
    (void)syscall(SYS_munmap, from + length, page);
  else if (errno == EFAULT)
    return EFAULT;
  /* madvise(2): EINVAL for locked pages, and before Linux 5.4. */
  return syscall(SYS_madvise, from, page, MADV_COLD) == 0 &&
                 syscall(SYS_madvise, to, page, MADV_COLD) == 0
             ? 0
             : EPERM;
}

/* Maps the target again that mremap may have unmapped before it failed. Nobody gets that address
 * meanwhile but who asks for it, because the kernel places mappings elsewhere (see wr_os_hint). */
static int restore(void *to, size_t length) {
  long got = map(to, length, MAP_FIXED_NOREPLACE);
  /* Before Linux 4.17 the address is a mere wish, and another one says that the target is there. */
  if (got != -1 && got != (long)to)
    (void)syscall(SYS_munmap, got, length);
  return got == -1 && errno != EEXIST ? ENOTRECOVERABLE : 0;
}

int wr_os_move(void *from, void *to, size_t length) {
  int saved = errno;
  int error = check_movable(from, to, length);
  /* DONTUNMAP leaves the old range mapped and empty. Of one mapping, all pages move or none. */
  if (error == 0 && syscall(SYS_mremap, from, length, length,
                            MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to) == -1) {
    error = errno == EINVAL ? ENOSYS : errno;
    if (restore(to, length) != 0)
      error = ENOTRECOVERABLE;
  }
  errno = saved;
  return error;
}
#endif

/* How many of so many pages reach behind the last whose lowest bit is set, as mincore(2) sets it.
 * The bytes behind them may be looked at too, and are 0. */
static size_t pages_to_last(const uint64_t *pages, size_t count) {
  const unsigned char *page = (const unsigned char *)pages;
  size_t words = (count + 7) / 8;
  while (words > 0 && (pages[words - 1] & UINT64_C(0x0101010101010101)) == 0)
    words--;
  for (count = words * 8; count > 0 && (page[count - 1] & 1) == 0; count--)
    continue;
  return count;
}

int wr_os_resident(void *address, size_t length, size_t *end) {
  uint64_t pages[PROBE_PAGES / 8];
  size_t page = wr_os_page_size();
  int saved = errno;
  *end = 0;
  /* From the end, because what was allocated and not used lies there. */
  while (length > 0) {
    size_t part = (length / page - 1) % PROBE_PAGES + 1, found;
    char *start = (char *)address + length - part * page;
    pages[(part - 1) / 8] = 0;
    if (syscall(SYS_mincore, start, part * page, pages) != 0)
      return result(-1, saved);
    found = pages_to_last(pages, part);
    length -= part * page;
    if (found > 0) {
      *end = length + found * page;
      return 0;
    }
  }
  return 0;
}

int wr_os_huge(void *address, size_t length, bool huge) {
  int saved = errno;
  return result(syscall(SYS_madvise, address, length, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE),
                saved);
}

int wr_os_lock_memory(void *address, size_t length) {
  size_t page = wr_os_page_size();
  size_t lead = (uintptr_t)address & (page - 1);
  void *first = (char *)address - lead;
  int saved = errno;
  long got = syscall(SYS_mlock2, first, wr_bits_up(length + lead, page), MLOCK_ONFAULT);
  if (got != 0 && errno == ENOSYS)
    got = syscall(SYS_mlock, first, wr_bits_up(length + lead, page));
  /* mlock(2): ENOMEM over a limit, EPERM where that is 0; and EAGAIN. The range is mapped. */
  return result(got, saved) == 0 ? 0 : EPERM;
}

/* The whole pages inside a range; 0 bytes when there is none. */
static uintptr_t whole_pages(const void *address, size_t length, size_t *bytes) {
  size_t page = wr_os_page_size();
  uintptr_t first = wr_bits_up((uintptr_t)address, page);
  uintptr_t end = wr_bits_down((uintptr_t)address + length, page);
  *bytes = first < end ? end - first : 0;
  return first;
}

void wr_os_unlock_memory(void *address, size_t length) {
  size_t bytes;
  uintptr_t first = whole_pages(address, length, &bytes);
  int saved = errno;
  if (bytes > 0)
    (void)result(syscall(SYS_munlock, first, bytes), saved);
}

bool wr_os_is_locked(void *address, size_t length) {
  size_t bytes;
  uintptr_t first = whole_pages(address, length, &bytes);
  int saved = errno;
  /* madvise(2): EINVAL for locked pages. Others are paged out earlier than they would be, until
   * they are touched. */
  return result(syscall(SYS_madvise, first, bytes, MADV_COLD), saved) != 0;
}

bool wr_os_locks_future(void) {
  size_t page = wr_os_page_size();
  void *probe = NULL;
  bool locks;
  int error;
  /* Without pages, only an advice that the kernel does not know is refused. */
  if (wr_os_is_locked(NULL, 0))
    return false;
  /* mmap(2): EAGAIN when it would be, and that is over the limit. */
  error = wr_os_map(NULL, page, &probe);
  if (error != 0)
    return error == EAGAIN;
  locks = wr_os_is_locked(probe, page);
  (void)wr_os_unmap(probe, page);
  return locks;
}

uint32_t wr_os_thread(void) {
  return (uint32_t)syscall(SYS_gettid);
}

uint32_t wr_os_process(void) {
  return (uint32_t)syscall(SYS_getpid);
}

bool wr_os_is_thread(uint32_t thread) {
  int saved = errno;
  return result(syscall(SYS_tgkill, wr_os_process(), thread, 0), saved) != ESRCH;
}

int wr_os_lock_wait(_Atomic(uint32_t) *word) {
#if WR_TSAN
  (void)word;
  return ENOSYS;
#else
  int saved = errno;
  return result(syscall(SYS_futex, word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0), saved);
#endif
}

void wr_os_lock_wake(_Atomic(uint32_t) *word) {
  int saved = errno;
  (void)result(syscall(SYS_futex, word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0), saved);
}

void wr_os_yield(void) {
  int saved = errno;
  /* Not libc's function: its page of code may not be mapped yet, which would be a page fault. */
  (void)syscall(SYS_sched_yield);
  errno = saved;
}

/* glibc's; other libcs have no such lock, or no such names. */
extern void _IO_list_lock(void) __attribute__((weak));
extern void _IO_list_unlock(void) __attribute__((weak));
extern void _IO_list_resetlock(void) __attribute__((weak));

void wr_os_before_fork(void) {
  if (_IO_list_lock != NULL)
    _IO_list_lock();
}

void wr_os_after_fork(void) {
  if (_IO_list_unlock != NULL)
    _IO_list_unlock();
}

void wr_os_forked(void) {
  if (_IO_list_resetlock != NULL)
    _IO_list_resetlock();
}

bool wr_os_barrier(void) {
  int saved = errno;
  /* membarrier(2): EPERM until the process has said once that it will use the command. */
  long got = syscall(SYS_membarrier, MEMBARRIER_PRIVATE_EXPEDITED, 0, 0);
  if (got != 0 && errno == EPERM &&
      syscall(SYS_membarrier, MEMBARRIER_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0)
    got = syscall(SYS_membarrier, MEMBARRIER_PRIVATE_EXPEDITED, 0, 0);
  return result(got, saved) == 0;
}

bool wr_os_secure(void) {
  return getauxval(AT_SECURE) != 0;
}

char **wr_os_environment(void) {
  return environ;
}

int wr_os_write(int fd, const char *bytes, size_t length) {
  int saved = errno;
  while (length > 0) {
    ssize_t got = syscall(SYS_write, fd, bytes, length);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return result(-1, saved);
    bytes += got;
    length -= (size_t)got;
  }
  errno = saved;
  return 0;
}

int wr_os_sink(void *fd, const char *bytes, size_t length) {
  return wr_os_write(*(const int *)fd, bytes, length);
}

int wr_os_append(const char *path, int *fd) {
  int saved = errno;
  long got = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (got < 0)
    return result(got, saved);
  *fd = (int)got;
  return 0;
}

void wr_os_close(int fd) {
  int saved = errno;
  (void)result(syscall(SYS_close, fd), saved);
}

bool wr_os_identify(int fd, uint64_t identity[2]) {
  int saved = errno;
  struct stat status;
  int error = result(fstat(fd, &status), saved);
  identity[0] = error == 0 ? (uint64_t)status.st_dev : 0;
  identity[1] = error == 0 ? (uint64_t)status.st_ino : 0;
  return error == 0;
}

int wr_os_duplicate(int fd) {
  int saved = errno;
  long copy = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);
  errno = saved;
  return copy < 0 ? fd : (int)copy;
}

_Noreturn void wr_os_abort(void) {
  abort();
}
