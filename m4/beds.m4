dnl SPDX-License-Identifier: Apache-2.0
dnl The beds: benchmarks over real middleware, of which each is built where that is installed.

dnl WR_BED(VARIABLE, NAME, PACKAGES, PROBE): one bed, for whose middleware Debian has PACKAGES.
dnl PROBE sets have_VARIABLE to yes or no, and where it is yes VARIABLE_CFLAGS and VARIABLE_LIBS,
dnl which become output variables. Makes the conditional BED_VARIABLE, and adds to the summary.
AC_DEFUN([WR_BED],
  [have_$1=no $1_CFLAGS= $1_LIBS=
   AS_IF([test "$with_beds" != no], [$4])
   AS_CASE([$with_beds$have_$1],
     [yesno], [AC_MSG_ERROR([--with-beds: what $2 needs is missing (on Debian: $3)])],
     [*yes], [AS_VAR_APPEND([beds], [" $2"])],
     [autono], [AS_VAR_APPEND([missing_beds], [" $2 ($3)"])])
   AM_CONDITIONAL([BED_$1], [test "$have_$1" = yes])
   AC_SUBST([$1_CFLAGS])
   AC_SUBST([$1_LIBS])])

dnl WR_BED_LIBRARY(VARIABLE, CFLAGS, LIBS, INCLUDES, BODY): a probe for middleware without a file
dnl for pkg-config: can a C++ program with these INCLUDES and this BODY be built and linked?
AC_DEFUN([WR_BED_LIBRARY],
  [AC_MSG_CHECKING([for a C++ program with $3])
   AC_LANG_PUSH([C++])
   wr_save_CXXFLAGS=$CXXFLAGS wr_save_LIBS=$LIBS
   CXXFLAGS="$CXXFLAGS $CXX_STANDARD $2" LIBS="$3 $LIBS"
   AS_IF([test -n "$CXX_STANDARD"],
     [AC_LINK_IFELSE([AC_LANG_PROGRAM([$4], [$5])],
       [have_$1=yes $1_CFLAGS="$2" $1_LIBS="$3"])])
   CXXFLAGS=$wr_save_CXXFLAGS LIBS=$wr_save_LIBS
   AC_LANG_POP([C++])
   AC_MSG_RESULT([$have_$1])])

dnl WR_BEDS: the switch, and all beds.
AC_DEFUN([WR_BEDS],
  [AC_ARG_WITH([beds],
     [AS_HELP_STRING([--with-beds=yes|no|auto],
       [build the benchmarks over real middleware: all, none, or those for which it is
        installed @<:@auto@:>@])],
     [], [with_beds=auto])
   AS_CASE([$with_beds], [yes | no | auto], [],
     [AC_MSG_ERROR([--with-beds takes yes, no or auto, not $with_beds])])
   beds= missing_beds=

   WR_BED([ROUNDTRIP], [roundtrip], [libfastcdr-dev],
     [WR_BED_LIBRARY([ROUNDTRIP], [], [-lfastcdr], [[#include <fastcdr/Cdr.h>]],
       [[eprosima::fastcdr::FastBuffer buffer; eprosima::fastcdr::Cdr cdr(buffer);]])])])
