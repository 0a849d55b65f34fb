dnl SPDX-License-Identifier: Apache-2.0
dnl Probes of compiler and linker flags.

dnl WR_CC_FLAGS(VARIABLE, FLAGS): append to VARIABLE those FLAGS that the C compiler takes, and
dnl make it an output variable.
AC_DEFUN([WR_CC_FLAGS],
  [wr_save_CFLAGS=$CFLAGS
   for wr_flag in m4_normalize([$2]); do
     AC_MSG_CHECKING([whether the compiler takes $wr_flag])
     CFLAGS="$wr_save_CFLAGS -Werror $wr_flag"
     AC_LINK_IFELSE([AC_LANG_SOURCE([[int main(void) { return 0; }]])],
       [AC_MSG_RESULT([yes])
        AS_VAR_APPEND([$1], [" $wr_flag"])],
       [AC_MSG_RESULT([no])])
   done
   CFLAGS=$wr_save_CFLAGS
   AC_SUBST([$1])])

dnl WR_LINK_FLAGS(VARIABLE, FLAGS): the same for flags that matter when a program is linked.
AC_DEFUN([WR_LINK_FLAGS],
  [wr_save_LDFLAGS=$LDFLAGS
   for wr_flag in m4_normalize([$2]); do
     AC_MSG_CHECKING([whether programs can be linked with $wr_flag])
     LDFLAGS="$wr_save_LDFLAGS $wr_flag"
     AC_LINK_IFELSE([AC_LANG_SOURCE([[int main(void) { return 0; }]])],
       [AC_MSG_RESULT([yes])
        AS_VAR_APPEND([$1], [" $wr_flag"])],
       [AC_MSG_RESULT([no])])
   done
   LDFLAGS=$wr_save_LDFLAGS
   AC_SUBST([$1])])

dnl WR_CXX_STANDARD(VARIABLE, STANDARDS): set VARIABLE to the flag for the first of the STANDARDS
dnl that a working C++ compiler knows, or to nothing, and make it an output variable.
AC_DEFUN([WR_CXX_STANDARD],
  [AC_LANG_PUSH([C++])
   wr_save_CXXFLAGS=$CXXFLAGS
   $1=
   for wr_standard in $2; do
     test -z "$$1" || break
     AC_MSG_CHECKING([whether the C++ compiler takes -std=$wr_standard])
     CXXFLAGS="$wr_save_CXXFLAGS -std=$wr_standard"
     AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <new>]], [[delete new int;]])],
       [AC_MSG_RESULT([yes])
        $1="-std=$wr_standard"],
       [AC_MSG_RESULT([no])])
   done
   CXXFLAGS=$wr_save_CXXFLAGS
   AC_LANG_POP([C++])
   AC_SUBST([$1])])
