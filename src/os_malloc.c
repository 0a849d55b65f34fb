/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose malloc the process has: see os.h. What counts is the definition that the dynamic linker
 * finds first, because that is what programs and libraries call; in a static program, which has no
 * names left to look up, which object files the linker took. No lock.
 */
#include <dlfcn.h>
#include <errno.h>

#include "attr.h"
#include "os.h"

#ifdef __GLIBC__
#include <gnu/lib-names.h>
#include <link.h>
#endif

#define IN_PROGRAM __attribute__((weak, visibility("hidden")))

#ifdef __GLIBC__
/* Only in a static program is the one. Of glibc's malloc the other comes into it, and no other
 * malloc defines it. */
extern void __libc_setup_tls(void) IN_PROGRAM;
extern int __libc_mallopt(int parameter, int value) IN_PROGRAM;
#define IS_STATIC (__libc_setup_tls != NULL)
#define STATIC_MALLOPT __libc_mallopt
#else
#define IS_STATIC false
#define STATIC_MALLOPT NULL
#endif

/* A handle to look names up in what is loaded under a name; NULL is the program. To call dlopen
 * outright would make the linker warn of it in every static program that has this file. */
static void *open_loaded(const char *name) {
  void *(*open)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_DEFAULT, "dlopen");
  return open != NULL ? open(name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

/* The same for the object of an address. */
static void *open_object(const Dl_info *object) {
  void *handle = open_loaded(object->dli_fname);
  /* The program itself is not loaded under what it was called as. */
  return handle != NULL ? handle : open_loaded(NULL);
}

static bool are_of_one_object(const void *one, const void *other) {
  Dl_info of_one, of_other;
  return dladdr(one, &of_one) != 0 && dladdr(other, &of_other) != 0 &&
         of_one.dli_fbase == of_other.dli_fbase;
}

/* Whether a malloc lies in an object that has weir's functions, too: this one, or another. */
static bool is_weirs(const void *found) {
  Dl_info object;
  void *handle, *version;
  bool same;
  if (&wr_replaces_malloc != NULL && are_of_one_object(found, &wr_replaces_malloc))
    return true;
  if (dladdr(found, &object) == 0 || (handle = open_object(&object)) == NULL)
    return false;
  version = dlsym(handle, "weir_version");
  same = version != NULL && are_of_one_object(found, version);
  (void)dlclose(handle);
  return same;
}

#ifdef __GLIBC__

/* The first definition of malloc in the objects behind `object`, or NULL. */
static void *find_behind(const struct link_map *object) {
  void *found = NULL;
  while (found == NULL && (object = object->l_next) != NULL) {
    void *handle = open_loaded(object->l_name);
    struct link_map *in = NULL;
    Dl_info info;
    if (handle == NULL)
      continue;
    found = dlsym(handle, "malloc");
    /* What the object only needs from another has its turn when that one has. */
    if (found != NULL &&
        (dladdr1(found, &info, (void **)&in, RTLD_DL_LINKMAP) == 0 || in != object))
      found = NULL;
    (void)dlclose(handle);
  }
  return found;
}

static void *find_malloc(void) {
  void *found = dlsym(RTLD_DEFAULT, "malloc");
  const ElfW(Sym) *symbol = NULL;
  struct link_map *object = NULL;
  Dl_info info;
  /* A program with fixed addresses that takes that of malloc has a jump to malloc of its own, which
   * stands for it everywhere and is what was found. The objects are linked in the order in which
   * names are looked up. */
  if (found != NULL && dladdr1(found, &info, (void **)&symbol, RTLD_DL_SYMENT) != 0 &&
      symbol != NULL && symbol->st_shndx == SHN_UNDEF &&
      dladdr1(found, &info, (void **)&object, RTLD_DL_LINKMAP) != 0)
    found = find_behind(object);
  return found;
}

/* libc's own mallopt when that malloc is libc's own, else NULL. Not by its name alone, which
 * libweir_malloc and others define, too. */
static wr_os_mallopt find_mallopt(const void *found) {
  void *libc = open_loaded(LIBC_SO);
  wr_os_mallopt tune = NULL;
  if (libc == NULL)
    return NULL;
  if (dlsym(libc, "malloc") == found)
    tune = (wr_os_mallopt)dlsym(libc, "mallopt");
  (void)dlclose(libc);
  return tune;
}

#else

static void *find_malloc(void) {
  return dlsym(RTLD_DEFAULT, "malloc");
}

static wr_os_mallopt find_mallopt(const void *found) {
  (void)found;
  return NULL;
}

#endif

/* What the linker chose, where nothing can be looked up. */
static enum wr_os_malloc look_at_link(wr_os_mallopt *tune) {
  if (&wr_replaces_malloc != NULL)
    return WR_OS_MALLOC_WEIR;
  *tune = STATIC_MALLOPT;
  return *tune != NULL ? WR_OS_MALLOC_GLIBC : WR_OS_MALLOC_OTHER;
}

static enum wr_os_malloc look_up(wr_os_mallopt *tune) {
  const void *found = find_malloc();
  if (found == NULL)
    return look_at_link(tune);
  *tune = find_mallopt(found);
  if (*tune != NULL)
    return WR_OS_MALLOC_GLIBC;
  return is_weirs(found) ? WR_OS_MALLOC_WEIR : WR_OS_MALLOC_OTHER;
}

enum wr_os_malloc wr_os_malloc(wr_os_mallopt *tune) {
  int saved = errno;
  enum wr_os_malloc whose = IS_STATIC ? look_at_link(tune) : look_up(tune);
  /* What was not found is not what the program's next dlerror is about. */
  (void)dlerror();
  errno = saved;
  return whose;
}
