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
