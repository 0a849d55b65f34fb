# SPDX-License-Identifier: Apache-2.0
# What users include; nothing else is installed.

weirincludedir = $(includedir)/weir
weirinclude_HEADERS = \
  include/weir/arena.h \
  include/weir/counters.def \
  include/weir/memory_resource.hpp \
  include/weir/pin.h \
  include/weir/pool.h \
  include/weir/rcutils.h \
  include/weir/weir.h
